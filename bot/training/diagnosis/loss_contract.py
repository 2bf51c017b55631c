"""What the loss expects of predictions and targets, and what it is fed."""

import math
from typing import Literal

from bot.kernel.training_types import Change, FaultType, Layer, Loss, Summary
from bot.training.diagnosis.learning import BINARY, ENTROPIES
from bot.training.diagnosis.rule import (
    UNHARMED,
    Rule,
    Sign,
    Signs,
    Training,
    change,
    evidence,
    in_line,
    kernel,
    label,
    nonlinear,
    recurrent,
)
from sandbox.probe.training.vocabulary import RECTIFIERS

# What the targets are, and what a loss and a last activation make of them, by their values.

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
    loss_function, own = loss.activation if loss else "", output.activation if output else ""
    if own == "relu" and loss_function == "linear" and loss and loss.predictions.minimum == 0:
        return own  # a dropout stands behind it
    if loss and output and loss_function in ("", "linear") and _is_state(output, loss):
        return "tanh"
    return loss_function or own or "linear"


def _is_state(output: Layer, loss: Loss) -> bool:
    """Whether a recurrent layer's states are the predictions: none of them is beyond one."""
    bounds = (loss.predictions.minimum, loss.predictions.maximum)
    inside = all(x is not None and abs(x) <= 1 for x in bounds)
    return recurrent(output) and inside and loss.predictions.shape[-1:] == (output.units,)


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


# What the loss expects of the predictions, and what it is fed, by the values of one batch.
#
# Sources: UMLAUT's softmax checks, Neuralint f008, f012, f015, f017 and f020, AutoTrainer's
# output activation. Names of layers say nothing here: softmax is often inside a dense layer or a
# function.

_SLACK = 1e-3
_BOUNDED_FUNCTIONS = (
    "relu",
    "tanh",
    "sigmoid",
    "hard_sigmoid",
    "softsign",
    "relu6",
    "softplus",
    "elu",
)


def at_end(
    training: Training,
    confidence: float,
    message: str,
    better: tuple[str, ...],
    fault: FaultType = "ACH",
    also: tuple[FaultType, ...] = (),
    words: str = "",
) -> Sign:
    """A fault of the last activation, with what the loss was fed; `words` advise in place of
    `advice`.
    """
    loss = training.loss
    assert loss is not None
    predictions, function = loss.predictions, last_function(training)
    place = last_layer(training)
    span = (
        f"{predictions.minimum:.4g} to {predictions.maximum:.4g}"
        if predictions.minimum is not None
        else "none finite"
    )
    name = f"activation({','.join(map(str, place))})"
    if fault == "ACH" and not also and _beside_another(training):
        also = ("AAL",)
    return Sign(
        fault,
        confidence,
        message,
        place,
        also,
        (evidence("loss", loss.name), evidence("predictions", span, function)),
        change(name, better, words or f"{advice(training, better[0])}."),
    )


def advice(training: Training, better: str, function: str = "") -> str:
    """How the output gets another activation in place of `function`, or none."""
    function = function or last_function(training)
    at = f" of {label(training.output)}" if training.output else ""
    if better == "linear":
        return f"Remove the `{function}` from the output{at}"
    if function in ("linear", better):
        return f"Apply `{better}` to the output{at}"
    return f"Replace the `{function}` at the output{at} with `{better}`"


def other_loss(loss: Loss, names: tuple[str, ...], words: str = "") -> Change:
    """Advice to use another loss, the first of `names`; `words` call it something else."""
    better = words or f"`{names[0]}`"
    return change("loss", names, f"Replace `{loss.name}`{in_line(loss.line)} with {better}.")


def _beside_another(training: Training) -> bool:
    """Whether the last function follows another one, with no weights between."""
    output, order = training.output, training.order
    if output is None or kernel(output) is not None or order[output.index] == 0:
        return False
    return nonlinear(training.layers[order[output.index] - 1])


def softmax_of_one(training: Training) -> Signs:
    """Softmax over one unit is the constant 1, its logarithm the constant 0."""
    loss, function = training.loss, last_function(training)
    constant = {"softmax": 1.0, "log_softmax": 0.0}.get(function)
    if loss is None or constant is None:
        return
    bounds = (loss.predictions.minimum, loss.predictions.maximum)
    if all(x is not None and abs(x - constant) <= _SLACK for x in bounds):
        text = f"`{function}` over a single unit returns {constant:.0f} for every input."
        if kind(loss) == "values":
            yield at_end(training, 0.98, text, ("linear",), also=("AAL",))
        elif wants_logits(loss) and loss.name in BINARY:
            yield at_end(training, 0.98, text, ("linear",), "AAL", ("ACH",))
        else:
            yield at_end(training, 0.98, text, ("sigmoid",))


def twice(training: Training) -> Signs:
    """A loss that applies softmax or sigmoid itself is given probabilities."""
    loss, function = training.loss, last_function(training)
    if loss is None or not wants_logits(loss) or loss.settings.get("swapped"):
        return
    binary = loss.name in BINARY
    own = "sigmoid" if binary else "softmax"
    if function == own or (loss.rows_sum_to_one and not binary):
        text = f"The {own} is applied twice, by the model and by `{loss.name}`: gradients shrink."
        reason = f"`{loss.name}`{in_line(loss.line)} applies it itself"
        words = f"{advice(training, 'linear', own)}: {reason}."
        yield at_end(training, 0.95, text, ("linear",), "AAL", ("ACH",), words)
    elif function in (RECTIFIERS if training.learning.well else _BOUNDED_FUNCTIONS):
        text = f"`{loss.name}` expects unbounded logits, but `{function}` bounds them."
        confidence = UNHARMED if training.learning.well else 0.85
        yield at_end(training, confidence, text, ("linear",), "AAL", ("ACH",))


def over_batch(training: Training) -> Signs:
    """Softmax along the samples: each prediction depends on what else is in its batch."""
    loss = training.loss
    if loss is None or loss.name not in ENTROPIES or not loss.columns_sum_to_one:
        return
    text = "Softmax runs over the samples of the batch, not over the classes of each sample."
    better = "log_softmax" if loss.name == "nll" else "softmax"
    words = f"{advice(training, better)} over the classes."
    yield at_end(training, 0.95, text, (better,), words=words)


def log_expected(training: Training) -> Signs:
    """Negative log-likelihood, or PyTorch's divergence, of what is no logarithm of a probability.
    That of Keras takes the logarithm itself.
    """
    loss = training.loss
    if loss is None or loss.predictions.maximum is None or loss.predictions.maximum <= _SLACK:
        return
    if loss.name != "nll" and (loss.name != "kld" or training.model.framework != "torch"):
        return
    if loss.settings.get("swapped"):
        return  # these are the targets
    also: tuple[FaultType, ...] = ("ARM",) if last_function(training) == "linear" else ()
    text = f"`{loss.name}` expects log-probabilities, but gets values above 0."
    yield at_end(training, 0.9, text, ("log_softmax",), also=also)
    if loss.name == "kld":
        return
    better = other_loss(loss, ("cross_entropy",), "`cross_entropy`, which takes logits")
    yield Sign("LCH", 0.55, text, change=better)


def probabilities_expected(training: Training) -> Signs:
    """Cross-entropy over classes of what is no probability."""
    loss, function = training.loss, last_function(training)
    if loss is None or not wants_probabilities(loss) or loss.name not in ENTROPIES:
        return
    if loss.rows_sum_to_one or function == "softmax" or width(loss) == 1:
        return
    confidence = _beside_softmax(training, function)
    also: tuple[FaultType, ...] = ("ARM",) if function == "linear" else ()
    text = f"`{loss.name}` expects probabilities that sum to one, but gets {function} outputs."
    if confidence:
        yield at_end(training, confidence, text, ("softmax",), also=also)


def _beside_softmax(training: Training, function: str) -> float:
    """Sigmoid before a cross-entropy of Keras is harmless until it saturates: Keras goes back to
    its inputs, but predictions tie.
    """
    if function != "sigmoid":
        return 0.95
    if training.learning.well:
        return 0.0
    return 0.75 if training.loss and _span(training.loss.predictions) > 0.99 else 0.25


def _span(values: Summary) -> float:
    if values.minimum is None or values.maximum is None:
        return 0.0
    return values.maximum - values.minimum


def binary_expected(training: Training) -> Signs:
    """Binary cross-entropy of what is no probability."""
    loss, function = training.loss, last_function(training)
    if loss is None or loss.name not in BINARY or wants_logits(loss):
        return
    low, high = loss.predictions.minimum, loss.predictions.maximum
    outside = low is not None and high is not None and (low < -_SLACK or high > 1 + _SLACK)
    if outside or function in ("linear", "relu", "tanh", "log_softmax", "elu", "selu"):
        also: tuple[FaultType, ...] = ("ARM",) if function == "linear" else ()
        text = f"`{loss.name}` expects probabilities, but gets {function} outputs."
        yield at_end(training, 0.96, text, ("sigmoid",), also=also)


def one_of_many(training: Training) -> Signs:
    """Softmax makes labels compete that can hold together."""
    loss = training.loss
    if loss is None or kind(loss) != "independent":
        return
    if not loss.rows_sum_to_one:
        if loss.name in ENTROPIES:
            text = f"A sample can have several labels, but `{loss.name}` lets only one win."
            better = other_loss(loss, ("binary_crossentropy",), "binary cross-entropy")
            measurements = (
                evidence("loss", loss.name),
                evidence("predictions", last_function(training)),
            )
            yield Sign("LCH", 0.93, text, evidence=measurements, change=better)
        return
    text = "A sample can have several labels, but softmax lets only one win."
    yield at_end(training, 0.93, text, ("sigmoid",))
    if loss.name not in BINARY:
        better = other_loss(loss, ("binary_crossentropy",), "binary cross-entropy")
        yield Sign("LCH", 0.9, text, evidence=(evidence("loss", loss.name),), change=better)


def binary_of_classes(training: Training) -> Signs:
    """Binary cross-entropy over softmax of several classes."""
    loss: Loss | None = training.loss
    if loss is None or loss.name not in BINARY or kind(loss) != "one-hot":
        return
    if width(loss) > 2 and training.learning.poor:
        text = f"Each sample has one class, but `{loss.name}` judges every unit on its own."
        better = other_loss(loss, ("categorical_crossentropy",), "categorical cross-entropy")
        yield Sign("LCH", 0.6, text, evidence=(evidence("loss", loss.name),), change=better)


_LAST: tuple[FaultType, ...] = ("ACH", "ARM")
RULES: tuple[Rule, ...] = (
    Rule("softmax-of-one-unit", "contract", ("ACH", "AAL"),
         "Neuralint f017; AutoTrainer (activation)",
         "Softmax over a single unit is constant.", softmax_of_one),
    Rule("softmax-twice", "contract", ("AAL", "ACH"), "Neuralint f015",
         "Softmax or sigmoid is applied twice: by the model and by the loss.", twice),
    Rule("softmax-over-batch", "contract", ("ACH",), "Reprise",
         "Softmax runs over the batch instead of the classes.", over_batch),
    Rule("log-probabilities-expected", "contract", (*_LAST, "LCH"), "Neuralint f015",
         "A loss that expects log-probabilities gets values above zero.", log_expected),
    Rule("probabilities-expected", "contract", _LAST,
         "UMLAUT (no softmax); DeepDiagnosis 1; Neuralint f008, f020",
         "Cross-entropy over classes gets outputs that are not probabilities.",
         probabilities_expected),
    Rule("probability-expected", "contract", _LAST, "Neuralint f012, f020; DeepDiagnosis 1",
         "Binary cross-entropy gets outputs that are not probabilities.", binary_expected),
    Rule("labels-compete", "contract", ("ACH", "AAL", "LCH"), "AutoTrainer (activation, loss)",
         "Softmax or its loss is used where samples have several labels.", one_of_many),
    Rule("binary-loss-of-classes", "contract", ("LCH",), "Neuralint f020; AutoTrainer (loss)",
         "Binary cross-entropy is used for exclusive classes.", binary_of_classes),
)  # fmt: skip
