"""Weights before the first step, and penalties and decay that outweigh what is to be learned."""

import math
from statistics import median

from bot.kernel.training_types import Layer, Weight
from bot.training.diagnosis.learning import targets_of
from bot.training.diagnosis.loss_contract import DISTANCES
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
    recurrent,
)

# Weights as they were before the first step, against He, Glorot and LeCun.
#
# Sources: Neuralint f004 and f024, DeepDiagnosis' poor weight (its variance is of a single mean
# as published, and cannot fire; here it is of the tensor).

_SAME = 1e-5
_LARGE, _BEYOND = 3.0, 10.0
_SMALL = 0.2
_RAREST, _BEYOND_ODDS = 1e-3, 2.0
_BIAS, _FAR_SCALE, _GATES = 0.4, 5.0, 10.0
_ENOUGH = 16
_UNKNOWN = 0.3  # nothing that was measured says what it does
_DROWNING_LEVELS = ((10.0, 0.9), (3.0, 0.8), (1.0, 0.6))


def constant(training: Training) -> Signs:
    """Kernels of one value: all units of the layer stay alike."""
    for layer in training.learners:
        for weight in layer.weights:
            if weight.role in ("kernel", "recurrent") and weight.trainable and _same(weight):
                confidence = _symmetry(training, layer, weight)
                if confidence:
                    yield _wrong(layer, weight, confidence, "all weights start with the same value")
                break
    for layer in training.layers if training.learning.poor else ():
        for weight in layer.weights:
            vectors = weight.role == "embedding" and weight.initial.shape[-1] > 1
            if vectors and weight.trainable and _same(weight):
                yield _wrong(layer, weight, 0.6, "all vectors start with the same value")


def _same(weight: Weight) -> bool:
    initial = weight.initial
    size = math.prod(initial.shape)
    if initial.std is None or size < 2:
        return False
    return initial.std <= _SAME * max(abs(initial.mean or 0.0), _SAME)


def _symmetry(training: Training, layer: Layer, weight: Weight) -> float:
    """An output, the end of a residual branch or a low-rank update may begin at zero: what an
    activation of its own follows is none of these.
    """
    branch = training.model.residual and not layer.activation
    spared = layer.index in training.tail or branch
    zero = weight.initial.mean == 0
    if spared and zero:
        return 0.5 if training.learning.badly and not branch else 0.0
    if spared and training.learning.well:
        return UNHARMED
    # What began at zero and left it was not held there by its neighbours, as of an adapter.
    if zero and not training.learning.poor and any(kernel_norms(training, layer.index)):
        return 0.0
    return 0.95


def _wrong(layer: Layer, weight: Weight, confidence: float, what: str) -> Sign:
    initial = weight.initial
    better = "he_normal" if "relu" in layer.activation else "glorot_uniform"
    limit = f"about {expected(weight):.3g}" if expected(weight) else ""
    return Sign(
        "WCI",
        confidence,
        f"In {label(layer)}, {what}.",
        (layer.index,),
        evidence=(evidence(f"std of {weight.name}", initial.std or 0.0, limit),),
        change=change(
            f"kernel_initializer({layer.index})",
            (better,),
            f"Initialize {label(layer)} with `{better}`.",
        ),
    )


def expected(weight: Weight) -> float:
    """The standard deviation by Glorot, 0 where the fans are unknown."""
    fans = (weight.fan_in or 0) + (weight.fan_out or 0)
    return math.sqrt(2 / fans) if fans else 0.0


def scale(training: Training) -> Signs:
    """Kernels far larger or smaller than any usual initialiser makes them. Those that are far too
    large are told even where all was learned.
    """
    learning = training.learning
    for layer in training.learners:
        weight = kernel(layer)
        ratio = off_scale(layer, weight) if weight and not _same(weight) else None
        if ratio is None or weight is None:
            continue
        unharmed = not learning.below(0.9 if ratio < 5 else 0.97)
        if ratio > (_BEYOND if unharmed else _LARGE):
            confidence = 0.45 if ratio < 5 else 0.6 if ratio < _BEYOND else 0.85
            confidence = UNHARMED if unharmed else confidence
            yield _wrong(
                layer, weight, confidence, f"the weights start {ratio:.2g} times too large"
            )
        elif ratio < _SMALL and learning.doubtful and layer.index not in training.tail:
            confidence = 0.1 if ratio > 0.05 else 0.4 if ratio > 0.01 else 0.85
            text = f"the weights start {1 / ratio:.2g} times too small"
            yield _wrong(layer, weight, confidence, text)


_MOSTLY = 0.5


def one_signed(training: Training) -> Signs:
    """Kernels without a sign to tell inputs apart: every unit begins as a large sum of them."""
    if not training.learning.below(0.97):
        return
    for layer in training.learners:
        weight = kernel(layer)
        if weight is None or not weight.trainable or _same(weight):
            continue
        low, high = weight.initial.minimum, weight.initial.maximum
        if low is None or high is None or math.prod(weight.initial.shape) < _ENOUGH:
            continue
        if weight.initial.zero > _MOSTLY:
            continue  # an identity, say
        if low >= 0 or high <= 0:
            yield _wrong(layer, weight, 0.8, "all weights start with the same sign")


def off_scale(layer: Layer, weight: Weight) -> float | None:
    """How far over the largest, or under the smallest, usual standard deviation a kernel is. Those
    of recurrent layers begin as Glorot says, or in PyTorch by the number of units.
    """
    std, fan_in, fan_out = weight.initial.std, weight.fan_in, weight.fan_out
    if not std or not fan_in or math.prod(weight.initial.shape) < 2:
        return None
    glorot = math.sqrt(2 / (fan_in + (fan_out or fan_in)))
    other = 1 / (3 * (layer.units or 1)) if recurrent(layer) else 2 / fan_in
    largest = max(math.sqrt(other), glorot)
    smallest = min(math.sqrt(1 / (3 * fan_in)), glorot)
    return max(std / largest, 1.0) if std > smallest else std / smallest


def bias(training: Training) -> Signs:
    """Biases that begin far from zero, beyond what PyTorch draws; gates of recurrent layers and
    an output's prior are spared. Those that lie very far are told even where all was learned.
    """
    well = training.learning.well
    for layer in training.learners:
        weight = next((x for x in layer.weights if x.role == "bias" and x.trainable), None)
        if weight is None:
            continue
        largest = max(abs(weight.initial.minimum or 0.0), abs(weight.initial.maximum or 0.0))
        alike = weight.initial.minimum == weight.initial.maximum
        if recurrent(layer) and largest < (_FAR_SCALE if alike else _GATES):
            continue
        own = kernel(layer)
        limit = 1 / math.sqrt(own.fan_in) if own and own.fan_in else 1.0
        if largest < _BIAS or largest <= 1.5 * limit:
            continue
        last = layer.index in training.tail
        if well and (last or largest < _FAR_SCALE):
            continue
        if layer.activation == "exponential" and layer.functional:
            continue  # of a logarithm, as that of a variance, it sets where training begins
        prior = last and largest < _FAR_SCALE
        has_name = training.loss is not None and training.loss.name != "expression"
        if prior and not has_name:
            continue  # what a loss that has no name takes the output for is not known
        if last and has_name and _fits_targets(training, weight.initial.mean or 0.0):
            continue
        yield Sign(
            "BCI",
            UNHARMED if well else 0.35 if prior else _drowning_confidence(layer, largest),
            f"In {label(layer)}, the bias starts far from zero.",
            (layer.index,),
            evidence=(evidence(f"largest value of {weight.name}", largest, limit),),
            change=change(
                f"bias_initializer({layer.index})",
                ("zeros",),
                f"Initialize the bias of {label(layer)} with zeros.",
            ),
        )


def _fits_targets(training: Training, start: float) -> bool:
    """Whether a bias of the output starts on the side where the targets lie: as the log-odds of
    rare labels do, or at the mean of values.
    """
    targets = training.loss.targets if training.loss else None
    if targets is None or targets.mean is None or targets.minimum is None:
        return False
    if targets.minimum >= 0 and (targets.maximum or 0.0) <= 1:
        share = min(max(targets.mean, _RAREST), 1 - _RAREST)
        odds = math.log(share / (1 - share))
        return start * odds > 0 and abs(start) <= _BEYOND_ODDS * abs(odds)
    return abs(start - targets.mean) <= (targets.std or 0.0)


def no_bias(training: Training) -> Signs:
    """A last layer without a bias, and targets whose mean is as far from zero as they spread."""
    loss, output = training.loss, training.output
    if loss is None or output is None or loss.name not in DISTANCES:
        return
    if kernel(output) is None or recurrent(output) or any(x.role == "bias" for x in output.weights):
        return
    whole = targets_of(loss, training.data)
    mean, std = abs(whole.mean or 0.0), whole.std or 0.0
    if mean < std or not mean or not training.learning.below(0.95):
        return
    yield Sign(
        "BCI",
        0.9,
        f"The output has no bias, but the mean of the targets is {whole.mean:.4g}.",
        (output.index,),
        evidence=(evidence("mean of the targets", whole.mean or 0.0, std),),
        change=change(f"bias({output.index})", (), f"Add a bias to {label(output)}."),
    )


def _drowning_confidence(layer: Layer, largest: float) -> float:
    """How likely a bias is at fault, by its size over what the kernel makes of the inputs."""
    own, inputs = kernel(layer), layer.input
    if own is None or inputs is None or not own.fan_in or own.initial.std is None:
        return _UNKNOWN
    size = math.hypot(inputs.mean or 0.0, inputs.std or 0.0)
    share = largest / max(own.initial.std * math.sqrt(own.fan_in) * size, 1e-9)
    return next((x for limit, x in _DROWNING_LEVELS if share >= limit), 0.3)


INITIAL_RULES: tuple[Rule, ...] = (
    Rule("constant-kernel", "initial", ("WCI",), "Neuralint f004; DeepDiagnosis (poor weight)",
         "All weights of a layer start with the same value, so units stay alike.", constant),
    Rule("kernel-scale", "initial", ("WCI",), "DeepDiagnosis (poor weight); He, Glorot, LeCun",
         "Initial weights more than three times larger, or five times smaller, than usual.", scale),
    Rule("one-signed-kernel", "initial", ("WCI",), "Reprise",
         "All weights of a layer start with the same sign.", one_signed),
    Rule("no-bias", "initial", ("BCI",), "Reprise",
         "The last layer has no bias, but the targets are not centred on zero.", no_bias),
    Rule("bias-not-zero", "initial", ("BCI",), "Neuralint f024",
         "A bias starts far from zero.", bias),
)  # fmt: skip


# Penalties and decay that outweigh what is to be learned. No published tool looks at them.

_SHARE = 0.25
_AT_FIRST = 1.0
_SHRUNK_TO = 0.6
_DECAY = 0.05
_ACTIVITY = 0.05
_LEARNING_LEVEL, _NEARLY = 0.95, 0.99
"""How well a run may go before a penalty is spoken of, and one that is far too large."""
_FAR_PENALTY = 4.0
_STRONG = (0.1, 0.5)
_SHRUNK = 0.08


def penalty(training: Training) -> Signs:
    """Penalties of the size of the loss itself."""
    share, first = penalty_share(training), _first_share(training)
    if share is None or (share < _SHARE and first < _AT_FIRST):
        return
    beyond = first >= _AT_FIRST and any(map(_strong, training.layers))
    fine = (
        0.75
        if share < 2 * _SHARE
        else _NEARLY
        if share > _FAR_PENALTY * _SHARE
        else _LEARNING_LEVEL
    )
    harmed = training.learning.below(fine if share >= _SHARE else _LEARNING_LEVEL)
    if not harmed and not beyond:
        return
    layers = _penalised(training)
    better = change(
        "weight_regularizer", ("none", "x0.01"), "Remove the weight penalty, or divide it by 100."
    )
    yield Sign(
        "RAW",
        min(0.5 + max(share, first / 4) / 2, 0.9) if harmed else UNHARMED,
        "The penalty on the weights outweighs the loss.",
        layers,
        evidence=(evidence("penalty / data loss", share, _SHARE),),
        change=better,
    )


def _penalised(training: Training) -> tuple[int, ...]:
    """The layers with a penalty, () for all: by their regularizers, by the terms that the program
    adds to the loss, or by how they shrink.
    """
    indices = tuple(x.index for x in training.layers if x.regularizer)
    if indices:
        return indices
    added_layers = tuple(
        layer.index
        for layer in training.learners
        if any(x.penalised for x in training.changed.get(layer.index, ()))
    )
    if added_layers:
        return (
            added_layers
            if len(added_layers) < len(training.learners) or len(added_layers) == 1
            else ()
        )
    return tuple(x.index for x in training.layers if _shrinks(training, x.index))


def activity(training: Training) -> Signs:
    """A penalty on what a layer returns, where the run learned too little."""
    layers = tuple(x.index for x in training.layers if _on_activity(x))
    share = penalty_share(training)
    if not layers or share is None or share < _ACTIVITY or not training.learning.below(0.75):
        return
    yield Sign(
        "RAW",
        0.6,
        "The activity regularizer keeps the model from learning.",
        layers,
        evidence=(evidence("penalty / data loss", share, _ACTIVITY),),
        change=change(
            "weight_regularizer",
            ("none", "x0.01"),
            "Remove the activity regularizer, or divide it by 100.",
        ),
    )


def _strong(layer: Layer) -> bool:
    """Whether a penalty is a hundred times as strong as usual ones."""
    l1, l2 = (layer.settings.get(f"kernel_regularizer.{name}") for name in ("l1", "l2"))
    limits = ((l1, _STRONG[0]), (l2, _STRONG[1]))
    return any(isinstance(x, float) and x >= limit for x, limit in limits)


def _on_activity(layer: Layer) -> bool:
    return any(key.startswith("activity_regularizer.") and x for key, x in layer.settings.items())


def penalty_share(training: Training) -> float | None:
    """The median of penalty over data loss, in the later half of the run."""
    late = training.steps[len(training.steps) // 2 :]
    pairs = [(x.penalty, x.loss) for x in late if x.penalty is not None and x.loss is not None]
    shares = [p / max(loss - p, 1e-9) for p, loss in pairs]
    return median(shares) if shares else None


def _first_share(training: Training) -> float:
    """Penalty over data loss at the first step: what weighs most then rules where it leads."""
    first = next((x for x in training.steps if x.penalty is not None and x.loss is not None), None)
    if first is None or first.penalty is None or first.loss is None:
        return 0.0
    return first.penalty / max(first.loss - first.penalty, 1e-9)


def _shrinks(training: Training, index: int) -> bool:
    """Whether a kernel loses much of its norm, as under a penalty that the program adds itself."""
    norms = kernel_norms(training, index)
    return len(norms) > 2 and norms[-1] < _SHRUNK_TO * norms[0]


def shrunk(training: Training) -> Signs:
    """Kernels that shrink to nothing, as under a penalty that no record names."""
    decayed = training.optimizer is not None and training.optimizer.weight_decay >= _DECAY
    if decayed or not training.learning.below(0.95):
        return
    for layer in training.learners:
        norms = kernel_norms(training, layer.index)
        if len(norms) > 2 and norms[0] > 0 and norms[-1] < _SHRUNK * norms[0]:
            share = norms[-1] / norms[0]
            yield Sign(
                "RAW",
                0.8,
                f"The weights of {label(layer)} shrink to almost zero, as under a penalty.",
                (layer.index,),
                evidence=(evidence("final norm / initial norm", share, _SHRUNK),),
                change=change(
                    "weight_regularizer", ("none", "x0.01"), "Remove the weight penalty."
                ),
            )


def kernel_norms(training: Training, index: int) -> list[float]:
    """The norms of a layer's kernel, or of its embeddings, at the sampled steps."""
    rows = [x for x in training.changed.get(index, ()) if x.role in ("kernel", "embedding")]
    return [x.weight_norm for x in rows if x.weight_norm is not None]


def decay(training: Training) -> Signs:
    """Weight decay within the gradient that is larger than what it should hold back."""
    optimizer = training.optimizer
    if optimizer is None:
        return
    limit = 1.0 if optimizer.decoupled else _DECAY
    far = optimizer.weight_decay >= _FAR_PENALTY * limit
    if not training.learning.below(_NEARLY if far else _LEARNING_LEVEL):
        return
    if optimizer.weight_decay >= limit:
        yield Sign(
            "RAW",
            0.8,
            f"The weight decay of `{optimizer.name}` outweighs the loss.",
            evidence=(evidence("weight decay", optimizer.weight_decay, limit),),
            change=change(
                "weight_decay",
                (0, 1e-4),
                f"Remove the weight decay{in_line(optimizer.line)}, or lower it to 0.0001.",
            ),
            direction="down",
        )


REGULARISATION_RULES: tuple[Rule, ...] = (
    Rule("penalty-outweighs", "rate", ("RAW",), "Reprise",
         "Penalties on weights are as large as the loss.", penalty),
    Rule("activity-penalty", "rate", ("RAW",), "Reprise",
         "A penalty on the outputs of a layer keeps the model from learning.", activity),
    Rule("weights-shrink", "rate", ("RAW",), "Reprise",
         "The weights of a layer shrink to almost zero.", shrunk),
    Rule("decay-outweighs", "rate", ("RAW",), "Reprise",
         "Weight decay is far larger than usual.", decay),
)  # fmt: skip
