"""Runs of a sandbox that does nothing through the whole App, with more and more workers."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from benchmarks.deliveries import report_body
from benchmarks.killing import descendants
from benchmarks.scale.queue_alone import QueueFigures, queue_alone
from benchmarks.scale.worker import HandledTask
from benchmarks.supervised import Supervised
from benchmarks.whole_app import AppPlan, RunningApp, running, stored_runs
from bot.app.store import SqlStore
from bot.kernel.errors import UserError
from bot.kernel.values import Record
from tests.support.postgres import PostgresServer, postgres_server

Say = Callable[[str], None]
_PER_REPOSITORY = 20
_LONGEST_S = 3_600.0
_TICKS = os.sysconf("SC_CLK_TCK")
_SETTINGS = {
    "REPRISE_WRITE_GAP_S": "0",
    "REPRISE_NOTIFY_GAP_S": "0",
    "REPRISE_DAILY_MINUTES": "1000000",
    "REPRISE_RECONCILE_S": "3600",
    "REPRISE_GRACE_S": "5",
}


@dataclass(frozen=True)
class Plan:
    """How many runs, by how many workers; `sleep_s` is what the sandbox takes for each program
    run.
    """

    runs: int = 400
    workers: Sequence[int] = (1, 2, 4, 8)
    sleep_s: float = 0.1
    environ: Mapping[str, str] = field(default_factory=dict)


class ScaleFigures(Record):
    """One number of workers, each with one slot. Milliseconds are for each run: `queue_ms` from the
    end of a run to the beginning of the next one in its slot while work waits; within the task
    `engine_ms` in the engine, `github_ms` for GitHub's answers, `app_ms` the rest (the store, the
    decisions). `cpu_ms` are processor milliseconds by what takes them (`runs` is
    the App's part of a run without the engine, `arq` what else a worker does); `processors` is how
    many were busy, `load` the load average of the machine at the end.
    """

    workers: int
    runs: int
    seconds: float
    runs_per_s: float
    speedup: float
    engine_ms: float
    github_ms: float
    app_ms: float
    queue_ms: float
    delivery_ms: float
    cpu_ms: dict[str, float]
    processors: float
    load: float


class ScaleResult(Record):
    """All that was measured, with the processors of the machine."""

    processors: int
    sleep_s: float
    queue: QueueFigures
    figures: tuple[ScaleFigures, ...]


def scale(plan: Plan, say: Say) -> ScaleResult:
    """Measure each number of workers on an App, a Redis and a PostgreSQL of its own."""
    queue, figures = queue_alone(plan.runs, plan.environ), list[ScaleFigures]()
    say(f"the queue alone: {queue.cost_ms:.1f} ms a run")
    for workers in plan.workers:
        figure = _measured(plan, workers, figures[0].runs_per_s if figures else None)
        say(f"{workers} workers: {figure.runs_per_s:.1f} runs/s, queue {figure.queue_ms:.1f} ms")
        figures.append(figure)
    return ScaleResult(
        processors=os.cpu_count() or 1, sleep_s=plan.sleep_s, queue=queue, figures=tuple(figures)
    )


def _measured(plan: Plan, workers: int, base: float | None) -> ScaleFigures:
    with (
        tempfile.TemporaryDirectory(prefix="reprise-scale-") as name,
        postgres_server(durable=True) as database,
    ):
        folder = Path(name)
        app_plan = AppPlan(
            database=database.fresh(), environ=plan.environ, settings=_SETTINGS, workers=0
        )
        with running(app_plan, folder) as app:
            issues = _deliver(app, plan.runs)
            used = _cpu(app, database)
            with Supervised(_workers(workers, plan.sleep_s, folder), app.env, folder) as programs:
                _wait(app, issues)
                spent = _cpu(app, database)
            logs = [_tasks(folder / f"{name}.jsonl") for name in programs.starts]
    spent["workers"] = sum(
        max(task.cpu_ended_s for task in log) - min(task.cpu_began_s for task in log)
        for log in logs
        if log
    )
    tasks = [task for log in logs for task in log]
    spent["engine"] = sum(task.engine_cpu_s for task in tasks)
    spent["runs"] = sum(task.own_cpu_s for task in tasks if task.kind == "run")
    spent["deliveries"] = sum(task.own_cpu_s for task in tasks if task.kind == "delivery")
    known = spent["engine"] + spent["runs"] + spent["deliveries"]
    spent["arq"] = spent.pop("workers") - known
    cpu_ms = {part: 1000 * (spent[part] - used.get(part, 0.0)) / plan.runs for part in spent}
    return _figures(workers, tasks, cpu_ms, base)


def _workers(number: int, sleep_s: float, folder: Path) -> dict[str, list[str]]:
    command = [sys.executable, "-P", "-m", "benchmarks.scale.worker", "--sleep", str(sleep_s)]
    names = [f"worker-{worker}" for worker in range(1, number + 1)]
    return {name: [*command, "--tasks", str(folder / f"{name}.jsonl")] for name in names}


def _deliver(app: RunningApp, count: int) -> dict[str, tuple[str, int]]:
    """So many new issues, told to the web process before there is any worker."""
    hub, issues = app.hub, {}
    for number in range(count):
        repository = f"scale/repository-{number // _PER_REPOSITORY}"
        if number % _PER_REPOSITORY == 0:
            hub.commit(repository, {".github/reprise.yml": "defaults:\n  proofs: []\n"})
        issue = hub.state.issue(
            repository, "mean fails on an empty list", report_body(number), author=f"user-{number}"
        )
        guid = f"scale-{number:05d}"
        hub.deliver(hub.events.issue_opened(repository, issue.number), guid=guid)
        issues[guid] = (repository, issue.number)
    return issues


def _wait(app: RunningApp, issues: dict[str, tuple[str, int]]) -> None:
    """Until every issue has its run and its comment. Raises UserError when one was lost."""
    repositories, end = {name for name, _ in issues.values()}, time.monotonic() + _LONGEST_S
    with closing(SqlStore(app.database)) as store:
        while time.monotonic() < end:
            counts = store.counts()
            if counts["runs.finished"] + counts["runs.failed"] >= len(issues):
                break
            time.sleep(0.25)
        runs = stored_runs(store, repositories)
    wrong = [run.id for run in runs if (run.state, run.verdict) != ("finished", "reproduced")]
    silent = [where for where in issues.values() if len(app.hub.state.ours(*where)) != 1]
    if wrong or silent or len(runs) != len(issues):
        raise UserError(
            f"{len(runs)} runs, {len(wrong)} wrong, {len(silent)} without a comment.",
            "Look into the logs of the workers.",
        )


def _cpu(app: RunningApp, database: PostgresServer) -> dict[str, float]:
    """The processor seconds of each part until now. Ours are the stand-in for GitHub's."""
    postmaster = int((database.folder / "data/postmaster.pid").read_text().split()[0])
    backends = (postmaster, *descendants(postmaster))
    return {
        "web": _process_s(app.programs.pid("web")),
        "redis": _process_s(app.redis.pid("redis")),
        "postgres": sum(map(_process_s, backends)),
        "github": time.process_time(),
    }


def _process_s(pid: int) -> float:
    """The processor seconds of a process and of its children that have ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0


def _tasks(file: Path) -> list[HandledTask]:
    return [HandledTask.model_validate_json(line) for line in file.read_text().splitlines()]


def _figures(
    workers: int,
    tasks: Sequence[HandledTask],
    cpu_ms: dict[str, float],
    base: float | None,
) -> ScaleFigures:
    """The time of the slots from the first run to the last, and what it went to."""
    runs = [task for task in tasks if task.kind == "run" and task.engine_s > 0]
    deliveries = [task for task in tasks if task.kind == "delivery"]
    seconds = max(run.ended for run in runs) - min(run.began for run in runs)
    whole = max(task.ended for task in tasks) - min(task.began for task in tasks)
    slot_ms, rate = 1000 * workers * seconds / len(runs), len(runs) / seconds
    engine_ms = 1000 * sum(run.engine_s for run in runs) / len(runs)
    task_ms = 1000 * sum(run.ended - run.began for run in runs) / len(runs)
    github_ms = 1000 * sum(run.github_s for run in runs) / len(runs)
    handling_s = sum(task.ended - task.began for task in deliveries)
    return ScaleFigures(
        workers=workers,
        runs=len(runs),
        seconds=seconds,
        runs_per_s=rate,
        speedup=rate / (base or rate),
        engine_ms=engine_ms,
        github_ms=github_ms,
        app_ms=task_ms - engine_ms - github_ms,
        queue_ms=slot_ms - task_ms,
        delivery_ms=1000 * handling_s / max(1, len(deliveries)),
        cpu_ms=cpu_ms,
        load=os.getloadavg()[0],
        processors=sum(cpu_ms.values()) * len(runs) / 1000 / whole,
    )


def scale_table(result: ScaleResult) -> Table:
    """A row for each number of workers."""
    alone = f"the queue alone takes {result.queue.cost_ms:.1f} ms a run"
    title = f"{result.processors} processors, {result.sleep_s:g} s a program run; {alone}"
    table = Table(title=title)
    for name in ("workers", "runs/s", "speedup", "engine ms", "GitHub ms", "App ms", "queue ms"):
        table.add_column(name, justify="right")
    for name in ("CPU ms", "busy", "load"):
        table.add_column(name, justify="right")
    for row in result.figures:
        times = (row.engine_ms, row.github_ms, row.app_ms, row.queue_ms)
        table.add_row(
            str(row.workers),
            f"{row.runs_per_s:.2f}",
            f"{row.speedup:.2f}",
            *(f"{value:.1f}" for value in times),
            ", ".join(f"{part} {value:.1f}" for part, value in row.cpu_ms.items()),
            f"{row.processors:.2f}",
            f"{row.load:.0f}",
        )
    return table
