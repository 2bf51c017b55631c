"""Compares the metric that a training printed with a training signature."""

import math
from collections.abc import Iterator

from bot.issues.judgements import contrary, matched, undecided
from bot.issues.observe import Observation
from bot.issues.signature import staged, values
from bot.kernel import metrics
from bot.kernel.attempt import Judgement, Script
from bot.kernel.bug import (
    TrainingSignature,
)

_COURSE = 3  # values that show whether a metric changes
_LEARNED = 0.1  # the least share of the way from a first value by which a training gets better


def judge_training(
    observation: Observation, signature: TrainingSignature, script: Script
) -> Judgement:
    """A training whose last printed value is on the wrong side of the bound, or no better than the
    first one. What the program prints as a constant is not measured.
    """
    if observation.escaped is not None or observation.timed_out:
        return undecided("the training did not come to its end")
    rows = list(_printed_values(observation, signature, script))
    if not rows or (signature.bound is None and len(rows) < _COURSE):
        return undecided(f"the program prints no {signature.metric} to compare")
    (first, _), (last, line) = rows[0], rows[-1]
    if signature.bound is not None:
        has_failed = learns_too_little(last, signature)
        reason = f"{signature.metric} ended at {last:.4g}, the limit is {signature.bound:.4g}"
    else:
        rest = 1 - first if 0 <= first <= 1 else abs(first)  # a share has an end, a score none
        goal = first + (rest if signature.direction == "max" else -abs(first)) * _LEARNED
        has_failed = not _is_better(last, goal, signature.direction)
        reason = f"{signature.metric} went from {first:.4g} to {last:.4g}"
    if not has_failed:
        return contrary(reason, line).model_copy(update={"value": last})
    return matched(reason, line).model_copy(update={"value": last})


def learns_too_little(value: float | None, signature: TrainingSignature) -> bool:
    """Whether a training that ended at a value of the metric fails as the signature says."""
    bound = signature.bound if signature.bound is not None else math.nan
    scaled = math.nan if value is None else _scaled(value, signature)
    return not _is_better(scaled, bound, signature.direction)


def _is_better(value: float, than: float, direction: str) -> bool:
    """NaN is never better."""
    return value > than if direction == "max" else value < than


def _printed_values(
    observation: Observation, signature: TrainingSignature, script: Script
) -> Iterator[tuple[float, str]]:
    """The values that the output gives to the metric, each with its line. Of several on a line,
    the last one: that of data which the training has not seen.
    """
    name = metrics.plain_name(signature.metric)
    constant = set(map(values.clean, staged.constant_lines(script.source)))
    for line in observation.told:
        numbers = [
            float(text)
            for printed_name, text in metrics.printed_metrics(line[-400:], name)
            if metrics.plain_name(printed_name) == name
        ]
        if numbers and values.clean(line) not in constant:
            yield _scaled(numbers[-1], signature, is_percent="%" in line), line


def _scaled(value: float, signature: TrainingSignature, *, is_percent: bool = False) -> float:
    """A value as the signature gives it: shares where its bound is one."""
    is_named = metrics.plain_name(signature.metric) in metrics.SHARES
    is_bound = signature.bound is not None and signature.bound <= 1
    is_share = signature.direction == "max" and (
        is_bound if signature.bound is not None else is_named
    )
    return metrics.as_share(value, is_percent=is_percent) if is_share else value
