"""A training trace → the curves of its plot, thinned to what a picture can show."""

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median

from bot.models.diagnosis import Curve
from bot.models.training import ActivationStep, Layer, TrainingStep, TrainingTrace, WeightStep

MOST_POINTS, _MOST_LAYERS, _MOST_OPTIMIZERS, _HUGE = 200, 4, 12, 1e100
Point = tuple[float, float]
_KERNELS = {"kernel", "embedding", "recurrent"}


def curves(trace: TrainingTrace) -> tuple[Curve, ...]:
    """The loss of training and validation, and for some layers the norm of gradients, the ratio of
    updates to weights, and the share of dead units.
    """
    names = _names(trace)
    found = [*_losses(trace), *_weights(trace, names), *_dead(trace, names)]
    return tuple(curve for curve in found if curve.points)


def thinned(points: Iterable[Point]) -> tuple[Point, ...]:
    """Finite points in order; of too many, the means of neighbours."""
    kept = [point for point in points if all(abs(part) < _HUGE for part in point)]
    size = math.ceil(len(kept) / MOST_POINTS) or 1
    groups = (kept[at : at + size] for at in range(0, len(kept), size))
    return tuple((fmean(x for x, _ in group), fmean(y for _, y in group)) for group in groups)


def _losses(trace: TrainingTrace) -> Iterator[Curve]:
    optimizers = list(dict.fromkeys(step.optimizer for step in trace.steps))
    for number, optimizer in enumerate(optimizers[:_MOST_OPTIMIZERS]):
        steps = (step for step in trace.steps if step.optimizer == optimizer)
        name = f"training (optimizer {number + 1})" if len(optimizers) > 1 else "training"
        yield Curve(panel="loss", name=name, points=thinned(_known(steps, "loss")))
    validation = [(row.step, row.values.get("val_loss")) for row in trace.epochs]
    points = ((float(at), value) for at, value in validation if value is not None)
    yield Curve(panel="loss", name="validation", points=thinned(points))


def _known(steps: Iterable[TrainingStep], field: str) -> Iterator[Point]:
    for step in steps:
        if (value := getattr(step, field)) is not None:
            yield float(step.step), value


def _weights(trace: TrainingTrace, names: dict[int, str]) -> Iterator[Curve]:
    rows = [(step.step, weight) for step in trace.steps for weight in step.weights]
    kernels = [(at, row) for at, row in rows if row.role in _KERNELS]
    layers = _some(sorted({row.layer for _, row in kernels}))
    for layer in layers:
        own = [(at, row) for at, row in kernels if row.layer == layer]
        name = names.get(layer, f"layer {layer}")
        yield Curve(panel="gradients", name=name, points=_median(own, "norm"))
        yield Curve(panel="updates", name=name, points=_median(own, "update_ratio"))


def _dead(trace: TrainingTrace, names: dict[int, str]) -> Iterator[Curve]:
    rows = [(step.step, row) for step in trace.steps for row in step.activations]
    told = [(at, row) for at, row in rows if row.dead is not None]
    last = {row.layer: row.dead or 0.0 for _, row in told}
    worst = sorted(last, key=lambda layer: (-last[layer], layer))[:_MOST_LAYERS]
    for layer in sorted(worst):
        own = [(at, row) for at, row in told if row.layer == layer]
        name = names.get(layer, f"layer {layer}")
        yield Curve(panel="dead", name=name, points=_median(own, "dead"))


def _median(
    rows: Sequence[tuple[int, WeightStep | ActivationStep]], field: str
) -> tuple[Point, ...]:
    """One value a step: a layer may have several tensors, and several models a layer each."""
    by_step: dict[int, list[float]] = {}
    for at, row in rows:
        value = getattr(row, field)
        if value is not None and math.isfinite(value):
            by_step.setdefault(at, []).append(value)
    return thinned((float(at), median(values)) for at, values in sorted(by_step.items()))


def _some(layers: Sequence[int]) -> list[int]:
    """The first, the last and some between."""
    most = _MOST_LAYERS - 1
    if len(layers) <= _MOST_LAYERS:
        return list(layers)
    return [layers[round(at * (len(layers) - 1) / most)] for at in range(_MOST_LAYERS)]


def _names(trace: TrainingTrace) -> dict[int, str]:
    layers: tuple[Layer, ...] = trace.models[0].layers if trace.models else ()
    return {layer.index: f"layer {layer.index} {layer.type}"[:28] for layer in layers}
