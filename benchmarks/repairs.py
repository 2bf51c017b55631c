"""The figures of a repair bench, pure: how much of the key's gain a patch brings, whether it is
significant, how large it is, and what it cost, as the source study counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, median, pstdev
from typing import Literal

from benchmarks.faults import expanded, kind_of
from bot.kernel.values import Record
from bot.training.repair import metric

_Direction = Literal["max", "min"]


class RepairRow(Record):
    """One program as one arm repaired it. `improvement_rate` is (patched - faulty) / (key's repair
    - faulty), None where the arm could not try. `recovered` is the share of the key's operators
    that the patch has (asymmetric Jaccard), `complexity` the share of hyperparameters that it
    changes. `claimed` says that the arm itself called its patch proven.
    """

    id: str
    arm: str
    improvement_rate: float | None
    significant: bool
    edits: int
    truth_edits: int
    trainings: int
    seconds: float = 0.0
    budget_s: float = 0.0
    before: float | None = None
    after: float | None = None
    stability: float | None = None
    truth: float | None = None
    recovered: float = 0.0
    complexity: float = 0.0
    claimed: bool = False
    patch: tuple[str, ...] = ()
    error: str = ""


class ArmFigures(Record):
    """What the rows of an arm add up to. `edits_ratio` is of all edits to all of the keys' edits;
    `false_claims` counts patches that were called proven and are not significant.
    """

    cases: int
    median_improvement_rate: float
    mean_improvement_rate: float
    significant_share: float
    edits_ratio: float
    recovered: float
    complexity: float
    stability: float
    trainings: float
    false_claims: int


class RepairBench(Record):
    """The JSON of `python -m benchmarks repairs`."""

    cases: tuple[RepairRow, ...]
    summary: dict[str, ArmFigures]


def measured(
    row: RepairRow,
    before: Sequence[float | None],
    after: Sequence[float | None],
    direction: _Direction,
) -> RepairRow:
    """A row with its gain; `row.truth` is the mean of the key's repair. A training that failed
    gains nothing.
    """
    faulty = (
        fmean(x for x in before if x is not None) if any(x is not None for x in before) else None
    )
    if faulty is None or row.truth is None or not after:
        return row
    values = [value if value is not None else faulty for value in after]
    rate = (fmean(values) - faulty) / (row.truth - faulty) if row.truth != faulty else None
    found = metric.compare(before, after, direction)
    told = {
        "before": faulty, "after": fmean(values), "improvement_rate": rate,
        "significant": found.significant, "stability": pstdev(values),
    }  # fmt: skip
    return row.model_copy(update=told)


def recovered(operators: Iterable[str], truth: Iterable[str]) -> float:
    """The share of the true operators that a patch has."""
    true = {kind_of(code) for code in truth}
    return len(true & set(operators)) / len(true) if true else 0.0


def truth_edits(truth: Iterable[str]) -> int:
    """How many edits the key's repair is: one for each layer."""
    return len(expanded(truth))


def summarise(rows: Iterable[RepairRow]) -> RepairBench:
    """The rows in the order of their ids, and what they add up to by arm."""
    ordered = tuple(sorted(rows, key=lambda row: (row.id, row.arm)))
    arms = dict.fromkeys(row.arm for row in ordered)
    return RepairBench(
        cases=ordered, summary={arm: _figures([x for x in ordered if x.arm == arm]) for arm in arms}
    )


def _figures(rows: Sequence[RepairRow]) -> ArmFigures:
    rates = [row.improvement_rate or 0.0 for row in rows]
    return ArmFigures(
        cases=len(rows),
        median_improvement_rate=round(median(rates), 4),
        mean_improvement_rate=round(fmean(rates), 4),
        significant_share=round(fmean(row.significant for row in rows), 4),
        edits_ratio=round(sum(x.edits for x in rows) / sum(x.truth_edits for x in rows), 4),
        recovered=round(fmean(row.recovered for row in rows), 4),
        complexity=round(fmean(row.complexity for row in rows), 4),
        stability=round(fmean(row.stability or 0.0 for row in rows), 4),
        trainings=round(fmean(row.trainings for row in rows), 2),
        false_claims=sum(row.claimed and not row.significant for row in rows),
    )
