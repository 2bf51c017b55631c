"""Hyperparameters of the layers of a model."""
