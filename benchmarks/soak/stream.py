"""Delivers at a steady rate to a whole App, waits until it rests, and looks at what has become of
it.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean

from benchmarks.killing import adopted_orphans
from benchmarks.soak import reports
from benchmarks.soak.leftovers import Places
from benchmarks.soak.outcome import Answer, Outcome
from benchmarks.soak.reports import IssueReport
from benchmarks.soak.sampling import Sample, Window, look, sampled, window
from benchmarks.whole_app import AppPlan, RunningApp, running, stored_runs
from bot.app.store import SqlStore
from bot.kernel.run import Run
from tests.support.server.records import HookDelivery
from tests.support.stand_in import GitHubServer

Say = Callable[[str], None]
_WIDE = {"REPRISE_DAILY_MINUTES": "1000000", "REPRISE_GRACE_S": "5"}
_NOT_OURS = ("REPRISE_", "OPENAI_", "UV_", "PIP_", "COV_")
_BUSY = (
    "deliveries.waiting",
    "deliveries.handling",
    "runs.queued",
    "runs.running",
    "runs.reported",
)
_START_S, _SETTLE_S = 5.0, 900.0
_LONGEST_WARM_UP_S = 300.0


@dataclass(frozen=True)
class Plan:
    """How long and how fast; `rate` is deliveries a minute, `honest` the share of honest ones."""

    minutes: float = 30.0
    rate: float = 10.0
    honest: float = 0.5
    sandbox: str = "auto"
    seed: int = 0
    every_s: float = 5.0
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long is delivered."""
        return self.minutes * 60

    @property
    def warm_up_s(self) -> float:
        """What comes before does not count as growth."""
        return min(_LONGEST_WARM_UP_S, self.seconds / 6)


@dataclass
class _Stream:
    """What was delivered, and what was seen meanwhile."""

    sent: list[tuple[IssueReport, int, HookDelivery]] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)


def soak(plan: Plan, say: Say) -> Outcome:
    """Start the App, deliver, wait until it rests, stop it, and count."""
    used, began = _used_s(), time.monotonic()
    with _folder() as folder, adopted_orphans():
        places = Places(folder, plan.sandbox)
        empty = places.seen(None)
        with running(_app(plan, places), folder) as app:
            reports.repositories(app.hub, folder / "sources")
            time.sleep(_START_S)
            idle = places.seen(app)
            with sampled(partial(look, app.programs), plan.every_s) as samples:
                stream = _deliver(app, plan, say)
                answers = _answered(app, stream, say)
                left = places.left(app, idle)
                time.sleep(2 * plan.every_s)
            restarts = {name: n - 1 for name, n in app.programs.starts.items() if n > 1}
        left = places.left(None, empty) | left
    return Outcome(
        answers=answers,
        refused=sum(not 200 <= each.status_code < 300 for _, _, each in stream.sent),
        minutes=plan.minutes,
        leftovers=left,
        restarts=restarts,
        processors=(_used_s() - used) / (time.monotonic() - began),
        load=mean(stream.loads),
        samples=tuple(samples),
        **_windows(plan, samples),
    )


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for all that the App has: temporary files, a cache, a home, a package index."""
    with tempfile.TemporaryDirectory(prefix="reprise-soak-") as name:
        folder = Path(name)
        for part in ("tmp", "cache", "home", "sources"):
            (folder / part).mkdir()
        (folder / "tmp").chmod(0o1777)
        reports.index(folder / "index")
        yield folder


def _app(plan: Plan, places: Places) -> AppPlan:
    """The App without anything of this host that would make runs differ: packages come from the
    index of the reports alone.
    """
    kept = {name: text for name, text in plan.environ.items() if not name.startswith(_NOT_OURS)}
    environ = {
        **kept,
        "HOME": str(places.folder / "home"),
        "TMPDIR": str(places.temporary),
        "PIP_INDEX_URL": (places.folder / "index").as_uri(),
        "PIP_CONFIG_FILE": "/dev/null",
    }
    return AppPlan(plan.sandbox, cache=places.cache, environ=environ, settings=_WIDE)


def _deliver(app: RunningApp, plan: Plan, say: Say) -> _Stream:
    """Each report as a new issue, or a comment on one, at its moment."""
    stream, began = _Stream(), time.monotonic()
    count = round(plan.minutes * plan.rate)
    for number, report in enumerate(reports.mixture(count, plan.honest, plan.seed)):
        time.sleep(max(0.0, began + number * 60 / plan.rate - time.monotonic()))
        stream.sent.append(_sent(app.hub, report, number))
        stream.loads.append(os.getloadavg()[0])
        if (number + 1) % 20 == 0:
            say(f"{number + 1} of {count} delivered; load {stream.loads[-1]:.1f}")
    time.sleep(max(0.0, began + plan.seconds - time.monotonic()))
    return stream


def _sent(
    hub: GitHubServer, report: IssueReport, number: int
) -> tuple[IssueReport, int, HookDelivery]:
    author = f"reporter-{number}"
    issue = hub.state.issue(report.repository, report.title, report.body, author=author).number
    if report.comment:
        event = hub.events.issue_comment(report.repository, issue, report.sender, report.comment)
    else:
        event = hub.events.issue_opened(report.repository, issue)
    return report, issue, hub.deliver(event)


def _answered(app: RunningApp, stream: _Stream, say: Say) -> tuple[Answer, ...]:
    """What became of each report, once nothing is left to do."""
    with closing(SqlStore(app.database)) as store:
        end, last = time.monotonic() + _SETTLE_S, 0
        while (busy := _busy(store)) and time.monotonic() < end:
            if busy != last:
                say(f"all delivered; {busy} tasks are left")
            last = busy
            time.sleep(2.0)
        time.sleep(_START_S)
        runs = stored_runs(store, {report.repository for report, _, _ in stream.sent})
    of = {guid: [each for each in runs if each.request.delivery == guid] for guid in _guids(stream)}
    return tuple(
        _answer(app.hub, report, number, delivery, of[delivery.guid])
        for report, number, delivery in stream.sent
    )


def _busy(store: SqlStore) -> int:
    counts = store.counts()
    return sum(counts[name] for name in _BUSY)


def _guids(stream: _Stream) -> set[str]:
    return {delivery.guid for _, _, delivery in stream.sent}


def _answer(
    hub: GitHubServer, report: IssueReport, number: int, delivery: HookDelivery, runs: list[Run]
) -> Answer:
    ours = hub.state.ours(report.repository, number)
    waited = [(each.history[-1].at - delivery.delivered_at).total_seconds() for each in ours]
    return Answer(
        id=report.id,
        issue=f"{report.repository}#{number}",
        honest=report.honest,
        verdicts=report.verdicts,
        runs=len(runs),
        comments=len(ours),
        verdict=runs[0].verdict if runs else "",
        state=runs[0].state if runs else "",
        seconds=max(waited, default=None),
    )


def _windows(plan: Plan, samples: list[Sample]) -> dict[str, Window]:
    """As long as half of the warm-up: at its end, at the end of the deliveries, and at rest."""
    span, last = plan.warm_up_s / 2, samples[-1].at
    return {
        "warm": window(samples, plan.warm_up_s - span, plan.warm_up_s),
        "end": window(samples, plan.seconds - span, plan.seconds),
        "at_rest": window(samples, last - plan.every_s, last),
    }


def _used_s() -> float:
    """The processor seconds of every child that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
