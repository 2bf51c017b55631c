"""Our runs beside the paper's number: where the output prints it, the prediction interval, and the
verdict, which numbers alone decide.
"""

import re
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from bot.kernel.metrics import last_lines
from bot.kernel.outside_text import clip, one_line
from bot.kernel.paper import (
    NumberClaim,
    NumberComparison,
    PaperResult,
    PaperRun,
    PaperVerdict,
)
from bot.kernel.statistics import prediction_interval
from bot.papers.numbers import NUMBER, is_better, is_percentage, is_share, metric_in, number

LEAST_RUNS = 3
"""Full runs that differ, before an interval is computed."""
_VALUE = re.compile(
    rf"(?P<before>[^\d=:|]{{0,60}}?(?:[=:|]\s*|\s))(?:\w+\()?(?P<value>[-+]?{NUMBER})(?![\w.])\s*(?P<percent>%)?"
    rf"(?:\s*(?:±|\+/-|\+-)\s*(?P<spread>{NUMBER}))?"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_/@-]*")
_FINAL = re.compile(r"\b(?:final|test|mean|average|avg|overall|result)\b", re.IGNORECASE)
_TRAINING_PART = re.compile(r"\btrain(?:ing)?\b", re.IGNORECASE)
_GUIDE_PART = re.compile(r"(?:\b|_)(?:val|valid|validation|dev)(?:\b|_)", re.IGNORECASE)
_COMPLEMENT = {"error": "accuracy", "accuracy": "error"}
_BETTER = {True: "better", False: "worse"}


class PrintedValue(NamedTuple):
    """A number that a run printed for a claim, in the claim's unit."""

    value: float
    spread: float | None
    line: str


# Where the output has the number.


def printed_value(claim: NumberClaim, output: str) -> PrintedValue | None:
    """The number that an output gives for a claim: by metric, then data set, method and part of
    the data; of several the last. None where it prints none.
    """
    for metric in (claim.metric, _COMPLEMENT.get(claim.metric, "")):
        rows = [
            (_score(line, claim), -at, value)
            for at, line in enumerate(last_lines(output))
            for value in _values(line, metric, claim)
        ]
        if rows:
            best = max(rows, key=lambda row: row[:2])
            return best[2]
    return None


def _score(line: str, claim: NumberClaim) -> int:
    lowered = line.lower()
    words = {*_WORD.findall(claim.dataset.lower()), *_WORD.findall(claim.method.lower())}
    hits = sum(word in lowered for word in words - {"ours", "our", "data"})
    part = 2 * bool(_FINAL.search(line)) - 4 * bool(_TRAINING_PART.search(line))
    return 3 * hits + part - 2 * bool(_GUIDE_PART.search(line))


def _values(line: str, metric: str, claim: NumberClaim) -> Iterator[PrintedValue]:
    """The last number of a line that follows the metric's name there."""
    if not metric:
        return
    spans = [(m.start(), m.end()) for m in _WORD.finditer(line)]
    for start, end in reversed(spans):
        if metric_in(re.sub(r"[_/]", " ", line[start:end])) != metric:
            continue
        match = _VALUE.match(line[end : end + 120])
        if match is None or metric_in(match["before"]):
            continue
        value, spread = number(match["value"]), number(match["spread"] or "")
        if value is not None:
            yield _in_unit(value, spread, metric, claim, line, is_percent=bool(match["percent"]))
            return


def _in_unit(
    value: float,
    spread: float | None,
    metric: str,
    claim: NumberClaim,
    line: str,
    *,
    is_percent: bool,
) -> PrintedValue:
    """A printed number as a percentage where the claim is one, as a share where it is that."""
    printed_percent = is_percentage(metric, value, marked=is_percent)
    factor = 1.0
    if is_share(claim.metric) and printed_percent != claim.is_percent:
        factor = 100.0 if claim.is_percent else 0.01
    value = value * factor
    if metric != claim.metric:
        value = (100.0 if claim.is_percent else 1.0) - value
    text = clip(one_line(line), 200)
    return PrintedValue(value, spread * factor if spread is not None else None, text)


# The comparison and the verdict.


def compare(claim: NumberClaim, runs: Sequence[PaperRun]) -> NumberComparison:
    """Our full runs beside the paper's number; of partial ones the mean alone."""
    counted = [run for run in runs if run.value is not None and not run.problem]
    full = [run for run in counted if not run.partial] or counted
    values = [run.value for run in full if run.value is not None]
    if not values:
        return NumberComparison()
    mean = fmean(values)
    spread = stdev(values) if len(values) > 1 else full[0].spread
    highest = max(abs(mean), abs(claim.value))
    differ = len({*values}) > 1 and not any(run.partial for run in full)
    interval = None
    if len(values) >= LEAST_RUNS and differ:
        interval = prediction_interval(values, claim.seeds or 1)
    return NumberComparison(
        mean=mean,
        spread=spread,
        runs=len(values),
        interval=interval,
        gap=abs(claim.value - mean) / highest if highest else 0.0,
    )


def decide(claim: NumberClaim, runs: Sequence[PaperRun]) -> PaperVerdict:
    """The verdict on runs that printed the number."""
    ours = compare(claim, runs)
    counted = [run for run in runs if run.value is not None and not run.problem]
    if ours.mean is None or not counted:
        return PaperVerdict(kind="inconclusive", reason="no run printed the number")
    if all(run.partial for run in counted):
        reason = f"the runs are partial: {_beside(claim, ours)} when the time was up"
        return PaperVerdict(kind="budget_reached", reason=reason)
    distance = abs(ours.mean - claim.value)
    says = _beside(claim, ours)
    if ours.interval is not None:
        low, high = ours.interval
        inside = low - claim.rounding <= claim.value <= high + claim.rounding
        if inside or _within_spread(claim, distance):
            return PaperVerdict(kind="reproduced", reason=says)
        return PaperVerdict(kind="not_reproduced", reason=f"{says}; {_gap(claim, ours)}")
    return _of_few(claim, ours, [run for run in counted if not run.partial])


def is_supported(result: PaperResult) -> bool:
    """Whether the runs of a result lead to its verdict, as far as runs decide it."""
    if result.verdict.kind not in {"reproduced", "not_reproduced"}:
        return True
    return (
        result.claim is not None and decide(result.claim, result.runs).kind == result.verdict.kind
    )


def _of_few(claim: NumberClaim, ours: NumberComparison, full: Sequence[PaperRun]) -> PaperVerdict:
    """The verdict without an interval: one run, or runs that are all alike."""
    assert ours.mean is not None
    distance, says = abs(ours.mean - claim.value), _beside(claim, ours)
    is_fixed = len(full) > 1 and len({run.value for run in full}) == 1
    own_spread = next((run.spread for run in full if run.spread), None)
    if _within_spread(claim, distance) or distance <= claim.rounding * (1 + 1e-9):
        if is_fixed or own_spread or claim.spread:
            return PaperVerdict(kind="reproduced", reason=says)
        return PaperVerdict(
            kind="inconclusive", reason=f"{says}, of one run: more seeds would tell"
        )
    if is_fixed and not (own_spread and distance <= 2 * own_spread):
        reason = f"{says}, the same in every run; {_gap(claim, ours)}"
        return PaperVerdict(kind="not_reproduced", reason=reason)
    if own_spread and distance > 2 * own_spread + (claim.spread or 0.0):
        return PaperVerdict(kind="not_reproduced", reason=f"{says}; {_gap(claim, ours)}")
    if own_spread and distance <= 2 * own_spread:
        return PaperVerdict(kind="reproduced", reason=says)
    return PaperVerdict(kind="inconclusive", reason=f"{says}: too few runs to tell")


def _within_spread(claim: NumberClaim, distance: float) -> bool:
    return claim.spread is not None and distance <= claim.spread + claim.rounding


def value_text(claim: NumberClaim, value: float, spread: float | None = None) -> str:
    """A number as the paper prints its own, with one digit more."""
    digits = min(6, len(claim.text.partition(".")[2].partition("e")[0]) + 1)
    after = f" ± {spread:.{digits}f}" if spread is not None else ""
    return f"{value:.{digits}f}{after}{' %' if claim.is_percent else ''}"


def paper_text(claim: NumberClaim) -> str:
    """The paper's number as it prints it."""
    after = f" ± {claim.spread:g}" if claim.spread is not None else ""
    return f"{claim.text}{after}{' %' if claim.is_percent else ''}"


def _beside(claim: NumberClaim, ours: NumberComparison) -> str:
    assert ours.mean is not None
    return (
        f"our {claim.metric} is {value_text(claim, ours.mean, ours.spread)}, "
        f"the paper's {paper_text(claim)}"
    )


def _gap(claim: NumberClaim, ours: NumberComparison) -> str:
    assert ours.mean is not None
    word = _BETTER[is_better(claim.metric, ours.mean, claim.value)]
    return f"ours is {word} by {100 * ours.gap:.1f} %"
