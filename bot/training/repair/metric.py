"""What a program says about how well it learned, and whether a patched one is better over
the same seeds.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean, stdev
from typing import Literal

from bot.kernel.metrics import NAMES, NUMBER, direction_of, last_lines, printed_metrics
from bot.kernel.training_types import Improvement, Metric, TrainingTrace

# What a program says about how well it learned: the last number of its output that is a metric,
# or what the probe saw of its last epoch.

_ENTROPIES = frozenset((
    "cross_entropy", "nll", "bce", "bce_logits", "binary_crossentropy", "categorical_crossentropy",
    "sparse_categorical_crossentropy",
))  # fmt: skip
_LOSSES = {
    "mean squared error": frozenset({"mse"}), "rmse": frozenset({"mse", "rmse"}),
    "mean absolute error": frozenset({"mae"}), "rmsle": frozenset({"msle"}),
    **dict.fromkeys(("cross entropy", "nll", "bce", "perplexity", "ppl"), _ENTROPIES),
}  # fmt: skip
_NAME = re.compile(r"\w[\w.@/ -]{0,59}")
_OF_EPOCHS = ("val_accuracy", "val_acc", "val_loss", "accuracy", "acc", "loss")


def choose(output: str, trace: TrainingTrace, requested_name: str = "") -> Metric | None:
    """The metric that a program reports last, or the one that is `wanted` by its name.

    A quality such as accuracy comes before a loss on the same line, and output before epochs.
    Of a name that is not known, higher is taken for better; `NAME:min` says otherwise. None when
    the program tells nothing.
    """
    name, _, direction = requested_name.rpartition(":")
    if direction not in ("min", "max"):
        return _choose(output, trace, requested_name)
    metric = _choose(output, trace, name)
    return metric and metric.model_copy(update={"direction": direction})


def _choose(output: str, trace: TrainingTrace, requested_name: str) -> Metric | None:
    exact = (
        bool(_NAME.fullmatch(requested_name))
        and requested_name.lower().replace("_", " ") not in NAMES
    )
    if exact and any(_beside(line, requested_name) for line in last_lines(output)):
        return Metric(
            name=requested_name.lower(),
            direction=direction_of(requested_name.lower()),
            source="output",
        )
    for line in last_lines(output):
        names = [
            name
            for name, _ in printed_metrics(line)
            if not requested_name or _same(name, requested_name)
        ]
        if names:
            best = [x for x in names if direction_of(x) == "max"] or names
            return Metric(name=best[-1], direction=direction_of(best[-1]), source="output")
    last = _last_epoch(trace)
    for name in _OF_EPOCHS if not requested_name else (requested_name, f"val_{requested_name}"):
        if last.get(name) is not None:
            return Metric(name=name, direction=direction_of(name), source="epochs")
    return None


def read_value(metric: Metric, output: str, trace: TrainingTrace | None = None) -> float | None:
    """The metric of one run; None when the run did not tell it, or told no finite number."""
    if metric.source == "epochs":
        value = _last_epoch(trace or TrainingTrace()).get(metric.name)
        return value if value is not None and math.isfinite(value) else None
    value = float(_summary_value(metric, output) or "nan")
    return value if math.isfinite(value) else None


def _summary_value(metric: Metric, output: str) -> str:
    """The number that the output tells last as the metric; "" when there is none."""
    for line in last_lines(output):
        texts = [text for name, text in printed_metrics(line) if name == metric.name]
        if texts := texts or _beside(line, metric.name):
            return texts[-1]
    return ""


def option_text(metric: Metric) -> str:
    """The name that chooses this metric again."""
    is_default = direction_of(metric.name) == metric.direction
    return metric.name if is_default else f"{metric.name}:{metric.direction}"


def is_loss(metric: Metric) -> bool:
    """Whether the metric is the loss itself: with another loss it would be another number."""
    return re.split(r"[_ ]", metric.name)[-1] == "loss"


def may_be_loss(metric: Metric, losses: Iterable[str]) -> bool:
    """Whether the metric is called like one of the losses (by their canonical names): it may be
    what `evaluate` returns, which is another number under another loss.
    """
    name = metric.name.removeprefix("val_").replace("_", " ")
    return bool(_LOSSES.get(name, frozenset({name})) & set(losses))


def was_loss(metric: Metric, output: str, trace: TrainingTrace) -> bool:
    """Whether a run printed as its metric what it came to as a loss: in an evaluation, or in its
    last epoch or step.
    """
    text = _summary_value(metric, output) if metric.direction == "min" else ""
    if not text:
        return False
    losses: list[float | None] = [x for one in trace.evaluations for x in one.losses]
    losses += [_last_epoch(trace).get(name) for name in ("loss", "val_loss")]
    losses += [step.loss for step in trace.steps[-1:]]
    return any(loss is not None and _rounds_to(loss, text) for loss in losses)


def _rounds_to(value: float, text: str) -> bool:
    """Whether a value is what a text tells, to its last decimal or to a millionth."""
    decimals = text.partition(".")[2] if re.fullmatch(r"[-+]?\d*\.\d+", text) else ""
    slack = max(0.51 * 10.0 ** -len(decimals) if decimals else 0.0, 1e-6 * abs(value))
    return math.isfinite(value) and abs(value - float(text)) <= slack


def _same(name: str, requested_name: str) -> bool:
    return (
        name == requested_name.lower() or name in requested_name.lower().replace("_", " ").split()
    )


def _beside(line: str, name: str) -> list[str]:
    """The numbers that a line gives to a name, be it a known one or not."""
    pattern = rf"(?i)(?<!\w){re.escape(name)}[^\n\d:=]{{0,24}}[:=]\s*(?:\w+\()?({NUMBER})(?![\w.])"
    return re.findall(pattern, line)


def _last_epoch(trace: TrainingTrace) -> Mapping[str, float | None]:
    return trace.epochs[-1].values if trace.epochs else {}


# Whether a patched program is better than the faulty one over the same seeds.

SEEDS = 6
"""Pairs of a proof: over five, an exact two-sided test cannot fall below 0.05."""
_ALPHA = 0.05
_EFFECT = 0.5  # Cohen's d, as the mutation testing of DeepCrime asks
_MOST_PAIRS = 12

Value = float | None
"""A metric; None where a training told none, which is worse than any number."""


def compare(
    before: Sequence[Value], after: Sequence[Value], direction: Literal["max", "min"]
) -> Improvement:
    """The gain over pairs of runs with the same seed, by the exact sign-flip test of their mean.

    A gain is significant when p is below 0.05 and its paired effect at least 0.5. Where a training
    told no number, only the signs of the gains are compared. Raises ValueError for no pairs,
    unequal numbers of them, or more than twelve.
    """
    if not before or len(before) != len(after) or len(before) > _MOST_PAIRS:
        raise ValueError("one to twelve pairs of runs are needed")
    gains = _gains(before, after, direction)
    p, d = sign_flip(gains), effect(gains)
    better = p < _ALPHA and d >= _EFFECT
    return Improvement(before=tuple(before), after=tuple(after), p=p, effect=d, significant=better)


def _gains(
    before: Sequence[Value], after: Sequence[Value], direction: Literal["max", "min"]
) -> list[float]:
    pairs = [
        (score(old, direction), score(new, direction))
        for old, new in zip(before, after, strict=True)
    ]
    if any(math.isinf(value) for pair in pairs for value in pair):
        return [float((new > old) - (new < old)) for old, new in pairs]
    return [new - old for old, new in pairs]


def score(value: Value, direction: Literal["max", "min"]) -> float:
    """A metric as a number of which more is better."""
    if value is None:
        return -math.inf
    return value if direction == "max" else -value


def sign_flip(gains: Sequence[float]) -> float:
    """The two-sided p of the mean under all changes of signs (Fisher's randomisation test)."""
    observed_total = abs(sum(gains)) * (1 - 1e-12)
    flips = product((1.0, -1.0), repeat=len(gains))
    sums = [abs(sum(s * g for s, g in zip(signs, gains, strict=True))) for signs in flips]
    return sum(total >= observed_total for total in sums) / len(sums)


def effect(gains: Sequence[float]) -> float:
    """Cohen's d of paired differences; infinite where all gains are equal, 0 where all are zero."""
    mean = fmean(gains)
    deviation = stdev(gains) if len(gains) > 1 else 0.0
    if deviation <= 1e-12 * abs(mean):
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / deviation
