"""The figures under the bench table."""

from __future__ import annotations

from rich.console import Console

from benchmarks.summary import Row, summarise
from benchmarks.tables import issues_table

ROWS = (
    Row(
        id="b",
        verdict="reproduced",
        right=None,
        runs=3,
        seconds=4,
        kind="silent",
        runnable=True,
        overhead=1.2,
    ),
    Row(
        id="a",
        verdict="reproduced",
        right=True,
        runs=3,
        seconds=2,
        kind="crash",
        runnable=True,
        overhead=1.6,
    ),
    Row(id="d", verdict=None, right=False, kind="crash", error="the index is down"),
    Row(
        id="c",
        verdict="reproduced",
        right=False,
        seconds=9,
        kind="trap",
        false_reproduced=True,
        reason="the script raises it",
    ),
)


def test_rows_add_up() -> None:
    summary = summarise(ROWS).summary
    assert (summary.right, summary.needs_eyes, summary.wrong, summary.total) == (1, 1, 2, 4)
    assert summary.false_reproduced == ("c",)
    assert summary.errors == ("d",)
    assert (summary.runnable.right, summary.runnable.needs_eyes, summary.runnable.total) == (
        1,
        1,
        2,
    )
    assert (summary.by_kind["crash"].right, summary.by_kind["crash"].total) == (1, 2)
    assert (summary.seconds, summary.seconds_median, summary.overhead) == (15.0, 3.0, 1.4)


def test_cases_are_listed_by_id_and_nothing_is_an_empty_table() -> None:
    assert [row.id for row in summarise(ROWS).cases] == ["a", "b", "c", "d"]
    assert summarise(()).summary.seconds_median is None


def test_the_table_says_right_wrong_or_needs_eyes_and_why() -> None:
    console = Console(width=120, record=True, file=None, quiet=False, no_color=True)
    with console.capture() as captured:
        console.print(issues_table(summarise(ROWS)))
    text = captured.get()
    for words in (
        "needs review",
        "the index is down",
        "false reproduced: c",
        "with a program in the body: 1 right",
        "1.40",
    ):
        assert words in text
