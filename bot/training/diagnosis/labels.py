"""Whether loss and last activation fit the targets.

Sources: DeepDiagnosis' out-of-range test (its spread test is left out: early outputs say nothing),
AutoTrainer's loss check, DeepFD's loss operator.
"""

import math

from bot.kernel.training_types import Fault, FaultType, Loss
from bot.training.diagnosis.learning import BINARY, ENTROPIES, SIGNED_LOSSES, no_shares, targets_of
from bot.training.diagnosis.loss_contract import (
    DISTANCES,
    MARGINS,
    RANGES,
    at_end,
    copies,
    kind,
    last_function,
    other_loss,
    width,
    zero_or_one,
)
from bot.training.diagnosis.rule import (
    Rule,
    Sign,
    Signs,
    Training,
    change,
    evidence,
    in_line,
    kernel,
    label,
)
from sandbox.probe.training.vocabulary import RECTIFIERS

_SLACK = 0.02
_HALF, _FAR_FROM_ONE = 1e-6, 0.5
_MOST_CLASSES, _TWO = 30, 2
_SPARSE = "sparse_categorical_crossentropy"
_NEAR = frozenset(("mse", "huber", "smooth_l1", "logcosh", "log_cosh"))
"""Distances that classes can be learned by, if slowly."""
_COUNTING = frozenset(("poisson", "msle"))
"""Losses that are made for counts."""
_ALIGNED = _NEAR | {"mae", "rmse", "poisson", "gaussian_nll"}
"""Losses that need predictions and targets of one shape."""
_CLASS_LOSS = {1: ("binary_crossentropy",), 2: ("categorical_crossentropy",)}


def out_of_reach(training: Training) -> Signs:
    """Targets that the last activation can never return."""
    loss, function = training.loss, last_function(training)
    if loss is None or function not in RANGES or loss.name in ENTROPIES | BINARY:
        return
    whole = targets_of(loss, training.data)
    if whole.minimum is None or whole.maximum is None or function == "log_softmax":
        return
    low, high = RANGES[function]
    slack = _SLACK * (whole.maximum - whole.minimum)
    if whole.minimum < low - slack or whole.maximum > high + slack:
        text = f"`{function}` cannot reach targets of {whole.minimum:.4g} to {whole.maximum:.4g}."
        yield at_end(training, 0.95, text, ("linear",), also=("AAL",))
        if copies(training):
            text = f"The model reconstructs its inputs, but `{function}` cannot reach their values."
            yield Sign("CPP", 0.6, text, also=("scaling-mismatch",), change=_RESCALE)


_RESCALE = change("preprocessing", ("min-max",), "Scale the data to the range of the output.")


def dead_output(training: Training) -> Signs:
    """A rectified output that is zero for every sample."""
    loss, function = training.loss, last_function(training)
    if loss is None or function not in RECTIFIERS or training.learning.well:
        return
    if loss.name not in ENTROPIES | BINARY and training.learning.poor:
        text = f"`{function}` at the output stops learning wherever it returns zero."
        yield at_end(training, 0.5, text, ("linear", "softplus"), also=("AAL",))


def half_sigmoid(training: Training) -> Signs:
    """A sigmoid of what was rectified before: its lowest value is a half, reached exactly. Where
    all values are a half, nothing came from the layers before.
    """
    loss, output = training.loss, training.output
    if loss is None or output is None or training.learning.well:
        return
    if last_function(training) != "sigmoid" or loss.predictions.minimum is None:
        return
    if not loss.predictions.std:
        return
    own = kernel(output)
    is_random = own is None or bool(own.initial.std)  # a layer of zeros returns a half, too
    if is_random and abs(loss.predictions.minimum - 0.5) < _HALF and loss.targets.zero > 0:
        text = "A relu precedes the final sigmoid, so outputs never fall below 0.5."
        words = f"Remove the relu before the sigmoid of {label(output)}."
        yield at_end(training, 0.9, text, ("linear",), also=("AAL",), words=words)


def squashed_values(training: Training) -> Signs:
    """Softmax over several values that are no shares."""
    loss = training.loss
    if loss is None or loss.name not in DISTANCES | BINARY or not loss.rows_sum_to_one:
        return
    if kind(loss) != "values" or width(loss) == 1 or training.learning.well:
        return
    total = (targets_of(loss, training.data).mean or 0.0) * width(loss)
    if training.learning.poor or abs(total - 1) > _FAR_FROM_ONE:
        text = "Softmax makes the outputs sum to one, but the targets do not."
        yield at_end(training, 0.8, text, ("linear",), also=("AAL",))


def distance_of_classes(training: Training) -> Signs:
    """A distance between numbers where targets are classes."""
    loss, learning = training.loss, training.learning
    if loss is None or loss.name not in DISTANCES | MARGINS | {"kld"}:
        return
    if training.in_turns:
        return  # models that train against each other may be pulled to numbers, by least squares
    if learning.well and not (_is_reduced(training) and kind(loss) in ("classes", "binary")):
        return
    if loss.name == "kld" and (loss.rows_sum_to_one or last_function(training) == "log_softmax"):
        return
    if not (_of_classes(loss) or _unsigned(loss)):
        return
    confidence = _misfit(training)
    form = min(width(loss), 2)
    text = f"The targets are classes, but `{loss.name}` measures the distance between numbers."
    better = other_loss(loss, _CLASS_LOSS[form])
    yield Sign("LCH", confidence, text, evidence=(evidence("loss", loss.name),), change=better)
    if last_function(training) == "linear" and training.model.framework != "torch":
        to = ("sigmoid",) if form == 1 else ("softmax",)
        also: tuple[FaultType, ...] = ("ARM",)
        text = "The targets are classes, but the outputs are unbounded."
        yield at_end(training, confidence - 0.15, text, to, also=also)


def _of_classes(loss: Loss) -> bool:
    """Whether targets are classes. Several labels may be learned by a distance that is near."""
    form = kind(loss)
    several = form == "independent" and loss.name not in _NEAR | {"mae", "rmse"}
    return several or form in ("one-hot", "classes", "binary")


def _unsigned(loss: Loss) -> bool:
    """Whether a loss for labels of -1 and 1 is given those of a mask, which are 0 and 1. Keras
    turns them itself.
    """
    return loss.name in SIGNED_LOSSES and zero_or_one(loss.targets)


def _is_reduced(training: Training) -> bool:
    """Whether the loss sees fewer numbers than the network has outputs: what it falls by says
    nothing of the classes.
    """
    output, loss = training.learners[-1] if training.learners else None, training.loss
    return output is not None and loss is not None and output.units not in (None, width(loss))


def _misfit(training: Training) -> float:
    loss = training.loss
    assert loss is not None
    is_bounded = last_function(training) in ("softmax", "sigmoid")
    aside = _is_reduced(training) or is_bounded or _has_counts(training)
    counts = kind(loss) == "classes" and not aside
    if counts and loss.name in _NEAR | _COUNTING:
        return 0.2  # whole numbers may be counts
    if loss.name not in _NEAR:
        return 0.9
    certain = _is_reduced(training) or (
        kind(loss) != "binary" and (kind(loss) == "one-hot" or is_bounded)
    )
    return (0.7 if certain else 0.5) if training.learning.badly else 0.45


def no_class_numbers(training: Training) -> Signs:
    """Labels that are no integers from 0 to one less than the number of classes. PyTorch refuses
    them itself; JAX makes NaN of them.
    """
    loss = training.loss
    if loss is None or not takes_numbers(training, loss):
        return
    whole = targets_of(loss, training.data)
    low, high = whole.minimum, whole.maximum
    if low is None or high is None:
        return
    classes = classes_of(training, loss)
    if low == 0 and loss.integer_targets and last_units(training) == classes <= high:
        return  # there are too few units
    beyond = low < 0 or high >= classes > 1
    if loss.integer_targets and not beyond:
        return
    text = "Labels must be class indices (0, 1, 2, …); these are not."
    measurements = (evidence("labels", f"{low:.4g} to {high:.4g}", f"0 to {classes - 1}"),)
    yield Sign("CPP", 0.95, text, evidence=measurements, change=_RELABEL)


def classes_of(training: Training, loss: Loss) -> int:
    """The outputs for each sample or place; JAX has them on the last axis."""
    shape = loss.predictions.shape
    return shape[-1] if training.model.framework == "jax" and shape else width(loss)


def last_units(training: Training) -> int | None:
    """The units of the last layer with a kernel."""
    return training.learners[-1].units if training.learners else None


def takes_numbers(training: Training, loss: Loss) -> bool:
    """Whether a loss is given the number of a class for each row, of any size."""
    if training.model.framework == "jax":
        is_row = len(loss.targets.shape) < len(loss.predictions.shape)
        return loss.name == "cross_entropy" and is_row
    return loss.name == "sparse_categorical_crossentropy"


_RELABEL = change(
    "preprocessing", ("labels",), "Use class indices as labels, and do not scale them."
)


def entropy_of_one(training: Training) -> Signs:
    """Cross-entropy over the classes of a single unit, which is always sure."""
    loss = training.loss
    if loss is None or loss.name not in ENTROPIES or width(loss) != 1:
        return
    if len(loss.predictions.shape) == 2:
        text = (
            f"`{loss.name}` compares classes, but there is only one unit: the loss is always zero."
        )
        better = other_loss(loss, _CLASS_LOSS[1], "binary cross-entropy")
        yield Sign("LCH", 0.9, text, evidence=(evidence("units", 1, 2),), change=better)


def one_unit(training: Training) -> Signs:
    """A single unit for labels of three classes and more."""
    classes, output = _more_classes(training), training.output
    if not classes or output is None or training.learning.well:
        return
    text = f"There are {classes} classes, but a single output can only separate two."
    measurements = (evidence("units", 1, classes),)
    until = training.layers[: training.order[output.index] + 1]
    layer = next((x for x in reversed(until) if kernel(x)), output)
    index = layer.index
    widen = change(
        f"units({index})", (classes,), f"Give {label(layer)} {classes} units, one per class."
    )
    yield Sign("LCN", 0.8, text, (index,), (), measurements, widen, "up")
    if last_function(training) != "softmax":
        yield at_end(training, 0.45, text, ("softmax",))


def broadcast_targets(training: Training) -> Signs:
    """Predictions of (n, 1) against targets of (n,): each is compared with all others, and the best
    answer is a constant. Keras brings them into one shape itself, PyTorch only warns.
    """
    loss = training.loss
    if loss is None or not (_broadcast(training, loss) or loss.settings.get("broadcast")):
        return
    prediction_shape, target_shape = loss.predictions.shape, loss.targets.shape
    text = (
        "Targets and predictions differ in shape, so every target is compared with all predictions."
    )
    shapes = (
        evidence("predictions", str(prediction_shape)),
        evidence("targets", str(target_shape)),
    )
    measurements = shapes if target_shape else ()
    same = "Give both the same shape, for example with `predictions.squeeze(1)`"
    compared = "the loss" if loss.name == "expression" else f"`{loss.name}`"
    words = f"{same}, before {compared}{in_line(loss.line)}."
    better = change("code(broadcast-loss)", ("repaired",), words)
    line = loss.call or loss.line
    also: tuple[Fault, ...] = ("broadcast-loss",)
    yield Sign("CPP", 0.97, text, also=also, evidence=measurements, change=better, line=line)
    yield Sign("LCH", 0.3, text, evidence=measurements)


def _broadcast(training: Training, loss: Loss) -> bool:
    if loss.name not in _ALIGNED or training.model.framework != "torch":
        return False
    shapes = (loss.predictions.shape, loss.targets.shape)
    fewer, more = sorted(shapes, key=lambda shape: (math.prod(shape), len(shape)))
    many = fewer[0] if fewer else 0
    if many < 2 or fewer == more:
        return False
    return fewer in ((many,), (many, 1)) and more in ((many, 1), (many, many))


def _more_classes(training: Training) -> int:
    """How many classes the labels number where a single unit is to tell them, by a loss or a metric
    of classes; 0 where they need no more units, may be counts, or may be those of another loss.
    """
    loss = training.loss
    is_only = len(training.losses) == 1
    if loss is None or not is_only or width(loss) != 1 or not loss.integer_targets:
        return 0
    whole = targets_of(loss, training.data)
    if whole.minimum not in (0, 1) or not 2 <= (whole.maximum or 0) <= _MOST_CLASSES:
        return 0
    is_bounded = last_function(training) in ("softmax", "sigmoid")
    if loss.name in BINARY | ENTROPIES or _has_counts(training) or is_bounded:
        return int(whole.maximum or 0) + 1
    return 0


def _has_counts(training: Training) -> bool:
    """Whether the program measures an accuracy, and there is one output that it can be of."""
    metrics = training.plan.metrics if training.plan and not training.heads else ()
    return any("acc" in x for x in metrics)


def classes_of_values(training: Training) -> Signs:
    """A loss for probabilities where targets are values."""
    loss = training.loss
    if loss is None or loss.name not in BINARY | {"categorical_crossentropy", "kld"}:
        return
    whole = targets_of(loss, training.data)
    if len(training.losses) > 1 and not no_shares(loss.targets):
        return  # the data's targets are those of another loss
    if not no_shares(whole):
        return
    span = (evidence("targets", f"{whole.minimum:.4g} to {whole.maximum:.4g}", "0 to 1"),)
    text = f"`{loss.name}` compares probabilities, but the targets lie outside 0 to 1."
    better = other_loss(loss, ("mse",), "`mse`, or scale the targets to 0 to 1")
    if _more_classes(training):
        better = other_loss(loss, (_SPARSE,))
    same, two = copies(training), whole.distinct == _TWO
    likely = 0.9 if same or two else 0.35
    yield Sign("LCH", 0.6 if same or two else 0.9, text, evidence=span, change=better)
    yield Sign("CPP", likely, text, evidence=span, change=_RESCALE if same else _RELABEL)
    values = not (same or two or _more_classes(training))
    if values and last_function(training) == "sigmoid":
        text = f"A sigmoid cannot reach targets of {whole.minimum:.4g} to {whole.maximum:.4g}."
        yield at_end(training, 0.8, text, ("linear",), also=("AAL",))


def _logarithms_of_negatives(training: Training) -> bool:
    """Whether the loss is Keras' poisson, of outputs without a bound. PyTorch's is given logarithms
    unless it is told otherwise, and Keras' msle cuts values below zero off.
    """
    loss, keras = training.loss, training.model.framework != "torch"
    is_poisson = loss is not None and loss.name == "poisson"
    return is_poisson and keras and last_function(training) == "linear"


def _predicts_one_or_more(training: Training, loss: Loss) -> bool:
    """Whether PyTorch's poisson takes its predictions for logarithms, as it does unless it is told
    otherwise, and they are never negative.
    """
    low, _ = RANGES.get(last_function(training), (-1.0, 1.0))
    logarithms = loss.settings.get("log_input", True) is not False
    return training.model.framework == "torch" and logarithms and low >= 0


def odd_distance(training: Training) -> Signs:
    """A loss for values that these values do not suit, or that became invalid on its own: the
    logarithm of a prediction below zero is none.
    """
    loss, learning = training.loss, training.learning
    if loss and learning.broken and _logarithms_of_negatives(training):
        text = f"`{loss.name}` takes the logarithm of predictions, which can fall below zero."
        better = other_loss(loss, ("mse", "mae"))
        yield Sign("LCH", 0.85, text, evidence=(evidence("loss", loss.name),), change=better)
        return
    if loss is None or kind(loss) != "values" or (learning.well and learning.progress is not None):
        return
    low, high = loss.targets.minimum or 0.0, loss.targets.maximum or 0.0
    has_both_signs = low < 0 < high or (loss.targets.zero > 0)
    small = high <= 1 and _predicts_one_or_more(training, loss)
    misfits = {"mape": has_both_signs, "msle": low < 0, "poisson": low < 0 or small}
    misfits["kld"] = not loss.rows_sum_to_one and last_function(training) != "log_softmax"
    if misfits.get(loss.name, False) or loss.name in MARGINS | {"cosine_similarity"}:
        text = f"`{loss.name}` does not suit targets from {low:.4g} to {high:.4g}."
        better = other_loss(loss, ("mse", "mae"))
        yield Sign("LCH", 0.85, text, evidence=(evidence("loss", loss.name),), change=better)


RULES: tuple[Rule, ...] = (
    Rule("targets-out-of-reach", "contract", ("ACH", "AAL", "CPP", "scaling-mismatch"),
         "DeepDiagnosis 1",
         "The last activation cannot reach the targets.", out_of_reach),
    Rule("rectified-output", "contract", ("ACH", "AAL"), "DeepDiagnosis 3",
         "A relu at the output of a run that learned little.", dead_output),
    Rule("rectified-sigmoid", "contract", ("ACH", "AAL"), "Reprise",
         "A sigmoid follows a relu at the output.", half_sigmoid),
    Rule("values-under-softmax", "contract", ("ACH", "AAL"), "AutoTrainer (activation)",
         "Softmax over targets that do not sum to one.", squashed_values),
    Rule("distance-between-classes", "contract", ("LCH", "ACH", "ARM"),
         "DeepFD (loss); AutoTrainer (loss)",
         "A regression loss is used for classes.", distance_of_classes),
    Rule("labels-no-class-numbers", "contract", ("CPP",), "DeepDiagnosis 1; UMLAUT (input)",
         "Labels are not class indices.", no_class_numbers),
    Rule("entropy-of-one-unit", "contract", ("LCH",), "Neuralint f020; AutoTrainer (loss)",
         "Cross-entropy over classes gets a single unit.", entropy_of_one),
    Rule("one-unit-of-classes", "contract", ("LCN", "ACH"), "Neuralint f020; Reprise",
         "A single output for three or more classes.", one_unit),
    Rule("broadcast-targets", "contract", ("CPP", "LCH", "broadcast-loss"), "Reprise",
         "Targets and predictions differ in shape and are broadcast.", broadcast_targets),
    Rule("class-loss-of-values", "contract", ("LCH", "CPP", "ACH", "AAL"),
         "AutoTrainer (loss); DeepFD (loss)",
         "A loss for probabilities is used for regression.", classes_of_values),
    Rule("unsuited-distance", "contract", ("LCH",), "DeepFD (loss); DeepCrime (loss)",
         "A regression loss does not suit the range of the targets.", odd_distance),
)  # fmt: skip
