"""Numbers: the tests behind verdicts, and which place a bisection tries next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.truth.inputs import Inputs
from benchmarks.truth.stages.stage import Stage
from bot.issues.proof import bisect_steps
from bot.kernel import statistics, statistics as kernel_statistics
from bot.training.repair import metric

_SIZES = (1, 2, 3, 7, 16, 40)
_RUNS = (1, 2, 3, 5, 9, 20, 40)


def _lines(_: Inputs) -> Mapping[str, tuple[int, int, frozenset[int]]]:
    """Lines of so many places, of which those from `good` on pass, some of them untestable."""
    return {
        f"{size}/good-from-{good}/skip-{every}": (
            size,
            good,
            frozenset(range(every, size + 1, every)) if every else frozenset(),
        )
        for size in _SIZES
        for good in sorted({1, 2, size // 2, size, size + 1} - {0})
        for every in (0, 2, 3)
    }


def _bisection(case: tuple[int, int, frozenset[int]]) -> object:
    size, good, skipped = case
    known: dict[int, bisect_steps.Quality] = {}
    tried: list[int] = []
    while isinstance(at := bisect_steps.following(size, known), int) and len(tried) <= size:
        tried.append(at)
        known[at] = "skip" if at in skipped else "good" if at >= good else "bad"
    return {"tried": tried, "edge": at, "irregular": bisect_steps.regular(known)}


def _counts(_: Inputs) -> Mapping[str, tuple[int, int]]:
    return {
        f"{failures:02}-of-{runs:02}": (failures, runs)
        for runs in _RUNS
        for failures in sorted({0, 1, runs // 2, runs - 1, runs})
    }


def _statistics(case: tuple[int, int]) -> object:
    """What a number of failures shows, alone and beside runs that never failed; to six digits."""
    failures, runs = case
    test = statistics.SequentialTest()
    gains = [1.0] * failures + [-0.5] * (runs - failures)
    told: dict[str, Any] = {
        "decision": test.decide(failures, runs),
        "interval": statistics.interval(failures, runs),
        "fisher": kernel_statistics.one_sided(failures, runs, 0, runs),
        "difference": kernel_statistics.difference(failures, runs, 0, runs),
        "pairs": kernel_statistics.pairs(failures, runs),
        "effect": metric.effect(gains),
    }
    return {name: _rounded(value) for name, value in told.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


STAGES = (
    Stage("bisection", _lines, _bisection),
    Stage("statistics", _counts, _statistics),
)
