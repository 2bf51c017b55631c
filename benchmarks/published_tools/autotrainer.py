"""AutoTrainer (Zhang et al., ICSE 2021): its monitor; one issue of the highest priority is told."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from benchmarks.published_tools.shared import (
    accuracies,
    at,
    invalid,
    kernels,
    last_index,
    per_epoch,
)
from bot.training.diagnosis.learning import BINARY, ENTROPIES
from bot.training.diagnosis.loss_contract import last_function, width
from bot.training.diagnosis.rule import Training

_RATIO, _FIRST, _MOST = 1e-3, 1e-4, 70.0
_DEAD, _GAP, _SHARE, _RISE, _RIGHT = 0.7, 0.03, 0.2, 0.01, 0.7
_BROKEN = 1000.0

Symptom = Literal[
    "data", "activation", "loss", "vanish", "explode", "dying_relu", "not_converging", "unstable"
]


class MonitorIssue(NamedTuple):
    """A symptom, and the codes of what its repairs change."""

    symptom: Symptom
    codes: tuple[str, ...]


def found(training: Training) -> tuple[str, ...]:
    """The codes of what its repairs for the issue change."""
    return next((issue.codes for issue in _issues(training)), ())


def symptom(training: Training) -> Symptom | None:
    """What it would repair; None when it is content."""
    return next((issue.symptom for issue in _issues(training)), None)


def _issues(training: Training) -> Iterator[MonitorIssue]:
    right = [x for x in accuracies(training) if x is not None]
    checked = [x for x in accuracies(training, "val") if x is not None] or right
    losses = [x for x in per_epoch(training, "loss") if x is not None]
    broken = any(invalid(x) or x >= _BROKEN for x in losses)
    stuck = bool(right) and max(right) < _RIGHT and max(checked) < _RIGHT
    slow = len(right) > 3 and max((b - a for a, b in pairwise(right)), default=0.0) < _RISE
    badly = broken or stuck or slow
    if badly:
        yield from _severe(training, losses)
    if badly or not right:  # without accuracies nothing tells a good run
        yield from _gradients(training, broken=broken)
    if stuck and slow:
        yield MonitorIssue("not_converging", ("OCH", "HLR", "WCI"))
    if _unstable(right):
        yield MonitorIssue("unstable", ("OCH", "HLR", "HBS"))


def _severe(training: Training, losses: list[float]) -> Iterator[MonitorIssue]:
    inner = [a for s in training.steps for a in s.activations if a.layer != last_index(training)]
    if any(abs(x.mean or 0.0) >= 10 for x in inner):
        yield MonitorIssue("data", ("CPP",))
    loss, function = training.loss, last_function(training)
    if loss is None:
        return
    if function not in _expected(training):
        yield MonitorIssue("activation", (at("ACH", last_index(training)),))
    many = width(loss) > 2
    if min(losses, default=0.0) < 0 or loss.name not in (ENTROPIES if many else BINARY):
        yield MonitorIssue("loss", ("LCH",))


def _expected(training: Training) -> tuple[str, ...]:
    loss = training.loss
    assert loss is not None
    if loss.from_logits or loss.name in ("cross_entropy", "bce_logits"):
        return (last_function(training),)
    if loss.name in BINARY:
        return ("sigmoid",) if width(loss) != 2 else ("softmax", "sigmoid")
    return ("softmax", "log_softmax") if loss.name in ENTROPIES else ("linear",)


def _gradients(training: Training, *, broken: bool) -> Iterator[MonitorIssue]:
    ordered = [(layer, seen) for layer, seen in kernels(training) if seen]
    hidden = tuple(at("ACH", layer.index) for layer, _ in ordered[:-1])
    zeros = [x.gradient_zero for _, seen in ordered for x in seen if x.gradient_zero is not None]
    if zeros and sum(zeros) / len(zeros) >= _DEAD:
        weights = (at("WCI", layer.index) for layer, _ in ordered[:-1])
        yield MonitorIssue("dying_relu", (*hidden, *weights))
    if len(ordered) < 2:
        return
    pairs = zip(ordered[0][1][::3], ordered[-1][1][::3], strict=False)
    norms = [(one.norm or 0.0, other.norm or 0.0) for one, other in pairs]
    if norms and (broken or any(last > 0 and first / last > _MOST for first, last in norms)):
        yield MonitorIssue("explode", (*hidden, "HLR"))
    if any(last > 0 and first / last < _RATIO and first < _FIRST for first, last in norms):
        yield MonitorIssue("vanish", hidden)


def _unstable(right: list[float]) -> bool:
    """Pairs of a high and a low of the accuracy that are at least three points apart."""
    turns = [
        b for a, b, c in zip(right, right[1:], right[2:], strict=False) if (b - a) * (c - b) < 0
    ]
    pairs = sum(abs(a - b) >= _GAP for a, b in zip(turns[::2], turns[1::2], strict=False))
    return len(right) > 3 and pairs >= _SHARE * len(right)
