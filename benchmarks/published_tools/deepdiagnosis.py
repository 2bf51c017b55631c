"""DeepDiagnosis (Wardat et al., ICSE 2022): eight symptoms an epoch, a decision tree to causes.

Rules that cannot fire as published (variance of one mean, gradients paired with other layers,
messages that always hold) are as its paper means them.
"""

from collections.abc import Callable, Iterator

from benchmarks.published_tools.shared import (
    WINDOW,
    accuracies,
    any_window,
    at,
    invalid,
    kernels,
    last_index,
    outputs,
    per_epoch,
)
from bot.kernel.training_types import ActivationStep, WeightStep
from bot.training.diagnosis.learning import ENTROPIES
from bot.training.diagnosis.loss_contract import RANGES, last_function
from bot.training.diagnosis.rates import update_ratio
from bot.training.diagnosis.rule import Training, kernel

_SLOW = 20
_VANISHED = 1e-7
_DEAD = 0.7


def found(training: Training) -> tuple[str, ...]:
    """The codes of the first symptom's cause."""
    return next(_symptoms(training), ())


def _symptoms(training: Training) -> Iterator[tuple[str, ...]]:
    if _out_of_range(training):
        yield (at("ACH", last_index(training)),)
    yield from _outputs(training)
    losses, right = per_epoch(training, "loss"), accuracies(training)
    if any(invalid(x) for x in losses) or any(invalid(x) for x in right):
        yield _of_invalid(training)
    if any_window(losses, WINDOW) or any_window(right, _SLOW):
        yield _cause(training, "OCH")
    yield from _gradients(training)


def _out_of_range(training: Training) -> bool:
    loss, function = training.loss, last_function(training)
    if loss is None or function in ("softmax", "log_softmax"):
        return False
    if loss.name in ENTROPIES and not loss.from_logits and loss.name != "cross_entropy":
        return function in ("relu", "linear")
    low, high = RANGES.get(function, (float("-inf"), float("inf")))
    least, most = loss.targets.minimum, loss.targets.maximum
    return least is not None and most is not None and (least < low or most > high)


def _outputs(training: Training) -> Iterator[tuple[str, ...]]:
    for layer, seen in outputs(training):
        means = [x.mean for x in seen]
        place = at("ACH", layer.index)
        if _abnormal(seen):
            yield _cause(training, place)
        elif kernel(layer) and any_window(means, WINDOW):
            yield (place,) if layer.index == last_index(training) else _cause(training, "OCH")


def _abnormal(seen: list[ActivationStep]) -> bool:
    """Numerical error, dead at the end, or saturated at every fifth look."""
    if any(x.finite < 1 or x.mean == 0 for x in seen):
        return True
    dead = bool(seen) and (seen[-1].dead or 0.0) >= _DEAD
    return dead or any((x.saturated or 0.0) > 0.5 for x in seen[::WINDOW])


def _gradients(training: Training) -> Iterator[tuple[str, ...]]:
    ordered = list(kernels(training))
    for layer, seen in reversed(ordered):
        place = at("ACH", layer.index)
        if _any(seen, lambda x: invalid(x) or x == 0):
            yield (place, "LCH") if layer is ordered[-1][0] else (place,)
        elif _any(seen, lambda x: x < _VANISHED):
            yield ("HLR",) if _bad_rate(training) else ("LAD", place)
        elif any(invalid(x.weight_norm) for x in seen):
            yield _cause(training, place)


def _any(seen: list[WeightStep], test: Callable[[float], bool]) -> bool:
    return any(test(x.mean_abs) for x in seen if x.mean_abs is not None)


def _of_invalid(training: Training) -> tuple[str, ...]:
    if last_function(training) == "linear":
        return (at("ACH", last_index(training)),)
    return ("HLR",) if _bad_rate(training) else ("OCH",)


def _cause(training: Training, otherwise: str) -> tuple[str, ...]:
    """Its decision tree: weights, data, learning rate, or what is left."""
    poor = [layer.index for layer in training.learners if _poor(training, layer.index)]
    if poor:
        return tuple(at("WCI", index) for index in poor)
    inputs = training.data.inputs if training.data else None
    low, high = (inputs.minimum or 0.0, inputs.maximum or 0.0) if inputs else (0.0, 0.0)
    if low < -1 or high > 1:
        return ("CPP",)
    return ("HLR",) if _bad_rate(training) else (otherwise,)


def _poor(training: Training, index: int) -> bool:
    layer = next(x for x in training.learners if x.index == index)
    weight = kernel(layer)
    std = weight.initial.std if weight else None
    return std is not None and not 1e-5 <= std * std <= 10


def _bad_rate(training: Training) -> bool:
    ratio = update_ratio(training)
    return ratio is not None and not 1e-5 <= ratio <= 0.1
