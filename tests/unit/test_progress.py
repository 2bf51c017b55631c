"""What is said while a job runs."""

import re
from io import StringIO

import pytest
from rich.console import Console

from bot.cli import runner
from bot.cli.runner import PlainLines
from bot.kernel.ports import Progress
from bot.report.comment import progress_line


@pytest.mark.parametrize(
    ("stage", "text", "done", "total", "said"),
    [
        ("bisect", "bisect: 1.2: building", 1, 10, "bisect: 1.2: building, step 1 of at most 10"),
        ("confirm", "run 3", 3, 40, "confirm: run 3 of at most 40"),
        (
            "minimize",
            "minimizing: 12 → 9 lines",
            4,
            600,
            "minimize: 12 → 9 lines (4 of at most 600 programs tried)",
        ),
        (
            "minimize",
            "continuing from 9 lines, confirmed earlier",
            0,
            0,
            "minimize: continuing from 9 lines, confirmed earlier",
        ),
    ],
)
def test_a_line_names_its_stage_once(stage, text, done, total, said):
    assert progress_line(Progress(stage=stage, text=text, done=done, total=total)) == said


def test_plain_lines_begin_with_the_seconds_gone_by():
    out = StringIO()
    with PlainLines(Console(file=out, width=40)) as told:
        for text in ("running a", "running a", "running b"):
            told(Progress(stage="search", text=text))
    lines = out.getvalue().splitlines()
    assert [re.sub(r"^ *\d+\.\d s  ", "", line) for line in lines] == [
        "search: running a",
        "search: running b",
    ]
    assert all(re.match(r" *\d+\.\d s  ", line) for line in lines)


def test_a_long_step_says_twice_a_minute_how_it_goes_on(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(runner, "monotonic", lambda: now)
    out = StringIO()
    with PlainLines(Console(file=out, width=80)) as told:
        told(Progress(stage="repair", text="searching"))
        for trial in range(100):
            now += 1
            told.update(f"trial {trial}")
    lines = [line.split("s  ")[1] for line in out.getvalue().splitlines()]
    assert lines == [
        "repair: searching", *(f"repair: searching: trial {at}" for at in (30, 61, 92))
    ]  # fmt: skip
