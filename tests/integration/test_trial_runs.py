"""Trials as forks of one process, with real processes."""

from __future__ import annotations

import pytest

from bot.app import bootstrap
from bot.kernel.job import DiagnoseProgram
from bot.kernel.session import Session
from bot.kernel.settings import load
from bot.kernel.training_types import TrainingProgram
from bot.training.repair.trials import TrialRun, TrialRuns
from tests.integration.test_minimise import HERE
from tests.support.engine import MemoryJournal
from tests.support.sandbox import CountingSandbox

PROGRAM = """\
import os, sys
print("colorsys" in sys.modules, flush=True)
__import__("colorsys")
"""
LIES = 'open(".covered", "w").write(TEXT)\nos._exit(0)\n'
LATE = '\'{"modules": ["colorsys"]}\''


@pytest.mark.parametrize(
    ("source", "learned"),
    [
        (PROGRAM, True),
        (PROGRAM + LIES.replace("TEXT", LATE), True),
        (PROGRAM + LIES.replace("TEXT", "'no JSON'"), False),
        (PROGRAM + LIES.replace("TEXT", '\'{"modules": ["-x", "a b", "no.such"]}\''), False),
        (PROGRAM + "sys.exit(1)", True),
        ("import os\n" * 3 + "os.kill(os.getpid(), 9)", False),
    ],
)
def test_what_libraries_import_late_is_imported_once_for_all_trials(source, learned):
    sandbox = CountingSandbox()
    ports = bootstrap.make_ports(
        load(), journal=MemoryJournal(), listener=lambda _: None, sandbox=sandbox
    )
    program = TrainingProgram(files={"train.py": source.encode()}, entry="train.py")
    session = Session.begin(DiagnoseProgram(program=program), ports)
    trials = TrialRuns(session, HERE, limit_s=30.0)
    try:
        rounds = [
            [result.stdout.strip() for _, result in trials.run([TrialRun(program, seed, "whole")])]
            for seed in range(3)
        ]
    finally:
        trials.close()
    printed = "False" if source.startswith(PROGRAM) else ""
    assert rounds[0] == [printed]
    assert rounds[1:] == [["True" if learned else printed]] * 2
    assert sandbox.runs == 1
