"""What PyTorch calls its losses."""

from __future__ import annotations

from sandbox.probe.training.vocabulary import TORCH_LOSSES

CLASSES = {name: kind for name, (_, kind, _) in TORCH_LOSSES.items()}
FUNCTIONS = {name: function for name, (function, _, _) in TORCH_LOSSES.items()}
_OF_CLASS = {f"torch.nn.{text}": name for name, text in CLASSES.items()}
_OF_FUNCTION = {f"torch.nn.functional.{text}": name for name, text in FUNCTIONS.items()}

OF_VALUES = ("bce_logits", "bce", "mse", "mae", "smooth_l1", "huber")
"""Losses whose targets have the form of the predictions."""


def of_class(full: str) -> str:
    """The canonical name of a loss by the full name of its class, "" for no loss."""
    name = full.rpartition(".")[2]
    own = full.startswith("torch.nn.") and name.endswith("Loss")
    return _OF_CLASS.get(f"torch.nn.{name}", name.lower()) if own else ""


def of_function(full: str) -> str:
    """The canonical name of a loss by the full name of its function, "" for no loss."""
    return _OF_FUNCTION.get(full, "")
