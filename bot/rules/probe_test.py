"""How many runs a probe of a bisection takes: the sequential test, set by how often the failure
occurs and by how many branches the search may take.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from bot.rules.statistics import SequentialTest, lower_end

REFERENCE: Final = 5
"""Runs of the known bad version that the rate is read from, at least."""

_ALWAYS: Final = 0.9  # what a failure that was never absent is taken to reach
_LEAST: Final = 0.15  # rarer ones would take hundreds of runs a probe
_SPONTANEOUS: Final = 0.02


@dataclass(slots=True)
class ProbeTally:
    """The runs at one place: those that decided something, those that failed as reported, and
    the others' last reason.
    """

    runs: int = 0
    failures: int = 0
    others: int = 0
    why: str = ""

    @property
    def mixed(self) -> bool:
        """Whether it both failed and passed."""
        return 0 < self.failures < self.runs

    @property
    def hopeless(self) -> bool:
        """Whether what else happened will not be bettered by more runs."""
        return self.others >= 2 and self.others >= self.runs


def rate(failing: Iterable[ProbeTally]) -> float:
    """The rate that a failure is taken to have at least: 0.9 when no failing place ever passed,
    else the lower end of the 60 % interval over all places where it failed.
    """
    seen = [tally for tally in failing if tally.failures]
    if not any(tally.mixed for tally in seen):
        return _ALWAYS
    low = _low(sum(tally.failures for tally in seen), sum(tally.runs for tally in seen))
    return min(max(low, _LEAST), _ALWAYS)


@lru_cache(maxsize=1024)
def _low(failures: int, runs: int) -> float:
    return lower_end(failures, runs, 0.6)


def branches(places: int) -> int:
    """The most branches of a search over so many places, both ways: doubling out and halving in,
    each way.
    """
    return 4 * (places.bit_length() + 1)


def test(least_rate: float, places: int, risk: float) -> SequentialTest:
    """The test of one probe, such that the chance of any wrong branch is at most `risk`
    (Bonferroni's bound).
    """
    share = risk / branches(places)
    return SequentialTest(p0=_SPONTANEOUS, p1=least_rate, alpha=share, beta=share)
