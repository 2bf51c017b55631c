"""What the trace of a training run says of its hyperparameters, in the form in which criteria are
compared; "" where it does not say.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from bot.kernel.training_types import Layer, Optimizer, TrainingTrace

_SAME = 1e-3
"""Relative difference within which two learning rates are one."""
_LOSSES = {
    "nll": "cross_entropy", "categorical_crossentropy": "cross_entropy", "bce_logits": "bce",
    "sparse_categorical_crossentropy": "cross_entropy", "binary_crossentropy": "bce", "l1": "mae",
}  # fmt: skip
_NORMALISATIONS = {
    "batchnorm": "batch norm", "layernorm": "layer norm", "groupnorm": "group norm",
    "instancenorm": "instance norm", "batchnormalization": "batch norm",
    "layernormalization": "layer norm",
}  # fmt: skip
_LINEAR = ("linear", "dense")


def _only(values: Iterable[str]) -> str:
    """The one value that all agree on, "" for none or several."""
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else ""


def _first(trace: TrainingTrace) -> Optimizer | None:
    return trace.optimizers[0] if len(trace.optimizers) == 1 else None


def optimizer(trace: TrainingTrace) -> str:
    """The optimiser, lower case."""
    return _only(one.name for one in trace.optimizers)


def learning_rate(trace: TrainingTrace) -> str:
    """The largest rate of the run, which is the stated one also after a warm-up."""
    one = _first(trace)
    if one is None or len(set(one.rates)) != 1:
        return ""
    rates = [step.rate for step in trace.steps if step.rate is not None]
    return f"{max((*rates, *one.rates)):.6g}"


def momentum(trace: TrainingTrace) -> str:
    """The momentum of an optimiser that has one."""
    one = _first(trace)
    return f"{one.momentum:.6g}" if one is not None and one.name in {"sgd", "rmsprop"} else ""


def weight_decay(trace: TrainingTrace) -> str:
    """The weight decay of the optimiser."""
    one = _first(trace)
    return f"{one.weight_decay:.6g}" if one is not None else ""


def schedule(trace: TrainingTrace) -> str:
    """How the rate changes: constant, linear, cosine, exponential or step; "" for another way."""
    rates = [step.rate for step in trace.steps if step.rate is not None and not step.skipped]
    if len(rates) < 8 or len(trace.optimizers) != 1:
        return ""
    return shape(rates)


def shape(rates: Sequence[float]) -> str:
    """The name of the curve that rates follow from their largest one on."""
    peak = max(rates)
    falling = rates[rates.index(peak) :]
    if peak <= 0 or len(falling) < 8:
        return ""
    if all(math.isclose(rate, peak, rel_tol=_SAME) for rate in falling):
        return "constant"
    levels = [falling[0]]
    for rate in falling:
        if not math.isclose(rate, levels[-1], rel_tol=_SAME):
            levels.append(rate)
    if len(levels) < 8 and len(levels) < len(falling) / 4:
        return "step"
    return _curve(levels)


def _curve(levels: Sequence[float]) -> str:
    first, last, count = levels[0], levels[-1], len(levels) - 1
    span = first - last
    places = [at / count for at in range(count + 1)]
    curves = {
        "linear": [first - span * x for x in places],
        "cosine": [last + span * (1 + math.cos(math.pi * x)) / 2 for x in places],
        "exponential": [first * (max(last, 1e-12) / first) ** x for x in places],
    }
    errors = {
        name: fmean(abs(a - b) for a, b in zip(levels, curve, strict=True)) / first
        for name, curve in curves.items()
    }
    best = min(errors, key=lambda name: errors[name])
    return best if errors[best] < 0.02 else ""


def batch_size(trace: TrainingTrace) -> str:
    """The batch size of the training."""
    return _only(str(plan.batch_size) for plan in trace.plans if plan.batch_size)


def epochs(trace: TrainingTrace) -> str:
    """How often the training data were gone through."""
    return _only(str(plan.epochs) for plan in trace.plans if plan.epochs)


def steps(trace: TrainingTrace) -> str:
    """How many steps the optimiser took."""
    return str(trace.taken) if trace.taken and len(trace.optimizers) == 1 else ""


def loss(trace: TrainingTrace) -> str:
    """The loss, by its canonical name."""
    names = [_LOSSES.get(one.name, one.name) for one in trace.losses if one.name != "expression"]
    return _only(names)


def _layers(trace: TrainingTrace) -> list[Layer]:
    return list(trace.models[0].layers) if len(trace.models) == 1 else []


def _hidden(trace: TrainingTrace) -> list[Layer]:
    rows = [row for row in _layers(trace) if row.type.lower() in _LINEAR and row.units]
    return rows[:-1]


def widths(trace: TrainingTrace) -> str:
    """The units of the hidden layers, each once where all are alike."""
    units = [str(row.units) for row in _hidden(trace)]
    return _only(units) or ", ".join(units)


def hidden_layers(trace: TrainingTrace) -> str:
    """How many hidden layers a plain network has; "" where it has layers of another kind."""
    rows = [row.type.lower() for row in _layers(trace) if row.units or row.weights]
    is_plain = bool(rows) and all(name in _LINEAR for name in rows)
    return str(len(_hidden(trace))) if is_plain else ""


def activation(trace: TrainingTrace) -> str:
    """The activation of the hidden layers."""
    plain = _only(row.activation for row in _hidden(trace) if row.activation)
    rows = [row.activation for row in _layers(trace)[:-1] if row.activation]
    return plain or _only(name for name in rows if "softmax" not in name)


def dropout(trace: TrainingTrace) -> str:
    """The rate of dropout, in a plain network with how many of its hidden layers have it where not
    all do: "0.2 after 1 of 2 hidden layers"; "0" for a model without any.
    """
    layers = _layers(trace)
    rates = [rate for row in layers for rate in _rates(row)]
    if not rates:
        return "0" if layers else ""
    rate, hidden = _only(f"{one:.6g}" for one in rates), _hidden(trace)
    count = sum(_is_dropped(row, layers) for row in hidden)
    is_partial = 0 < count < len(hidden) and bool(hidden_layers(trace))
    return f"{rate} after {count} of {len(hidden)} hidden layers" if rate and is_partial else rate


def _rates(layer: Layer) -> Iterator[float]:
    """What a layer drops: one of dropout, one with dropout of its own, or one whose output the
    program drops by a function.
    """
    is_layer = "dropout" in layer.type.lower()
    for name in ("p", "rate") if is_layer else ("dropout", "functional_dropout"):
        value = layer.settings.get(name)
        if isinstance(value, int | float) and (value or is_layer):
            yield float(value)


def _is_dropped(layer: Layer, layers: Sequence[Layer]) -> bool:
    """Whether dropout comes between a layer and the next one that has weights."""
    if any(_rates(layer)):
        return True
    following = [row for row in layers if layer.index in row.inputs and row.index > layer.index]
    plain = [row for row in following if row.type.lower() not in _LINEAR]
    return any("dropout" in row.type.lower() or _is_dropped(row, layers) for row in plain)


_EVERY_LAYER = re.compile(
    r"\b(?:each|every|both|all)\b(?: of (?:them|these|those)\b|(?: of)?(?: the)?"
    r"(?: (?:\w+ )?(?:hidden|dense|linear|fully[- ]connected))? layers?\b)",
    re.IGNORECASE,
)


def same_dropout(observation: str, stated: str, sentence: str) -> bool:
    """Whether dropout is as a paper says: its rate and, where it says so, in each hidden layer."""
    rate, _, places = observation.partition(" after ")
    clauses = [row for row in re.split(r"[,;:]", sentence.lower()) if "dropout" in row]
    is_missing = bool(places) and any(_EVERY_LAYER.search(row) for row in clauses)
    return not is_missing and math.isclose(float(rate), float(stated), rel_tol=2e-3)


def normalisation(trace: TrainingTrace) -> str:
    """The kind of normalisation layers; "none" for a model without one."""
    layers = _layers(trace)
    plain = [row.type.lower().rstrip("123d") for row in layers]
    names = [_NORMALISATIONS[name] for name in plain if name in _NORMALISATIONS]
    return _only(names) if names else "none" if layers else ""


def preprocessing(trace: TrainingTrace) -> str:
    """How the inputs are scaled, by what the model was given: standardised, min-max or none."""
    rows = [one for one in trace.data if one.part == "train" and not one.ids and one.columns]
    if len(rows) != 1:
        return ""
    means, deviations = zip(*rows[0].columns, strict=True)
    varied = [(m, s) for m, s in zip(means, deviations, strict=True) if s > 1e-6]
    if varied and all(abs(m) < 0.5 and 0.5 < s < 2 for m, s in varied):
        return "standardised"
    low, high = rows[0].inputs.minimum, rows[0].inputs.maximum
    if low is not None and high is not None:
        if low >= -0.01 and 0.5 < high <= 1.01:
            return "min-max"
        return "none"
    return ""


def clipping(trace: TrainingTrace) -> str:
    """The limit of gradient clipping; "none" where none of the library's own was called."""
    if trace.code is None or not trace.steps:
        return ""
    limits = {f"{one.limit:.6g}" for one in trace.code.clippings if one.calls}
    return _only(limits) if limits else "none"


def warm_up(trace: TrainingTrace) -> str:
    """How long the rate rises at first: "40 steps, 1.9 epochs", "0 steps" where it begins with its
    largest; "" where that is no warm-up.
    """
    rates = [(step.step, step.rate) for step in trace.steps if step.rate and not step.skipped]
    if len(rates) < 8 or len(trace.optimizers) != 1:
        return ""
    peak = max(rate for _, rate in rates)
    top = next(at for at, (_, rate) in enumerate(rates) if rate >= peak * (1 - _SAME))
    rising = [rate for _, rate in rates[: top + 1]]
    if any(after < before for before, after in pairwise(rising)):
        return ""
    steps = rates[top][0] - rates[0][0]
    length = next((plan.steps_per_epoch for plan in trace.plans if plan.steps_per_epoch), None)
    epochs = f", {steps / length:.3g} epochs" if length and steps else ""
    return f"{steps} steps{epochs}"


def same_warm_up(observation: str, stated: str, _sentence: str = "") -> bool:
    """Whether a warm-up took as long as a paper says, in steps or epochs: whether its last step
    counts is read in both ways.
    """
    numbers = [float(part.split()[0]) for part in observation.split(", ")]
    value = float(stated)
    if abs(numbers[0] - value) <= max(1.0, 0.02 * value):
        return True
    if len(numbers) < 2:
        return False
    step = numbers[1] / numbers[0]
    return abs(numbers[1] - value) <= 1.01 * step + 0.02 * value


def _convolutions(trace: TrainingTrace) -> list[Layer]:
    return [row for row in _layers(trace) if row.type.lower().startswith("conv")]


def _side(value: object) -> str:
    """A size that is alike in all directions."""
    sides = {f"{side:g}" for side in value} if isinstance(value, tuple | list) else {str(value)}
    return _only(sides)


def channels(trace: TrainingTrace) -> str:
    """The output channels of the convolutions in order, once where all are alike."""
    rows = [str(row.units) for row in _convolutions(trace) if row.units]
    return _only(rows) or ", ".join(rows)


def kernel(trace: TrainingTrace) -> str:
    """The size of the convolutions' kernels, where all are alike."""
    return _only(_side(row.settings.get("kernel_size")) for row in _convolutions(trace))


def stride(trace: TrainingTrace) -> str:
    """The stride of the convolutions, where all are alike."""
    return _only(_side(row.settings.get("stride")) for row in _convolutions(trace))


def order(trace: TrainingTrace) -> str:
    """Whether the layers of normalisation come before or after the activation."""
    layers = {row.index: row for row in _layers(trace)}
    orders = set[str]()
    for row in layers.values():
        if row.type.lower().rstrip("123d") not in _NORMALISATIONS:
            continue
        before = [layers[at].activation for at in row.inputs if at in layers]
        if row.activation and not any(before):
            orders.add("normalisation first")
        elif any(before) and not row.activation:
            orders.add("activation first")
    return _only(orders)


_FAMILIES = {"he": (2, 1, 0), "xavier": (2, 1, 1), "lecun": (1, 1, 0), "default": (1, 3, 0)}
"""The variance of each family is the first number over the sum of the others times the fans, in and
out; "default" is PyTorch's.
"""


def initialisation(trace: TrainingTrace) -> str:
    """The family that the first values of the kernels are drawn from, by their spread: he, xavier,
    lecun, zero, or PyTorch's default; "" where several fit. The last layer does not count: it is
    often drawn in another way.
    """
    rows = [
        weight
        for layer in _layers(trace)
        for weight in layer.weights
        if weight.role == "kernel" and weight.fan_in and weight.fan_out
    ]
    candidates: set[str] | None = None
    for weight in rows[:-1] or rows:
        std, into, out = weight.initial.std, weight.fan_in or 1, weight.fan_out or 1
        if std is None:
            return ""
        slack = 0.02 + 4 / math.sqrt(2 * max(1, math.prod(weight.initial.shape)))
        fits = {
            name
            for name, (over, ins, outs) in _FAMILIES.items()
            if abs(std * math.sqrt((ins * into + outs * out) / over) - 1) <= slack
        } or ({"zero"} if std == 0 else {"other"})
        candidates = fits if candidates is None else candidates & fits
    return _only(candidates or ())
