"""What the published tools look at, from a trace: means, epochs and last layers."""

import math
from collections.abc import Iterator

from bot.kernel.training_types import ActivationStep, Layer, TrainingStep, WeightStep
from bot.training.diagnosis.rule import Training

WINDOW = 5


def invalid(value: float | None) -> bool:
    """NaN or infinity."""
    return value is not None and not math.isfinite(value)


def unchanged(values: list[float | None], window: int) -> bool:
    """Whether the last values are all alike, with a tolerance in place of equality."""
    last = [x for x in values[-window:] if x is not None and math.isfinite(x)]
    if len(last) < window:
        return False
    return max(last) - min(last) <= 1e-6 * max(abs(x) for x in last)


def any_window(values: list[float | None], window: int) -> bool:
    """Whether that held at any whole window."""
    ends = range(window, len(values) + 1, window)
    return any(unchanged(values[:end], window) for end in ends)


def sampled(training: Training) -> list[TrainingStep]:
    """Steps with tensors."""
    return [x for x in training.steps if x.weights or x.activations]


def outputs(training: Training) -> Iterator[tuple[Layer, list[ActivationStep]]]:
    """What each layer returned over the sampled steps."""
    for layer in training.layers:
        yield layer, [a for s in training.steps for a in s.activations if a.layer == layer.index]


def kernels(training: Training) -> Iterator[tuple[Layer, list[WeightStep]]]:
    """What happened to each kernel over the sampled steps."""
    for layer in training.learners:
        seen = [w for s in training.steps for w in s.weights if w.layer == layer.index]
        yield layer, [w for w in seen if w.role == "kernel"]


def per_epoch(training: Training, name: str) -> list[float | None]:
    """A value of each epoch; losses also from the steps of plain loops."""
    told = [x.values[name] for x in training.epochs if name in x.values]
    if told or name != "loss":
        return told
    return list(training.learning.points)


def accuracies(training: Training, part: str = "") -> list[float | None]:
    """The accuracy of each epoch, under whichever name."""
    names = {k for x in training.epochs for k in x.values if "acc" in k}
    right = sorted(x for x in names if x.startswith("val_") == bool(part))
    return per_epoch(training, right[0]) if right else []


def last_index(training: Training) -> int | None:
    """The place of the last layer."""
    return training.layers[-1].index if training.layers else None


def at(name: str, index: int | None) -> str:
    """A code with its layer."""
    return name if index is None else f"{name}({index})"
