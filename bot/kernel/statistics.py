"""The sequential test and the interval behind every verdict; and how two small samples compare."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Literal

# The sequential test and the interval behind every verdict.
#
# Sources: A. Wald, Sequential Analysis (1947), for the sequential probability ratio test; C.
# Clopper and E. Pearson, Biometrika 26 (1934), for the interval.

TestDecision = Literal["fails", "passes", "undecided"]


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """Decides between a failure rate of at most `p0` and one of at least `p1` with error rates
    `alpha` and `beta`.
    """

    p0: float = 0.02
    p1: float = 0.30
    alpha: float = 0.05
    beta: float = 0.05

    def decide(self, failures: int, runs: int) -> TestDecision:
        """What k failures in n runs show. A deterministic failure is accepted in 2 runs, nine
        passes in a row reject.
        """
        ratio = failures * math.log(self.p1 / self.p0) + (runs - failures) * math.log(
            (1 - self.p1) / (1 - self.p0)
        )
        if ratio >= math.log((1 - self.beta) / self.alpha):
            return "fails"
        if ratio <= math.log(self.beta / (1 - self.alpha)):
            return "passes"
        return "undecided"


def interval(failures: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of a failure rate; (0, 1) without runs."""
    tail = (1 - confidence) / 2
    high = (
        1.0 if failures == runs else _solve(lambda p: tail - (1 - _at_least(failures + 1, runs, p)))
    )
    return lower_end(failures, runs, confidence), high


def lower_end(failures: int, runs: int, confidence: float) -> float:
    """The lower end of that interval; computing both takes twice as long."""
    tail = (1 - confidence) / 2
    return 0.0 if failures == 0 else _solve(lambda p: _at_least(failures, runs, p) - tail)


def _at_least(k: int, n: int, p: float) -> float:
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def _solve(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


# Compares two small samples: the exact test, and how far apart they are.
#
# Sources: R. Fisher, Journal of the Royal Statistical Society 98 (1935), for the test; R.
# Newcombe, Statistics in Medicine 17 (1998), method 10, for the interval of a difference; N.
# Cliff, Psychological Bulletin 114 (1993), for delta.


def one_sided(failures: int, runs: int, control_failures: int, control_runs: int) -> float:
    """Fisher's exact test, one-sided: how likely so many failures or more fall on the first
    sample when both fail alike.
    """
    if not (0 <= failures <= runs and 0 <= control_failures <= control_runs):
        raise ValueError("more failures than runs")
    total = failures + control_failures
    failure_counts = range(failures, min(runs, total) + 1)
    ways = math.comb(runs + control_runs, total)
    chances = (
        math.comb(runs, k) * math.comb(control_runs, total - k) / ways for k in failure_counts
    )
    return min(1.0, math.fsum(chances))


def difference(
    failures: int, runs: int, control_failures: int, control_runs: int, confidence: float = 0.95
) -> tuple[float, float, float]:
    """The difference of two failure rates with its interval (Newcombe's, from Wilson's); (0, -1,
    1) without runs.
    """
    if runs == 0 or control_runs == 0:
        return 0.0, -1.0, 1.0
    ours, theirs = failures / runs, control_failures / control_runs
    low, high = _wilson(failures, runs, confidence)
    other_low, other_high = _wilson(control_failures, control_runs, confidence)
    gap = ours - theirs
    return (
        gap,
        gap - math.hypot(ours - low, other_high - theirs),
        gap + math.hypot(high - ours, theirs - other_low),
    )


def _wilson(failures: int, runs: int, confidence: float) -> tuple[float, float]:
    z = NormalDist().inv_cdf(1 - (1 - confidence) / 2)
    rate, z2 = failures / runs, z * z
    middle = (rate + z2 / (2 * runs)) / (1 + z2 / runs)
    half = z / (1 + z2 / runs) * math.sqrt(rate * (1 - rate) / runs + z2 / (4 * runs * runs))
    return max(0.0, middle - half), min(1.0, middle + half)


def cliffs_delta(first: Sequence[float], second: Sequence[float]) -> float:
    """How much oftener a value of the first sample is above one of the second than below, from
    -1 to 1; 0 without values.
    """
    pairs = len(first) * len(second)
    above = sum((x > y) - (x < y) for x in first for y in second)
    return above / pairs if pairs else 0.0


def pairs(failures: int, runs: int, *, least: int = 5, most: int = 40, p: float = 0.01) -> int:
    """How many runs a side will set a failure of this rate apart from none: the fewest with a
    one-sided p of at most `p`.
    """
    rate = failures / runs if runs else 1.0
    for n in range(least, most + 1):
        if one_sided(math.floor(rate * n), n, 0, n) <= p:
            return n
    return most


# Where a further mean of the same kind lies.
#
# Source: G. Hahn and W. Meeker, Statistical Intervals (1991), section 4.7.


def prediction_interval(
    values: Sequence[float], count: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Where the mean of `count` further values lies, given these. Raises ValueError for fewer than
    two values.
    """
    if len(values) < 2 or count < 1:
        raise ValueError("two values are needed")
    half = t_quantile((1 + confidence) / 2, len(values) - 1) * stdev(values)
    half *= math.sqrt(1 / len(values) + 1 / count)
    return fmean(values) - half, fmean(values) + half


def t_quantile(p: float, freedom: int) -> float:
    """The quantile of Student's t distribution for p of at least one half."""
    low, high = 0.0, 1.0
    while _t_cdf(high, freedom) < p:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _t_cdf(middle, freedom) > p else (middle, high)
    return (low + high) / 2


def _t_cdf(t: float, freedom: int) -> float:
    """Student's t distribution at t of at least 0, by its finite series (Abramowitz and Stegun,
    26.7.3 and 26.7.4).
    """
    angle = math.atan2(t, math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    term = total = cosine if freedom % 2 else 1.0
    for k in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if freedom % 2 == 0:
        return 0.5 + sine * total / 2
    return 0.5 + (angle + (sine * total if freedom > 1 else 0.0)) / math.pi
