"""What one body of an issue costs: CPU and memory to read it, bytes to store it, and its page."""

from __future__ import annotations

import multiprocessing
import random
import resource
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import TypeVar

from pydantic import BaseModel
from rich.table import Table

from bot.app.store import database
from bot.issues.reading import issue as reading_issue
from bot.kernel.bug import MOST_BODY, Issue
from bot.kernel.job import ReproduceIssue
from bot.kernel.report import Cancelled, IssueReport
from bot.kernel.run import NewRun, Repository, Run, RunState
from bot.products.engine import plan
from bot.report import html
from bot.report.html import view
from tests.corpus.bodies.pathological import SHAPES

READ_S, PLAN_S, PAGE_S = 2.0, 4.0, 2.0
MEMORY_MIB = 200.0
STORED = 1_000_000
GROWTH = 3.0
_MEASURABLE_S = 0.3  # below it, twice the time is noise
T = TypeVar("T")


class BodyCost(BaseModel):
    """CPU seconds to read a body, to plan its run and to draw its page; MiB of memory above an idle
    process; bytes of the stored request and report, and of the page.
    """

    id: str
    read_s: float
    plan_s: float
    page_s: float
    memory_mib: float
    stored: int
    page: int
    growth: float | None = None

    @property
    def excesses(self) -> tuple[str, ...]:
        """The limits that this body exceeds."""
        rows = (
            ("read", self.read_s, READ_S), ("plan", self.plan_s, PLAN_S),
            ("page", self.page_s, PAGE_S), ("memory", self.memory_mib, MEMORY_MIB),
            ("stored", self.stored, STORED), ("growth", self.growth or 0.0, GROWTH),
        )  # fmt: skip
        return tuple(name for name, value, limit in rows if value > limit)


class BodyCosts(BaseModel):
    """The costs of several bodies."""

    cases: tuple[BodyCost, ...]


def corpus(size: int = MOST_BODY) -> Iterator[BodyCost]:
    """The cost of each pathological shape at a size; `growth` is the time to plan it, over that
    for half of it. Linear growth gives 2.
    """
    for name, shape in SHAPES.items():
        whole = measure(name, shape(size))
        if whole.plan_s < _MEASURABLE_S:
            yield whole
        else:
            half = measure(name, shape(size // 2))
            yield whole.model_copy(update={"growth": whole.plan_s / half.plan_s})


def fuzz(seconds: float, seed: int) -> Iterator[BodyCost]:
    """The cost of random mixtures of the shapes, for some seconds."""
    generator, end = random.Random(seed), time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        yield measure(f"mixture {seed}.{number}", mixture(generator))


def mixture(generator: random.Random) -> str:
    """Parts of one to five shapes, joined so that one may end in another."""
    room, parts = generator.randrange(1_000, MOST_BODY), []
    for shape in generator.choices(list(SHAPES.values()), k=generator.randrange(1, 6)):
        size = generator.randrange(200, max(201, room))
        parts.append(shape(size))
        room = max(0, room - size)
    return generator.choice(("", "\n", "\n\n", "\n```\n", "\n```\n\n")).join(parts)[:MOST_BODY]


def measure(name: str, body: str) -> BodyCost:
    """The cost of a body, in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.bodies"])
    answer, child = context.Pipe(duplex=False)
    process = context.Process(target=_measure_here, args=(name, body, child))
    process.start()
    child.close()
    try:
        cost: BodyCost = answer.recv()
        return cost
    finally:
        process.join()


def _measure_here(name: str, body: str, answer: Connection) -> None:
    idle = _peak_mib()
    issue = Issue(title="It fails", body=body, repository="owner/name", number=1)
    job = ReproduceIssue(issue=issue)
    read_s, _ = _timed(lambda: reading_issue.read_issue(issue))
    plan_s, planned = _timed(lambda: plan(job))
    report = IssueReport(
        issue=issue,
        bug=planned.bug,
        verdict=planned.verdict or Cancelled(reason="stopped"),
        signature=planned.signature,
        spec=planned.spec,
        script=planned.script,
    )
    request = NewRun(
        delivery="1",
        installation=1,
        repository=Repository(id=1, full_name="owner/name"),
        number=1,
        requester="someone",
        trigger="opened",
        job=job,
    )
    row, request_row = database.json(report), database.json(request)
    page_s, html = _timed(lambda: _page(request, row))
    cost = BodyCost(
        id=name,
        read_s=read_s,
        plan_s=plan_s,
        page_s=page_s,
        memory_mib=_peak_mib() - idle,
        stored=len(row.encode()) + len(request_row.encode()),
        page=len(html.encode()),
    )
    answer.send(cost)


def _page(request: NewRun, row: str) -> str:
    now = datetime.now(UTC)
    run = Run(id="0" * 32, request=request, state=RunState.FINISHED, created_at=now)
    report = IssueReport.model_validate_json(row)
    return html.run_page(view(run, report, (), github_url="https://github.com", now=now))


def _timed(act: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    result = act()
    return time.process_time() - began, result


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def costs_table(costs: BodyCosts) -> Table:
    """The dearest bodies by each measure, and every one that exceeds a limit."""
    measures: tuple[Callable[[BodyCost], float], ...] = (
        lambda cost: cost.plan_s,
        lambda cost: cost.memory_mib,
        lambda cost: cost.stored,
        lambda cost: cost.growth or 0.0,
    )
    dearest = [cost for key in measures for cost in sorted(costs.cases, key=key)[-4:]]
    over = [cost for cost in costs.cases if cost.excesses]
    table = Table(title=f"{len(costs.cases)} bodies; {len(over)} exceed a limit")
    for name in ("body", "read s", "plan s", "page s", "MiB", "stored kB", "growth", "exceeds"):
        table.add_column(name, justify="left" if name in {"body", "exceeds"} else "right")
    for cost in {cost.id: cost for cost in (*over, *dearest)}.values():
        table.add_row(
            cost.id,
            *(f"{seconds:.2f}" for seconds in (cost.read_s, cost.plan_s, cost.page_s)),
            f"{cost.memory_mib:.0f}",
            f"{cost.stored / 1e3:.0f}",
            f"{cost.growth:.1f}" if cost.growth else "",
            ", ".join(cost.excesses),
        )
    return table
