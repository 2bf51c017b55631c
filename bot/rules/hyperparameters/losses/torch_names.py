"""What PyTorch calls its losses."""

from __future__ import annotations

CLASSES = {
    "cross_entropy": "CrossEntropyLoss", "nll": "NLLLoss", "bce": "BCELoss",
    "bce_logits": "BCEWithLogitsLoss", "mse": "MSELoss", "mae": "L1Loss",
    "smooth_l1": "SmoothL1Loss", "huber": "HuberLoss", "kld": "KLDivLoss",
    "poisson_nll": "PoissonNLLLoss", "hinge_embedding": "HingeEmbeddingLoss",
    "soft_margin": "SoftMarginLoss", "multi_margin": "MultiMarginLoss",
    "multilabel_soft_margin": "MultiLabelSoftMarginLoss",
}  # fmt: skip
FUNCTIONS = {
    "cross_entropy": "cross_entropy", "nll": "nll_loss", "bce": "binary_cross_entropy",
    "bce_logits": "binary_cross_entropy_with_logits", "mse": "mse_loss", "mae": "l1_loss",
    "smooth_l1": "smooth_l1_loss", "huber": "huber_loss", "kld": "kl_div",
    "poisson_nll": "poisson_nll_loss", "hinge_embedding": "hinge_embedding_loss",
    "soft_margin": "soft_margin_loss", "multi_margin": "multi_margin_loss",
    "multilabel_soft_margin": "multilabel_soft_margin_loss",
}  # fmt: skip
_OF_CLASS = {f"torch.nn.{text}": name for name, text in CLASSES.items()}
_OF_FUNCTION = {f"torch.nn.functional.{text}": name for name, text in FUNCTIONS.items()}

OF_CLASSES = ("cross_entropy", "nll")
"""Losses whose targets are the indices of classes."""
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
