"""The sequential test and the interval behind every verdict.

Sources: A. Wald, Sequential Analysis (1947), for the sequential probability ratio test; C. Clopper
and E. Pearson, Biometrika 26 (1934), for the interval.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

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
