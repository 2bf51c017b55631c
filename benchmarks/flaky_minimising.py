"""A failure that comes by chance, minimised again and again: how often that ends right, and as
small as it ever gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from bot.issues.proof.minimise import confirmed_identity, minimise, oracle_of
from bot.issues.reading import issue
from bot.issues.runner import judging
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import CrashSignature, Issue
from bot.kernel.environment import Environment, EnvironmentSpec
from bot.kernel.job import ReproduceIssue, RunLimits
from bot.kernel.ports import Builder, Ports
from bot.kernel.session import Session
from bot.kernel.values import Record
from sandbox.port import Sandbox
from tests.support.fakes import FakeBuilder, ListListener, MemoryJournal

_SIGNATURE = CrashSignature(exception="IndexError", message="list index out of range")
_SPARE_LINES = 3
_CONFIRMING, _FEWEST, _CHECKING, _SECONDS = 12, 2, 60, 600.0
_PROGRAM = '''"""Looks up rows by chance."""
import json
import random

SETTINGS = {{"rows": {rows}, "verbose": True}}


class Table:
    """Rows, and how often they were asked for."""

    def __init__(self, count):
        self.rows = [[at, at * at] for at in range(count)]
        self.asked = 0

    def note(self):
        self.asked += 1
        return self.asked


def told(table):
    summary = {{"rows": len(table.rows), "asked": table.asked}}
    if SETTINGS["verbose"]:
        print(json.dumps(summary))
    return summary


def main():
    table = Table(SETTINGS["rows"])
    history = []
    for step in range(3):
        history.append(table.note())
    told(table)
    chance = random.SystemRandom().randrange(1000)
    value = table.rows[chance]
    history.append(value)
    told(table)
    print("done", len(history))


main()
'''


class MinimisedRow(Record):
    """One repetition: how often the result failed as reported in fresh runs. `smallest` counts
    the lines of the smallest result of any repetition that fails as reported at a comparable
    rate.
    """

    seed: int
    lines: int
    smallest: int
    wanted: float
    failures: int
    runs: int
    tests: int
    seconds: float
    ended: str
    source: str

    @property
    def alike(self) -> bool:
        """Whether the result fails as reported at a comparable rate."""
        return (
            self.ended == "complete"
            and self.wanted / 2 <= self.failures / self.runs <= 2 * self.wanted
        )

    @property
    def right(self) -> bool:
        """Whether it does and is about as small as any."""
        return self.alike and self.lines <= self.smallest + _SPARE_LINES


def minimise_flaky(
    times: int, sandbox: Sandbox, built: Environment, *, rate: float, seed: int = 0
) -> Iterator[MinimisedRow]:
    """Minimise a program that fails with this rate, each time from other seeds."""
    for turn in range(times):
        yield _minimised(sandbox, built, rate, seed + 1000 * (turn + 1))


def compared(rows: list[MinimisedRow]) -> list[MinimisedRow]:
    """The repetitions compared with the smallest result among them."""
    smallest = min((row.lines for row in rows if row.alike), default=0)
    return [row.model_copy(update={"smallest": smallest}) for row in rows]


def environment(builder: Builder) -> Environment:
    """Python alone."""
    return builder.build(EnvironmentSpec(python="3.11"))


def _minimised(sandbox: Sandbox, built: Environment, rate: float, seed: int) -> MinimisedRow:
    ports = Ports(
        sandbox=sandbox,
        builder=FakeBuilder(),
        journal=MemoryJournal(),
        clock=monotonic,
        listener=ListListener(),
    )
    job = ReproduceIssue(issue=Issue(title="bench", body=""), limits=RunLimits(seed=seed))
    runner = judging(Session.begin(job, ports), issue.read_issue(job.issue), _SIGNATURE)
    script = Script(files={"repro.py": _PROGRAM.format(rows=round(1000 * (1 - rate)))})
    failed = runs = 0
    while runs < _CONFIRMING or failed < _FEWEST:  # as it was confirmed: it is known to fail
        runs += 1
        failed += runner.run(script, built, seed + runs, "confirm").match is Match.MATCHED
    found = confirmed_identity(runner, script, built)
    assert found is not None
    held, seeds = found
    done = minimise(runner, script, built, held, seeds=seeds, max_tests=4000, seconds=_SECONDS)
    test = oracle_of(runner, built, held).test
    results = (
        runner.run(done.script, built, seed + 500 + run, "repeat").judgement
        for run in range(_CHECKING)
    )
    return MinimisedRow(
        seed=seed,
        lines=done.lines_after,
        smallest=done.lines_after,
        wanted=rate,
        runs=_CHECKING,
        tests=done.tests,
        failures=sum(test.shows(judgement, done.script) for judgement in results),
        seconds=done.seconds,
        ended=done.ended,
        source=done.script.source,
    )


def told(rows: list[MinimisedRow]) -> str:
    """The table."""
    lines = [
        f"{'seed':>6} {'lines':>5} {'best':>6} {'fails':>7} {'tests':>6} {'seconds':>8}  right"
    ]
    lines += [
        f"{row.seed:6} {row.lines:5} {row.smallest:6} {row.failures:3}/{row.runs:3} {row.tests:6} "
        f"{row.seconds:8.1f}  " + ("yes" if row.right else f"NO ({row.ended})")
        for row in rows
    ]
    return "\n".join([*lines, f"{sum(row.right for row in rows)} of {len(rows)} ended right"])
