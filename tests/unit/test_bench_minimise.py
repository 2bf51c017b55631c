"""The figures beside general reducers, and how those are started and ended."""

import os
import time
from pathlib import Path

import pytest

from benchmarks import minimise
from benchmarks.minimise import ToolResult, known, told
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature
from bot.kernel.environment import Environment
from bot.kernel.errors import UserError
from sandbox.process import ProcessSandbox
from tests.support.fakes import FakeBuilder


def row(tool, after, seconds, case="one", **more):
    return ToolResult(
        case=case,
        tool=tool,
        before=100,
        after=after,
        tests=9,
        seconds=seconds,
        total=seconds,
        held=True,
        **more,
    )


def test_each_other_tool_has_its_own_figures():
    rows = [
        row("reprise", 10, 20.0, path=((60, 2.0), (40, 5.0), (10, 20.0))),
        row("lithium", 50, 100.0),
        row("shrinkray", 5, 400.0, stopped=True),
        row("lithium", 20, 300.0, case="two"),
    ]
    text = told(rows)
    assert "until nothing goes any more: 0.200 of the wall time of lithium's tests" in text
    assert "until as small as lithium's result: 0.050 of it" in text
    assert "larger than lithium's result: none" in text
    assert "until as small as shrinkray's result: 0.050 of it" in text, (
        "never as small: all of its time"
    )
    assert "larger than shrinkray's result: one" in text
    assert text.splitlines()[3].endswith("yes, stopped")
    assert "two" not in text.split("until", 1)[1], "a case that we have no row of is not compared"


def test_a_reducers_way_is_read_off_its_tests():
    tests = [(9, False), (8, True), (12, True), (8, True), (3, False), (2, True)]
    rows = [
        minimise.InterestingnessTest(seconds=1.0, lines=lines, interesting=shows)
        for lines, shows in tests
    ]
    assert list(minimise._smaller(rows)) == [(8, 2.0), (2, 6.0)]


def test_another_tool_is_refused_with_those_that_there_are():
    assert known("reprise, shrinkray") == ("reprise", "shrinkray")
    with pytest.raises(UserError, match="--tools creduce") as refused:
        known("reprise,creduce")
    assert "lithium" in refused.value.fix


def on_path(monkeypatch, tmp_path, text):
    program = tmp_path / "bin" / "shrinkray"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    settings, target = tmp_path / "oracle.json", tmp_path / "repro.py"
    target.write_text("a\nb\n")
    return settings, target


def test_a_reducer_whose_time_is_up_is_ended_with_all_that_it_started(monkeypatch, tmp_path):
    settings, target = on_path(monkeypatch, tmp_path, f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    assert minimise._shrinkray(settings, target, 0.5) is False
    child = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if (
            not Path(f"/proc/{child}/cmdline").exists()
            or not Path(f"/proc/{child}/cmdline").read_bytes()
        ):
            return
        time.sleep(0.02)
    pytest.fail("what it started still runs")


def test_a_reducer_that_comes_to_its_end_is_not_called_stopped(monkeypatch, tmp_path):
    settings, target = on_path(monkeypatch, tmp_path, 'for last; do :; done; echo a > "$last"')
    assert minimise._shrinkray(settings, target, 30) is True
    assert target.read_text() == "a\n"


def test_a_reducer_that_fails_is_not_called_stopped(monkeypatch, tmp_path):
    settings, target = on_path(monkeypatch, tmp_path, "exit 3")
    with pytest.raises(minimise.ReducerFailed, match="exit status 3"):
        minimise._shrinkray(settings, target, 30)


def test_a_reducer_that_never_tests_is_left_out_and_the_others_stay(monkeypatch, tmp_path):
    on_path(monkeypatch, tmp_path, "exit 0")
    monkeypatch.setattr(
        minimise,
        "_lithium",
        lambda settings, program, _: (log(settings), program.write_text("[][1]\n")),
    )
    said, here = [], Environment(id="here", python="3.11", interpreter="/usr/bin/python3")
    script = Script(files={"repro.py": "x = 1\n[][1]\n"})
    crash = CrashSignature(exception="IndexError", message="list index out of range")
    world = (ProcessSandbox(), FakeBuilder())
    rows = minimise.reduced(
        "one", script, crash, world, here, said.append, ("lithium", "shrinkray")
    )
    assert [(each.tool, each.tests, each.after) for each in rows] == [("lithium", 1, 1)]
    assert "one: shrinkray ended without a single test; it is not in the table" in said


def log(settings):
    path = minimise.OracleSettings.model_validate_json(settings.read_bytes()).log
    Path(path).write_text(
        minimise.InterestingnessTest(seconds=1, lines=1, interesting=True).model_dump_json() + "\n"
    )
    return True


def test_a_reducer_that_is_not_there_says_how_to_have_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="not on the search path") as refused:
        minimise._shrinkray(tmp_path / "oracle.json", tmp_path / "repro.py", 1)
    assert "uv tool install shrinkray" in refused.value.fix
