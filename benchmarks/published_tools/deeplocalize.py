"""DeepLocalize (Wardat et al., ICSE 2021): batch by batch, the first error ends the run."""

from collections.abc import Iterator

from benchmarks.published_tools.shared import (
    WINDOW,
    accuracies,
    any_window,
    at,
    invalid,
    kernels,
    outputs,
)
from bot.kernel.training_types import ActivationStep, Layer
from bot.training.diagnosis.rule import Training, kernel

_ZERO = 1e-12


def found(training: Training) -> tuple[str, ...]:
    """The codes that its first message maps to."""
    return next(_messages(training), ())


def _messages(training: Training) -> Iterator[tuple[str, ...]]:
    for layer, seen in outputs(training):
        if _bad_output(layer, seen):
            yield (at("ACH", layer.index),)
    for layer, moved in reversed(list(kernels(training))):
        if any(invalid(x.weight_norm) for x in moved):
            yield (at("WCI", layer.index), "HLR")
    losses: list[float | None] = [x.loss for x in training.steps]
    if any(invalid(x) for x in losses):
        yield ("LCH",)
    if any_window(losses, WINDOW) or any_window(accuracies(training), WINDOW):
        yield ("HLR",)
    yield from _gradients(training)


def _bad_output(layer: Layer, seen: list[ActivationStep]) -> bool:
    means = [x.mean for x in seen]
    zero = [x for x in means if x is not None and abs(x) <= _ZERO]
    broken = any(x.finite < 1 for x in seen) or any(invalid(x) for x in means)
    frozen = any_window(means, WINDOW) and kernel(layer) is not None
    return broken or (len(zero) > 0 and 2 * len(zero) >= len(means)) or frozen


def _gradients(training: Training) -> Iterator[tuple[str, ...]]:
    for layer, seen in kernels(training):
        sizes = [x.mean_abs for x in seen]
        zero = [x for x in sizes if x is not None and x <= _ZERO]
        if any(invalid(x) for x in sizes) or (zero and 2 * len(zero) >= len(sizes)):
            yield ("HLR", at("WCI", layer.index))
