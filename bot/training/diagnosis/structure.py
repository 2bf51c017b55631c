"""Layers too narrow or maps that shrink to nothing; and advice that is never a finding."""

from itertools import pairwise

from bot.kernel.training_types import Layer
from bot.training.diagnosis.loss_contract import copies, kind, width
from bot.training.diagnosis.rule import (
    UNHARMED,
    Rule,
    Sign,
    Signs,
    Training,
    change,
    dropout_share,
    embeds,
    evidence,
    kernel,
    label,
    recurrent,
)

# Layers too narrow for what passes them, and maps that shrink to nothing.
#
# Sources: Neuralint f013 (sizes), f019 (only a layer that is too narrow counts here).

_NARROW = 2
_MOST_DROPOUT = 0.75
_NEARLY_ALL = 0.85
_DENSE = 2
_ENOUGH = 0.95
_WIDE = 8


def narrow(training: Training) -> Signs:
    """A hidden layer with fewer units than there are classes, or of one or two units."""
    loss, learning = training.loss, training.learning
    if loss is None or not learning.doubtful:
        return
    classes = width(loss) if kind(loss) in ("one-hot", "classes") else 0
    for layer in training.layers:
        if learning.poor and embeds(layer) and 0 < (layer.units or 0) <= _NARROW:
            yield _widen(layer, 0.5, 8)
    for layer in training.hidden:
        units, own = layer.units or 0, kernel(layer)
        if own is None or (units == 1 and layer.index in training.attention):
            continue
        fan_in = own.fan_in or 0
        dense = len(own.initial.shape) <= _DENSE  # the filters of a convolution see many places
        if units == 1 and (recurrent(layer) or not dense):
            yield _widen(layer, 0.6, 8)
        single = units == 1 and fan_in > 1
        if not dense or not (learning.poor or single):
            continue
        if 0 < units < min(classes, 10) and classes > _NARROW:
            yield _widen(layer, 0.6 if units <= classes / 3 else 0.36, 2 * classes)
        elif 0 < units <= _NARROW and fan_in >= units and (units == 1 or not learning.falling):
            yield _widen(layer, 0.5 if fan_in >= 4 * units else 0.38, 8)


def single(training: Training) -> Signs:
    """One unit between wide layers, or one that has to remember a sequence, told even where all was
    learned; but an autoencoder's code may be as narrow.
    """
    if not training.learning.well or copies(training):
        return
    for layer, after in pairwise(training.learners):
        own = kernel(layer)
        wide = own is not None and (own.fan_in or 0) > 1 and (after.units or 0) >= _WIDE
        narrow = layer.units == 1 and (wide or recurrent(layer))
        if narrow and layer.index not in training.attention:
            yield _widen(layer, UNHARMED, 8)


def _field(layer: Layer) -> tuple[float, ...]:
    """The size of a layer's filters, () where it has none."""
    size = layer.settings.get("kernel_size")
    return size if isinstance(size, tuple) else ()


def _places(training: Training, layer: Layer) -> tuple[int, ...]:
    """How many places the filters of a layer pass over, in each direction."""
    shape = layer.input.shape if layer.input else ()
    return shape[2:] if training.model.framework == "torch" else shape[1:-1]


def _widen(layer: Layer, confidence: float, units: int) -> Sign:
    return Sign(
        "LCN",
        confidence,
        f"Only {layer.units} unit{'s' * (layer.units != 1)} in {label(layer)}: a bottleneck.",
        (layer.index,),
        evidence=(evidence("units", layer.units or 0, units),),
        change=change(
            f"units({layer.index})", (units, 4 * units), f"Give {label(layer)} {units} units."
        ),
        direction="up",
    )


def no_hidden(training: Training) -> Signs:
    """A single layer for targets that it does not reach."""
    learning = training.learning
    if len(training.learners) != 1 or not learning.poor:
        return
    if learning.skill is not None and (learning.skill > -0.5 or not learning.falling):
        index = training.learners[0].index
        better = change("layers", ("dense",), "Add a hidden layer with a relu.")
        text = "A single layer can only learn linear decision boundaries."
        yield Sign("LRM", 0.4, text, (index,), change=better, symptom=True)


def dropout_width(training: Training) -> Signs:
    """Dropout that leaves less than a quarter."""
    for layer in training.layers:
        share = dropout_share(layer)
        if share is None or not training.learning.poor:
            continue
        if _MOST_DROPOUT < share <= 1:
            where = "after" if "functional_dropout" in layer.settings else "in"
            text = f"Dropout {where} {label(layer)} drops {share:.0%} of its inputs."
            measurements = (evidence("dropout", share, 0.5),)
            better = change(
                f"rate({layer.index})",
                (0.2, 0.5),
                f"Lower the dropout {where} {label(layer)} to 0.2, or remove it.",
            )
            confidence = 0.8 if share > _NEARLY_ALL else 0.5
            yield Sign("LAD", confidence, text, (layer.index,), (), measurements, better, "down")


def output_dropout(training: Training) -> Signs:
    """Dropout behind the last layer with weights: it takes answers away."""
    if not training.learning.doubtful or not training.learners:
        return
    for layer in training.layers[training.order[training.learners[-1].index] :]:
        function = "functional_dropout" in layer.settings
        share = dropout_share(layer) if function or "dropout" in layer.type.lower() else None
        if share is not None and share > 0:
            where = "after" if function else "in"
            text = f"Dropout {where} {label(layer)} drops outputs of the model."
            measurements = (evidence("dropout", share, 0),)
            better = change(
                f"rate({layer.index})", (0,), f"Remove the dropout {where} {label(layer)}."
            )
            yield Sign("LAD", 0.65, text, (layer.index,), (), measurements, better, "down")


def pointwise(training: Training) -> Signs:
    """A first convolution that sees one place at a time: no neighbours, no edges, no frequency."""
    first = next((x for x in training.learners if _field(x)), None)
    if first is None:
        return
    learning = training.learning
    if not (learning.poor or (_sees_nothing(first) and learning.below(_ENOUGH))):
        return
    if max(_field(first)) == 1 and max(_places(training, first), default=1) > 1:
        better = change(
            f"kernel_size({first.index})", (3, 5), f"Give {label(first)} a kernel size of 3."
        )
        text = f"The filters of {label(first)} see one position at a time, without its neighbours."
        measurements = (evidence("kernel size", 1, "3 or more"),)
        yield Sign("LCF", 0.65, text, (first.index,), (), measurements, better, "up")


def _sees_nothing(layer: Layer) -> bool:
    """Whether filters of size one can do no more than scale a single channel, or skip places."""
    stride = layer.settings.get("stride", layer.settings.get("strides", 1))
    strides = stride if isinstance(stride, tuple) else (stride,)
    weights = kernel(layer)
    alone = weights is not None and weights.fan_in == 1
    return alone or any(isinstance(x, int | float) and x > 1 for x in strides)


SHAPE_RULES: tuple[Rule, ...] = (
    Rule("narrow-layer", "dynamics", ("LCN",), "Neuralint f019; Reprise",
         "A hidden layer with fewer units than classes, or with only one or two.", narrow),
    Rule("single-unit", "dynamics", ("LCN",), "Reprise",
         "A single unit between wide layers, or a recurrent layer of one unit.", single),
    Rule("heavy-dropout", "contract", ("LAD",), "UMLAUT (dropout)",
         "Dropout of more than three quarters.", dropout_width),
    Rule("dropout-on-output", "contract", ("LAD",), "Reprise",
         "Dropout after the last layer.", output_dropout),
    Rule("pointwise-convolution", "dynamics", ("LCF",), "Reprise",
         "A first convolution with a kernel size of 1.", pointwise),
    Rule("no-hidden-layer", "dynamics", ("LRM",), "Reprise",
         "A single layer that learns little.", no_hidden),
)  # fmt: skip


# Advice: what tools call a fault and good programs do too. Never a finding.
#
# Sources: Neuralint f002, f005, f006, f016, f018, f019, f023; UMLAUT (dropout, over-fitting).

_DROPOUT = 0.5
_GAP = 0.1


def dropout_style(training: Training) -> Signs:
    """Dropout of more than half."""
    for layer in training.layers:
        share = dropout_share(layer)
        if share is not None and _DROPOUT < share <= 1 and not kernel(layer):
            text = f"Dropout in {label(layer)} drops more than half of its inputs."
            measurements = (evidence("dropout", share, _DROPOUT),)
            yield Sign("LAD", 0.3, text, (layer.index,), evidence=measurements)


def bias_before_norm(training: Training) -> Signs:
    """A bias that the batch norm behind it takes away again."""
    for layer, after in pairwise(training.layers):
        is_normalized = any(x.role == "scale" for x in after.weights)
        if is_normalized and kernel(layer) and any(x.role == "bias" for x in layer.weights):
            text = f"The normalization after {label(layer)} cancels its bias."
            yield Sign("BCI", 0.2, text, (layer.index,))


def over_fitting(training: Training) -> Signs:
    """Training accuracy far above validation accuracy."""
    last = training.epochs[-1].values if training.epochs else {}
    train, other = last.get("accuracy"), last.get("val_accuracy")
    if train is not None and other is not None and train - other >= _GAP:
        measurements = (evidence("accuracy", train), evidence("validation accuracy", other))
        yield Sign(
            "HNE",
            0.3,
            "The model overfits: training accuracy is far above validation accuracy.",
            evidence=measurements,
        )


def shrinking(training: Training) -> Signs:
    """A later layer wider than an earlier one."""
    dense = [x for x in training.hidden if _rank(x) == 2 and x.units]
    for layer, after in pairwise(dense):
        if (after.units or 0) > (layer.units or 0):
            text = f"There are more units in {label(after)} than in {label(layer)} before it."
            yield Sign("LCN", 0.2, text, (after.index,))


def _rank(layer: Layer) -> int:
    weight = kernel(layer)
    return len(weight.initial.shape) if weight else 0


STYLE_RULES: tuple[Rule, ...] = (
    Rule("dropout-over-half", "style", ("LAD",), "UMLAUT (dropout)",
         "Dropout of more than half.", dropout_style),
    Rule("bias-before-norm", "style", ("BCI",), "Neuralint f005",
         "A bias right before a normalization.", bias_before_norm),
    Rule("over-fitting", "style", ("HNE",), "UMLAUT (over-fitting); AutoTrainer (over-fit)",
         "Training accuracy is far above validation accuracy.", over_fitting),
    Rule("widening", "style", ("LCN",), "Neuralint f019",
         "A dense layer is wider than the one before it.", shrinking),
)  # fmt: skip
