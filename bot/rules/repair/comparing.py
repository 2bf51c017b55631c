"""Whether a patched program is better than the faulty one over the same seeds."""

import math
from collections.abc import Sequence
from itertools import product
from statistics import fmean, stdev
from typing import Literal

from bot.models.repair import Improvement

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
    seen = abs(sum(gains)) * (1 - 1e-12)
    flips = product((1.0, -1.0), repeat=len(gains))
    sums = [abs(sum(s * g for s, g in zip(signs, gains, strict=True))) for signs in flips]
    return sum(total >= seen for total in sums) / len(sums)


def effect(gains: Sequence[float]) -> float:
    """Cohen's d of paired differences; infinite where all gains are equal, 0 where all are zero."""
    mean = fmean(gains)
    spread = stdev(gains) if len(gains) > 1 else 0.0
    if spread <= 1e-12 * abs(mean):
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / spread
