"""A failure that comes by chance, bisected over releases again and again: how often both ends
are named rightly.

Everything is real: an index of wheels, environments built from it, runs in a sandbox, the whole way
from the report. The failure hangs on the system's own randomness, so that no seed decides it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

from benchmarks.wheels import Wheels, failing
from bot.environment.builder import UvBuilder
from bot.kernel.bug import Bisection, Issue
from bot.kernel.job import ReproduceIssue, RunLimits
from bot.kernel.ports import Ports
from bot.kernel.report import IssueReport
from bot.kernel.settings import host
from bot.kernel.values import Record
from bot.products import engine
from sandbox.port import Sandbox
from tests.support.fakes import ListListener, MemoryJournal

_NAME = "wobble"
# times: one failure in twenty of this rate is missed by the verdict's own test, and is no matter of
# bisecting
_ASKED = 4
_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_ERROR = "ValueError: the batch of 32 rows does not fit the 17 labels"
_RAISED = 'ValueError("the batch of 32 rows does not fit the 17 labels")'
_GOOD = "def fit():\n    return 0.5\n"
_CHANCY = f"""import random


def fit():
    if random.SystemRandom().random() < {{rate}}:
        raise {_RAISED}
    return 0.5
"""


class BisectedRow(Record):
    """One repetition: the releases that brought and mended the failure, those that were named,
    and what it took.
    """

    seed: int
    brought: str
    mended: str
    verdict: str
    asked: int = 1
    named_brought: str = ""
    named_mended: str = ""
    probes: int = 0
    runs: int = 0
    seconds: float = 0.0
    stopped: str = ""

    @property
    def right(self) -> bool:
        """Whether both ends are named, and nothing else."""
        return (self.named_brought, self.named_mended) == (self.brought, self.mended)


def bisect_flaky(
    times: int,
    folder: Path,
    sandbox: Sandbox,
    *,
    rate: float = 0.3,
    releases: int = 24,
    seed: int = 0,
) -> Iterator[BisectedRow]:
    """One row a repetition, each with other releases at fault and another first seed; `folder`
    takes up what they need.
    """
    for number in range(times):
        yield _once(folder / f"{number}", sandbox, rate, releases, seed + number)


def _once(folder: Path, sandbox: Sandbox, rate: float, releases: int, seed: int) -> BisectedRow:
    chance = random.Random(seed)
    first = chance.randrange(1, releases - 2)
    fixed = chance.randrange(first + 1, releases)
    reported = chance.randrange(first, fixed)
    wheels = Wheels(folder)
    for at in range(releases):
        source = _CHANCY.format(rate=rate) if first <= at < fixed else _GOOD
        wheels.add(_NAME, f"1.{at}", _DAY + timedelta(days=7 * at), source)
    began = monotonic()
    for asked in range(1, _ASKED + 1):
        report = _reproduced(
            wheels, folder / "cache", sandbox, reported, 1_000 * seed + 100 * asked
        )
        if report.verdict.kind == "reproduced":
            break
    found = report.bisection or Bisection(package=_NAME, bad="")
    return BisectedRow(
        seed=seed,
        brought=f"1.{first}",
        mended=f"1.{fixed}",
        verdict=report.verdict.kind,
        asked=asked,
        named_brought=found.first_bad.at
        if found.first_bad is not None and not found.introduced_among
        else "",
        named_mended=found.first_fixed.at
        if found.first_fixed is not None and not found.fixed_among
        else "",
        probes=len(found.probes),
        runs=len(report.attempts),
        seconds=monotonic() - began,
        stopped=found.stopped,
    )


def _reproduced(
    wheels: Wheels, cache: Path, sandbox: Sandbox, reported: int, seed: int
) -> IssueReport:
    """The whole way from a report of this failure, without the control and the minimiser."""
    body = failing(_NAME, f"1.{reported}", 6, _ERROR, " it fails now and then")
    issue = Issue(
        title="fit fails now and then",
        body=body,
        repository=f"acme/{_NAME}",
        created_at=_DAY + timedelta(days=3650),
    )
    environ = {
        "PATH": host()["PATH"],
        "HOME": str(cache),
        "PIP_INDEX_URL": wheels.address,
        "PIP_CONFIG_FILE": "/dev/null",
    }
    ports = Ports(
        sandbox=sandbox,
        builder=UvBuilder(cache, sandbox, environ=environ, torch_index=False),
        journal=MemoryJournal(),
        clock=monotonic,
        listener=ListListener(),
    )
    return engine.execute(
        ReproduceIssue(issue=issue, limits=RunLimits(seed=seed), without=("control", "minimize")),
        ports,
    )


def told(rows: list[BisectedRow]) -> str:
    """The table."""
    lines = [f"{'seed':>4}  {'truth':14} {'named':14} {'probes':>6} {'runs':>5} {'seconds':>8}"]
    lines += [
        f"{row.seed:4}  {f'{row.brought} to {row.mended}':14} "
        f"{f'{row.named_brought} to {row.named_mended}':14} "
        f"{row.probes:6} {row.runs:5} {row.seconds:8.1f}  {'right' if row.right else 'WRONG'}"
        + (f" ({row.verdict}{', ' + row.stopped if row.stopped else ''})" if not row.right else "")
        for row in rows
    ]
    return "\n".join([*lines, f"right in {sum(row.right for row in rows)} of {len(rows)}"])
