"""What each part is worth, from recorded exchanges: every part left out in turn, over the cases
where the answers still fit.

A part that changes what a model is told makes the recorded answers worthless from there on: such
cases are counted as not recorded, never as wrong. Parts that only act on answers (checks, twins,
probes) can be judged without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from benchmarks.summary import Row
from bot.kernel.job import PARTS, Part
from bot.kernel.values import Record

WHOLE = "(nothing)"
_DECIDES = frozenset({"reproduced", "not_reproduced", "different_failure"})


class Left(Record):
    """The cases with one part left out. `wrong` are verdicts that claim something false,
    `undecided` those that claim nothing where something was to be found; `not_recorded` had no
    answers for what was asked and stand in none of the other columns.
    """

    part: str
    cases: tuple[Row, ...]
    right: int
    needs_eyes: int
    wrong: int
    undecided: int
    not_recorded: tuple[str, ...]
    calls: int
    runs: int


def left(part: str, rows: Sequence[Row]) -> Left:
    """The figures of one part."""
    fitting = [row for row in rows if not row.missed]
    failed = [row for row in fitting if row.right is False]
    return Left(
        part=part,
        cases=tuple(sorted(rows, key=lambda row: row.id)),
        right=sum(row.right is True for row in fitting),
        needs_eyes=sum(row.right is None for row in fitting),
        wrong=sum(row.verdict in _DECIDES for row in failed),
        undecided=sum(row.verdict not in _DECIDES for row in failed),
        not_recorded=tuple(sorted(row.id for row in rows if row.missed)),
        calls=sum(row.calls for row in fitting),
        runs=sum(row.runs for row in fitting),
    )


def ablate(
    run: Callable[[tuple[Part, ...], Path], Sequence[Row]], out: Path, parts: Sequence[Part] = PARTS
) -> tuple[Left, ...]:
    """The whole first, then each part left out; `run` runs all cases without some parts, into a
    folder of its own.
    """
    found = [left(WHOLE, run((), out / "whole"))]
    found += [left(part, run((part,), out / part)) for part in parts]
    return tuple(found)


def ablation_table(rows: Sequence[Left]) -> Group:
    """One row a part."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("left out")
    for name in ("right", "need review", "undecided", "wrong", "calls", "runs", "not recorded"):
        table.add_column(name, justify="right")
    for row in rows:
        figures = (
            row.right,
            row.needs_eyes,
            row.undecided,
            row.wrong,
            row.calls,
            row.runs,
            len(row.not_recorded),
        )
        table.add_row(row.part, *map(str, figures))
    said = "Cases whose answers were not recorded for what was asked stand in that column alone."
    return Group(table, Text(), Text(said))
