"""What the loss expects of the predictions, and what it is fed, by the values of one batch.

Sources: UMLAUT's softmax checks, Neuralint f008, f012, f015, f017 and f020, AutoTrainer's output
activation. Names of layers say nothing here: softmax is often inside a dense layer or a function.
"""

from bot.models.diagnosis import Change, FaultType
from bot.models.training import Loss, Summary
from bot.rules.diagnosis.learning import BINARY, ENTROPIES
from bot.rules.diagnosis.rule import UNHARMED, Rule, Sign, Signs, change, evidence, in_line, named
from bot.rules.diagnosis.targets import (
    kind,
    last_function,
    last_layer,
    wants_logits,
    wants_probabilities,
    width,
)
from bot.rules.diagnosis.training import Training, kernel, nonlinear
from sandbox.probe.training.vocabulary import RECTIFIERS

_SLACK = 1e-3
_BOUNDED = ("relu", "tanh", "sigmoid", "hard_sigmoid", "softsign", "relu6", "softplus", "elu")


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
    fed, function = loss.predictions, last_function(training)
    place = last_layer(training)
    span = f"{fed.minimum:.4g} to {fed.maximum:.4g}" if fed.minimum is not None else "none finite"
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
    at = f" of {named(training.output)}" if training.output else ""
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
    fed = (loss.predictions.minimum, loss.predictions.maximum)
    if all(x is not None and abs(x - constant) <= _SLACK for x in fed):
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
    if loss is None or not wants_logits(loss):
        return
    binary = loss.name in BINARY
    own = "sigmoid" if binary else "softmax"
    if function == own or (loss.rows_sum_to_one and not binary):
        text = f"The {own} is applied twice, by the model and by `{loss.name}`: gradients shrink."
        reason = f"`{loss.name}`{in_line(loss.line)} applies it itself"
        words = f"{advice(training, 'linear', own)}: {reason}."
        yield at_end(training, 0.95, text, ("linear",), "AAL", ("ACH",), words)
    elif function in (RECTIFIERS if training.learning.well else _BOUNDED):
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
            shown = (evidence("loss", loss.name), evidence("predictions", last_function(training)))
            yield Sign("LCH", 0.93, text, evidence=shown, change=better)
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
