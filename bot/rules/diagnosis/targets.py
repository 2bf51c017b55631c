"""What the targets are, and what a loss and a last activation make of them, by their values."""

import math
from typing import Literal

from bot.models.training import Layer, Loss, Summary
from bot.rules.diagnosis.learning import BINARY, ENTROPIES
from bot.rules.diagnosis.training import Training

Kind = Literal["one-hot", "independent", "classes", "binary", "values", "unknown"]

RANGES: dict[str, tuple[float, float]] = {
    "sigmoid": (0, 1),
    "hard_sigmoid": (0, 1),
    "softmax": (0, 1),
    "tanh": (-1, 1),
    "hard_tanh": (-1, 1),
    "softsign": (-1, 1),
    "relu": (0, math.inf),
    "relu6": (0, 6),
    "softplus": (0, math.inf),
    "exponential": (0, math.inf),
    "elu": (-1, math.inf),
    "selu": (-1.7581, math.inf),
    "gelu": (-0.17, math.inf),
    "silu": (-0.2785, math.inf),
    "log_softmax": (-math.inf, 0),
    "log_sigmoid": (-math.inf, 0),
}
"""What a function can return."""
DISTANCES = frozenset(
    ("mse", "mae", "mape", "msle", "huber", "smooth_l1", "logcosh", "log_cosh", "poisson",
     "gaussian_nll", "cosine_similarity")
)  # fmt: skip
"""Losses that take values for what they are."""
MARGINS = frozenset(("hinge", "squared_hinge", "categorical_hinge", "soft_margin"))
"""Losses that take labels of -1 and 1."""
_MOST_CLASSES = 30
_SECOND = ("cross_entropy", "nll", "bce", "bce_logits")


def kind(loss: Loss) -> Kind:
    """What the targets look like: classes in one of three forms, or values."""
    targets, units = loss.targets, width(loss)
    if loss.one_hot and units > 1:
        return "one-hot"
    if targets.minimum is None or targets.maximum is None:
        return "unknown"
    if zero_or_one(targets):
        if units == 1:
            return "binary"
        return "independent" if _alike(loss) else "classes"
    few = targets.distinct is not None and targets.distinct <= max(_MOST_CLASSES, units)
    return "classes" if loss.integer_targets and few and targets.minimum >= 0 else "values"


def zero_or_one(targets: Summary) -> bool:
    """Whether there are no values but 0 and 1. Of more than a thousand values none are counted."""
    bounds = (targets.minimum, targets.maximum)
    return bounds in ((0, 1), (0, 0), (1, 1)) and (targets.distinct or math.inf) <= 2


def width(loss: Loss) -> int:
    """Units for each sample or place: PyTorch has classes on the second axis, Keras on the last."""
    shape = loss.predictions.shape
    if len(shape) < 2:
        return shape[0] if shape and not loss.targets.shape else 1
    return shape[1] if loss.name in _SECOND else shape[-1]


def _alike(loss: Loss) -> bool:
    """Whether each unit has a target of its own; a label of a single sample has no shape."""
    shape = loss.targets.shape
    return bool(shape) and shape[1:] == loss.predictions.shape[1:]


def last_function(training: Training) -> str:
    """The function that was effectively applied to the predictions last, "linear" for none."""
    loss, output = training.loss, training.output
    seen, own = loss.activation if loss else "", output.activation if output else ""
    if own == "relu" and seen == "linear" and loss and loss.predictions.minimum == 0:
        return own  # a dropout stands behind it
    return seen or own or "linear"


def last_layer(training: Training) -> tuple[int, ...]:
    """The layer to blame for the last function: none where the model is unknown."""
    output: Layer | None = training.output
    return (output.index,) if output else ()


def wants_logits(loss: Loss) -> bool:
    """Whether the loss applies softmax or sigmoid itself."""
    return loss.name in ("cross_entropy", "bce_logits") or bool(loss.from_logits)


def wants_probabilities(loss: Loss) -> bool:
    """Whether the loss takes the logarithm of what it is given."""
    return loss.name in ENTROPIES | BINARY and loss.name != "nll" and not wants_logits(loss)


def copies(training: Training) -> bool:
    """Whether the targets are the inputs, as an autoencoder's are, and not a series one step on."""
    data = training.data
    if data is None or data.targets is None or data.targets.shape != data.inputs.shape:
        return False
    inputs, targets = data.inputs, data.targets
    alike = abs((inputs.mean or 0.0) - (targets.mean or 0.0)) <= 1e-4 * (inputs.std or 0.0)
    return alike and (inputs.minimum, inputs.maximum) == (targets.minimum, targets.maximum)
