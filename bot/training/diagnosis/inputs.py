"""What a model is given: range, scale of columns, invalid values, training against validation.

Sources: UMLAUT (input range, NaN), DeepDiagnosis (data). Their limit of one fires on standardised
data; here inputs must be far from it, and the run must have learned little.
"""

import math

from bot.kernel.training_code import ProgramCode
from bot.kernel.training_types import Data, Fault, Layer, Measurement, Summary
from bot.training.diagnosis.loss_contract import DISTANCES, kind
from bot.training.diagnosis.rule import (
    Rule,
    Sign,
    Signs,
    Training,
    change,
    embeds,
    evidence,
    in_line,
    kernel,
    label,
    recurrent,
)

_UNEVEN = 100.0
_GROWN, _FAR_ABOVE, _CENTRED = 8.0, 3.0, 0.5
_SMALL = 0.03
_APART, _MOSTLY = 4.0, 0.5
_FAR_SHIFT, _FAR_OFF = 3.0, 10.0
_TAIL = 10.0
_BELOW = 0.25
_PLAIN = 0.5
_FEW = 100
_ENOUGH = 8
_FAR = 100.0
_TWO_CLASSES, _SORTED, _SMALL_BUFFER = 1.8, 0.35, 0.25
_SHAPES = frozenset(("Flatten", "Reshape", "Permute", "Unflatten"))
_NORMS = ("BatchNorm", "LayerNorm", "Normalization", "Rescaling", "InstanceNorm", "GroupNorm")
_ALIKE = "Standardize the inputs, training and evaluation data alike."
_STANDARDISE = change("preprocessing", ("standardise",), _ALIKE)


def _sign(confidence: float, message: str, measurement: Measurement, words: str = _ALIKE) -> Sign:
    better = change("preprocessing", ("standardise",), words)
    return Sign("CPP", confidence, message, evidence=(measurement,), change=better)


def invalid(training: Training) -> Signs:
    """NaN or infinity in the inputs or targets."""
    data = training.data
    parts = {"inputs": data.inputs, "targets": data.targets} if data else {}
    for name, values in parts.items():
        if values is not None and values.finite < 1 and not _are_results(training, values):
            share, text = f"{1 - values.finite:.2%}", f"The {name} contain NaN or infinity."
            words = f"Remove or replace the invalid {name}."
            yield _sign(0.97, text, evidence(f"share of invalid {name}", share, "0"), words)


def _are_results(training: Training, values: Summary) -> bool:
    """Whether invalid values came after a loss that had a value: where inputs are computed from
    what is learned, they break with it.
    """
    first = next((step.loss for step in training.steps if step.loss is not None), None)
    return first is not None and math.isfinite(first) and values.finite < _MOSTLY


def alike(training: Training) -> Signs:
    """Samples that do not differ: there is nothing to tell them apart by."""
    data = training.data
    if data is not None and data.constant_columns >= 1 and training.learning.poor:
        text = "All samples are identical: every column of the inputs is constant."
        measurement = evidence("share of constant columns", data.constant_columns, "under 1")
        yield _sign(
            0.9, text, measurement, "Check how the program loads and transforms the inputs."
        )


def unscaled(training: Training) -> Signs:
    """Inputs far larger, or far smaller, than one."""
    learning = training.learning
    inputs = _numbers(training)
    if inputs is None or inputs.std is None or _has_normalization(training):
        return
    size = _size(inputs)
    level = next((x for limit, x in reversed(_LEVELS) if size > limit), 0.0)
    if level < _PLAIN and training.updates < _FEW:
        level = 0.0  # too short a run to blame what slows it a little
    if level and not learning.well and learning.below(_REACH.get(level, 0.75)):
        measurement = evidence("root mean square of the inputs", size, "about 1")
        yield _sign(level, "The inputs are not scaled.", measurement)
    elif learning.poor and not _codes(training) and 0 < inputs.std < _SMALL and size < 10 * _SMALL:
        measurement = evidence("std of the inputs", inputs.std, "about 1")
        yield _sign(0.6, "The inputs are almost zero.", measurement)


def _codes(training: Training) -> bool:
    return training.data is not None and training.data.ids


def _numbers(training: Training) -> Summary | None:
    """The inputs; of embedded codes, what they and the numbers beside them make up together."""
    data = training.data
    if data is None or not _codes(training):
        return data.inputs if data else None
    first = training.learners[0] if training.learners else None
    return first.input if first and _beside_codes(training, first) else None


def _beside_codes(training: Training, layer: Layer) -> bool:
    """Whether a layer takes embeddings joined with something else."""
    wide = kernel(layer)
    embedded = sum(x.units or 0 for x in training.layers if embeds(x))
    return bool(wide and embedded and (wide.fan_in or 0) > embedded)


def _has_normalization(training: Training) -> bool:
    """Whether the model scales its inputs itself, before anything else."""
    first = next((x for x in training.layers if x.type not in _SHAPES), None)
    return first is not None and first.type.startswith(_NORMS)


_LEVELS = ((3.0, 0.35), (6.0, 0.5), (15.0, 0.7), (50.0, 0.75))
"""The size of inputs, and how likely it is at fault in a run that learned little."""
_REACH = {0.35: 0.15, 0.7: 0.9, 0.75: 0.95}
"""How well a run may go before large inputs are spoken of."""


def _size(inputs: Summary) -> float:
    """The root mean square, which a few outliers do not move."""
    return math.hypot(inputs.mean or 0.0, inputs.std or 0.0)


def large_targets(training: Training) -> Signs:
    """Values to predict that are far from one: outputs have far to go."""
    loss, data = training.loss, training.data
    targets = data.targets if data else None
    if loss is None or targets is None or loss.name not in DISTANCES or kind(loss) != "values":
        return
    size = _size(targets)
    if size > _FAR and training.learning.below(0.9):
        measurement = evidence("root mean square of the targets", size, "about 1")
        yield _sign(0.5, "The targets are not scaled.", measurement, "Standardize the targets.")


def growing(training: Training) -> Signs:
    """A layer whose outputs are far larger than its inputs and its own weights make them: it
    multiplies by something else that is not scaled, as a matrix of neighbours.
    """
    learning = training.learning
    start, trivial = learning.start, learning.trivial
    if not learning.poor or start is None or (trivial and start < _FAR_ABOVE * trivial):
        return
    for layer in training.learners:
        times = _growth(layer)
        if times < _GROWN:
            continue
        text = (
            f"The outputs of {label(layer)} start {times:.2g} times as large as its inputs and"
            " weights explain: it also multiplies by something that is not scaled."
        )
        words = "Scale what the layer multiplies by: divide each row of a matrix by its sum, say."
        measurement = evidence("outputs over what the weights make", times, "about 1")
        yield _sign(0.85, text, measurement, words)
        return


def _growth(layer: Layer) -> float:
    """The size of a layer's outputs over what its weights alone would make of its inputs, 0 where
    that is not known.
    """
    own = kernel(layer)
    if own is None or recurrent(layer) or not layer.input or not layer.output:
        return 0.0
    if layer.activation == "exponential" or not own.initial.std or own.initial.mean is None:
        return 0.0
    if abs(own.initial.mean) > _CENTRED * own.initial.std:
        return 0.0  # inputs add up where all weights have one sign
    biases = [x.initial for x in layer.weights if x.role == "bias"]
    fans = max(own.fan_in or 0, own.fan_out or 0)
    usual = _size(layer.input) * own.initial.std * math.sqrt(fans)
    usual += max((_size(x) for x in biases), default=0.0)
    return _size(layer.output) / usual if usual else 0.0


def uneven(training: Training) -> Signs:
    """Columns of very different scale."""
    data = training.data
    if data is None or data.ids or not training.learning.poor or _has_normalization(training):
        return
    ratio = data.feature_std_ratio
    if ratio is not None and ratio > _UNEVEN and _size(data.inputs) > 1:
        measurement = evidence("largest std / smallest std", ratio, "under 100")
        yield _sign(0.6, "The columns of the inputs differ widely in scale.", measurement)


def parts_differ(training: Training) -> Signs:
    """Inputs that a model is judged by on another scale than those that it learned from."""
    train = training.data
    if train is None or train.ids:
        return
    for other in training.held_out:
        if _has_tail(train.inputs) or _has_tail(other.inputs):
            continue
        share = _columns_apart(train, other)
        if share >= _MOSTLY or _apart(train.inputs, other.inputs):
            stds = f"{train.inputs.std or 0:.3g} and {other.inputs.std or 0:.3g}"
            measurements = (
                evidence("std of both", stds, "equal"),
                *([evidence("columns on another scale", f"{share:.0%}")] if share else []),
            )
            text = f"Training and {other.part} inputs differ in scale."
            yield _parts_apart(text, measurements)
            return
        if _centred(train.inputs, other.inputs):
            text = (
                f"Training inputs are never negative, but {other.part} inputs are centred on zero."
            )
            low, high = other.inputs.minimum or 0.0, other.inputs.maximum or 0.0
            span = f"{low:.3g} to {high:.3g}"
            limit = f"{train.inputs.minimum or 0:.3g} to {train.inputs.maximum or 0:.3g}"
            yield _parts_apart(text, (evidence(f"{other.part} inputs", span, limit),))
            return


def _parts_apart(text: str, measurements: tuple[Measurement, ...]) -> Sign:
    also: tuple[Fault, ...] = ("scaling-mismatch",)
    return Sign("CPP", 0.85, text, also=also, evidence=measurements, change=_STANDARDISE)


def _columns_apart(one: Data, other: Data) -> float:
    """The share of columns that lie elsewhere, or spread far wider, in one part than in the other.
    Columns that never change in one of them say nothing, and what grows over time may grow on. A
    single column is the whole.
    """
    if len(one.columns) != len(other.columns) or len(one.columns) < 2:
        return 0.0
    both = [(a, b) for a, b in zip(one.columns, other.columns, strict=True) if a[1] and b[1]]
    apart = sum(
        max(a[1] / b[1], b[1] / a[1]) > _APART or abs(a[0] - b[0]) > _FAR_OFF * max(a[1], b[1])
        for a, b in both
    )
    return apart / len(both) if both else 0.0


def _has_tail(inputs: Summary) -> bool:
    """Whether a few values make the spread, which then says nothing of the others."""
    low, high, mean = inputs.minimum, inputs.maximum, inputs.mean or 0.0
    if low is None or high is None or not inputs.std:
        return False
    return max(high - mean, mean - low) > _TAIL * inputs.std


def _apart(a: Summary, b: Summary) -> bool:
    """Whether one is spread far wider, or lies far off and is far larger."""
    if not a.std or not b.std or a.mean is None or b.mean is None:
        return False
    off = abs(a.mean - b.mean) > _FAR_SHIFT * max(a.std, b.std)
    sizes = _size(a), _size(b)
    return max(a.std / b.std, b.std / a.std) > _APART or (off and max(sizes) > 2 * min(sizes))


def _centred(train: Summary, other: Summary) -> bool:
    """Whether inputs that are never negative in training, as pixels, lie around zero elsewhere.
    What only falls over time may leave the range of its past, but does not reach far into it.
    """
    low, high, least, most = other.minimum, other.maximum, train.minimum, train.maximum
    if low is None or high is None or least is None or most is None or least < 0 or most <= 0:
        return False
    return low < -_BELOW * most and high > _BELOW * most


def unseen_classes(training: Training) -> Signs:
    """Labels that a model is judged by and never learned, as where sorted data is split."""
    train = training.data
    if train is None or not _of_classes(training):
        return
    for other in training.held_out:
        unseen = _unseen(train, other)
        alone = other.part == "validation" and len(other.classes) == 1 < len(train.classes)
        if unseen or (alone and other.targets and other.targets.shape[:1] >= (_ENOUGH,)):
            text = f"The {other.part} data contain classes that the training data lack."
            if not unseen:
                text = f"The {other.part} data contain only one of {len(train.classes)} classes."
            known_classes = ", ".join(map(str, train.classes)) or _bounds(train)
            classes = ", ".join(map(str, other.classes)) or _bounds(other)
            measurements = (evidence(f"classes of the {other.part} data", classes, known_classes),)
            yield Sign("CPP", 0.9, text, evidence=measurements, change=_SHUFFLE)
            return


def _of_classes(training: Training) -> bool:
    loss = training.loss
    form = kind(loss) if loss else ""
    return form == "one-hot" or (
        form in ("classes", "binary") and loss is not None and loss.integer_targets
    )


def _unseen(train: Data, other: Data) -> bool:
    """Whether it holds a class that the training data lacks: by what they hold, or by bounds."""
    if train.classes and other.classes:
        return not {*other.classes} <= {*train.classes}
    return bool(train.targets and other.targets and _beyond(train.targets, other.targets))


def _bounds(data: Data) -> str:
    targets = data.targets
    return f"{targets.minimum or 0:.4g} to {targets.maximum or 0:.4g}" if targets else ""


_SHUFFLE = change("preprocessing", ("shuffle",), "Shuffle the data before you split it.")


def _beyond(train: Summary, other: Summary) -> bool:
    """Whether integer labels lie outside those that are known."""
    bounds = (train.minimum, train.maximum, other.minimum, other.maximum)
    if any(x is None or x != round(x) for x in bounds):
        return False
    low, high, least, most = (x or 0.0 for x in bounds)
    return least < low or most > high


def sorted_classes(training: Training) -> Signs:
    """Batches of one class: the data is sorted, and is not shuffled."""
    loss, plan = training.loss, training.plan
    if training.code is not None and "shuffle_buffer" in training.code.facts:
        yield from _small_buffer(training, training.code)
        return
    if training.code is not None and "random_classes" in training.code.facts:
        yield from _few_classes(training, training.code)
        return
    if loss is None or training.learning.well or not plan or plan.shuffle:
        return
    if not training.learning.poor and plan.shuffle is not None:
        return
    several = training.data and training.data.targets and (training.data.targets.distinct or 0) > 1
    alone = loss.targets.minimum == loss.targets.maximum and loss.integer_targets
    single = max(loss.class_shares, default=0.0) >= 1 if plan.shuffle is False else alone
    if several and single and (plan.batch_size or 0) >= 8:
        measurement = evidence("classes in a batch", 1, "more")
        words = f"Shuffle the training data{in_line(plan.line)}."
        yield _sign(0.6, "Each batch contains only one class.", measurement, words)


def _small_buffer(training: Training, code: ProgramCode) -> Signs:
    """Data that begins with rows of one class, shuffled within far fewer rows than there are."""
    loss, buffer, rows = (
        training.loss,
        code.integer("shuffle_buffer"),
        code.integer("shuffled_rows"),
    )
    if loss is None or not 0 < buffer < _SMALL_BUFFER * rows or not _of_classes(training):
        return
    if max(loss.class_shares, default=0.0) < 1 or (loss.targets.shape or (0,))[0] < _ENOUGH:
        return
    line = training.plan.line if training.plan else 0
    text = (
        f"The data is sorted by class, and `shuffle` draws from {buffer} of {rows} rows at a time:"
        " for long stretches a batch holds one class only."
    )
    better = change("preprocessing", ("shuffle",), f"Shuffle all rows: `shuffle({rows})`.")
    measurement = evidence("rows that a shuffle draws from", buffer, rows)
    yield Sign("CPP", 0.85, text, evidence=(measurement,), change=better, line=line)


def _few_classes(training: Training, code: ProgramCode) -> Signs:
    """Batches with far fewer classes than rows in any order would have: a loss that falls within
    them says nothing.
    """
    own, random, batches, line = (
        code.facts.get(x)
        for x in ("batch_classes", "random_classes", "label_batches", "loader_line")
    )
    if not (isinstance(own, int | float) and isinstance(random, int | float)):
        return
    if training.in_turns or not isinstance(batches, int) or batches < _ENOUGH:
        return
    if (
        code.facts.get("loader_shuffle")
        or random < _TWO_CLASSES
        or own - 1 > _SORTED * (random - 1)
    ):
        return
    place = int(line) if isinstance(line, int) else 0
    text = (
        f"A batch has {own:.1f} classes, where rows in any order would have {random:.1f}: the data"
        " is sorted by class, and each batch undoes what the last one taught."
    )
    better = change("preprocessing", ("shuffle",), f"Shuffle the training data{in_line(place)}.")
    measurement = evidence("classes in a batch", own, random)
    yield Sign("CPP", 0.85, text, evidence=(measurement,), change=better, line=place)


RULES: tuple[Rule, ...] = (
    Rule("invalid-inputs", "contract", ("CPP",), "UMLAUT (NaN)",
         "Inputs or targets contain NaN or infinity.", invalid),
    Rule("samples-alike", "contract", ("CPP",), "Reprise",
         "All samples are identical.", alike),
    Rule("unscaled-inputs", "data", ("CPP",), "UMLAUT (input range); DeepDiagnosis (data)",
         "Inputs are far larger or smaller than one.", unscaled),
    Rule("unscaled-targets", "data", ("CPP",), "Reprise",
         "Targets of a regression are far larger than one.", large_targets),
    Rule("sums-grow", "data", ("CPP",), "Reprise",
         "Outputs that start far larger than inputs and weights make them.", growing),
    Rule("uneven-columns", "data", ("CPP",), "Reprise",
         "The scales of input columns differ more than a hundredfold.", uneven),
    Rule("parts-differ", "data", ("CPP", "scaling-mismatch"), "Reprise",
         "Evaluation inputs have another scale than training inputs.", parts_differ),
    Rule("unseen-classes", "data", ("CPP",), "Reprise",
         "The training data lack classes of the evaluation data.", unseen_classes),
    Rule("sorted-classes", "data", ("CPP",), "Reprise",
         "Data sorted by class is not shuffled.", sorted_classes),
)  # fmt: skip
