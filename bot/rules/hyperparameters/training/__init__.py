"""Hyperparameters of the optimiser and of the budget of a training."""
