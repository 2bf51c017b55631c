"""The hyperparameters of a training program in PyTorch or Keras: where they stand in its
text, and how others are written.
"""
