"""Whether a mutant is killed: its metric is worse than the original's, by enough and surely.

Section 5 of the study's specification: p < 0.05, Cohen's d of at least 0.5, and an accuracy at
least 15 points lower or a loss at least 1.5 times as high.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance
from typing import Literal

SIGNIFICANT = 0.05
LARGE_ENOUGH = 0.5
POINTS = 0.15
TIMES = 1.5

Outcome = Literal["killed", "survived", "undecided"]


def welch(one: Sequence[float], other: Sequence[float]) -> float:
    """The two-sided p of Welch's t-test; without any spread 0 for different means, 1 for equal."""
    gap = fmean(one) - fmean(other)
    errors = [variance(sample) / len(sample) for sample in (one, other)]
    if sum(errors) == 0:
        return 1.0 if gap == 0 else 0.0
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(sample) - 1) for error, sample in zip(errors, (one, other), strict=True)
    )
    return student(abs(gap) / math.sqrt(sum(errors)), freedom)


def student(t: float, freedom: float) -> float:
    """The two-sided tail of Student's distribution beyond t >= 0."""
    return _beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def cohens_d(one: Sequence[float], other: Sequence[float]) -> float:
    """The difference of means in pooled standard deviations (ddof 1); without any spread infinite
    with the sign of the difference, or 0.
    """
    gap = fmean(one) - fmean(other)
    weighted = sum((len(sample) - 1) * variance(sample) for sample in (one, other))
    pooled = math.sqrt(weighted / (len(one) + len(other) - 2))
    if pooled == 0:
        return 0.0 if gap == 0 else math.copysign(math.inf, gap)
    return gap / pooled


def outcome(original: Sequence[float], mutant: Sequence[float], direction: str) -> Outcome:
    """What the runs so far say; one run of each can only say "survived" or "undecided"."""
    worse = worse_by(original, mutant, direction)
    if worse < 0.5:
        return "survived"
    if len(mutant) < 3:
        return "undecided"
    sign = 1 if direction == "max" else -1
    sure = welch(original, mutant) < SIGNIFICANT
    large = sign * cohens_d(original, mutant) >= LARGE_ENOUGH
    return "killed" if worse >= 1 and sure and large else "undecided"


def finite(values: Sequence[float], original: Sequence[float]) -> list[float]:
    """Losses that overflowed count as ten times the original's worst."""
    ceiling = 10 * max(original)
    return [value if math.isfinite(value) else ceiling for value in values]


def worse_by(original: Sequence[float], mutant: Sequence[float], direction: str) -> float:
    """How much worse, in units of the margin that killing needs."""
    if direction == "max":
        return (fmean(original) - fmean(mutant)) / POINTS
    return (fmean(mutant) / max(fmean(original), 1e-12) - 1) / (TIMES - 1)


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function (Numerical Recipes, section 6.4)."""
    if x in (0.0, 1.0):
        return x
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c = 1.0
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a - 1 + 2 * m) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 1 + 2 * m))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            result *= c * d
    return result


def _not_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
