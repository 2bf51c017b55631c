"""Reports stream in, something breaks and comes back; then every report is looked up."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from statistics import median

from rich.table import Table

from benchmarks.chaos.faults import Fault
from benchmarks.chaos.scene import Scene, scene
from benchmarks.whole_app import stored_runs
from bot.app.store import SqlStore
from bot.kernel.errors import TransientError
from bot.kernel.run import LIVE, Run
from bot.kernel.values import Record
from tests.support.server.records import HookDelivery

Say = Callable[[str], None]
_NEEDS = attrgetter("sandbox", "dead_model", "own_daemon")
_CONFIG = "defaults:\n  proofs: []\n"
_PROGRAM = """```python
import statistics
import time

time.sleep(1)
print(statistics.mean([]))  # sample {number}
```

```
Traceback (most recent call last):
  File "repro.py", line 5, in <module>
    print(statistics.mean([]))
  File "/usr/lib/python3.11/statistics.py", line 327, in mean
    raise StatisticsError('mean requires at least one data point')
statistics.StatisticsError: mean requires at least one data point
```
"""
_PROSE = "My training run {number} stops with an error after some hours, and I do not know why."
_REST_S = 3.0  # whatever would be done twice may be about to be
_IDS = re.compile(r"\b[0-9a-f]{16,}\b|\bchaos-[\w-]+|\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Plan:
    """How many reports, in which time, and how long a fault lasts; the first half comes before
    it.
    """

    faults: Sequence[Fault]
    reports: int = 8
    gap_s: float = 1.0
    fault_s: float = 20.0
    settle_s: float = 300.0
    sandbox: str = "auto"
    environ: Mapping[str, str] = field(default_factory=dict)


class ChaosOutcome(Record):
    """What became of the reports under one fault. `seen` are the commonest warnings and errors in
    the log; `refused` deliveries found nobody; `silent` are reports without a comment; seconds run
    from the delivery to the last word of the comment.
    """

    fault: str
    what: str
    reports: int
    right: int
    lost: int
    doubled: int
    failed: int
    silent: int
    refused: int
    takes: int
    median_s: float
    max_s: float
    seen: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether every report has one run with the right verdict, and one comment."""
        return self.right == self.reports and not (self.lost or self.doubled or self.failed)


@dataclass(frozen=True, slots=True)
class _Sent:
    """One report; `verdicts` are those that are right."""

    repository: str
    number: int
    guid: str
    verdicts: frozenset[str]
    delivery: HookDelivery


def chaos(plan: Plan, say: Say) -> Iterator[ChaosOutcome]:
    """One fault after the other, those that need the same App under one."""
    for (sandbox, *needs), faults in groupby(plan.faults, _NEEDS):
        with scene(sandbox or plan.sandbox, plan.environ, *needs) as place:
            for fault in faults:
                say(f"{fault.name}: {fault.what}")
                yield _struck(plan, fault, place, say)


def _struck(plan: Plan, fault: Fault, place: Scene, say: Say) -> ChaosOutcome:
    logs, half = _Logs(place), plan.reports // 2
    place.app.hub.commit(f"chaos/{fault.name}", {".github/reprise.yml": _CONFIG})
    with ThreadPoolExecutor(plan.reports) as senders:
        sending = [senders.submit(_send, plan, fault, place, number) for number in range(half)]
        time.sleep(half * plan.gap_s)
        began = time.monotonic()
        with fault.inject(place, plan.fault_s):
            sending += [
                senders.submit(_send, plan, fault, place, number)
                for number in range(half, plan.reports)
            ]
            time.sleep(plan.fault_s)
        say(f"  over after {time.monotonic() - began:.0f} s")
        sent = [each.result() for each in sending]
    runs = _settled(plan, place, sent)
    return _outcome(fault, place, sent, runs, logs.words())


def _send(plan: Plan, fault: Fault, place: Scene, number: int) -> _Sent:
    """Deliver one report at its moment. With a dead model, every second one lacks a program."""
    time.sleep(number % max(1, plan.reports // 2) * plan.gap_s)
    repository, prose = f"chaos/{fault.name}", fault.dead_model and number % 2 == 1
    body = (_PROSE if prose else _PROGRAM).format(number=number)
    hub, guid = place.app.hub, f"chaos-{fault.name}-{number:03d}"
    issue = hub.state.issue(repository, "mean fails", body, author=f"reporter-{number}").number
    verdicts = frozenset({"needs_info"} if prose else {"reproduced"})
    delivery = hub.deliver(hub.events.issue_opened(repository, issue), guid=guid)
    return _Sent(repository, issue, guid, verdicts, delivery)


def _settled(plan: Plan, place: Scene, sent: Sequence[_Sent]) -> list[Run]:
    """The runs, once all reports have come to an end or the time is up."""
    end = time.monotonic() + plan.settle_s
    with closing(SqlStore(place.app.database)) as store:
        while time.monotonic() < end:
            try:
                runs = stored_runs(store, {one.repository for one in sent})
            except TransientError:
                runs = []
            ended = {run.request.delivery for run in runs if run.state not in LIVE}
            if len(ended) == len(sent):
                break
            time.sleep(1.0)
        time.sleep(_REST_S)
        return stored_runs(store, {one.repository for one in sent})


def _outcome(
    fault: Fault,
    place: Scene,
    sent: Sequence[_Sent],
    runs: Sequence[Run],
    seen: tuple[str, ...],
) -> ChaosOutcome:
    by_guid = {one.guid: [run for run in runs if run.request.delivery == one.guid] for one in sent}
    comments = {one.guid: place.app.hub.state.ours(one.repository, one.number) for one in sent}
    waits = [
        (comment.history[-1].at - one.delivery.delivered_at).total_seconds()
        for one in sent
        for comment in comments[one.guid]
    ]
    right = [
        one
        for one in sent
        if len(by_guid[one.guid]) == 1
        and by_guid[one.guid][0].verdict in one.verdicts
        and len(comments[one.guid]) == 1
    ]
    doubled = [one for one in sent if len(by_guid[one.guid]) > 1 or len(comments[one.guid]) > 1]
    return ChaosOutcome(
        fault=fault.name,
        what=fault.what,
        reports=len(sent),
        right=len(right),
        lost=sum(not by_guid[one.guid] for one in sent),
        doubled=len(doubled),
        failed=sum(run.state == "failed" for run in runs),
        silent=sum(not comments[one.guid] for one in sent),
        refused=sum(not 200 <= one.delivery.status_code < 300 for one in sent),
        takes=sum(run.takes for run in runs),
        median_s=median(waits) if waits else 0.0,
        max_s=max(waits, default=0.0),
        seen=seen,
    )


class _Logs:
    """What the App's processes log from now on."""

    def __init__(self, place: Scene) -> None:
        folder = place.clock.parent
        self._files = [folder / f"{name}.log" for name in place.app.programs.starts]
        self._from = {file: _size(file) for file in self._files}

    def words(self, most: int = 3) -> tuple[str, ...]:
        """The commonest warnings and errors, without their numbers."""
        counted: Counter[str] = Counter()
        for file in self._files:
            with file.open("rb") as log:
                log.seek(self._from[file])
                counted.update(_warnings(log.read().decode("utf-8", "replace")))
        return tuple(f"{text} ({number} times)" for text, number in counted.most_common(most))


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _warnings(log: str) -> Iterator[str]:
    for line in log.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("level") in {"warning", "error"}:
            yield _IDS.sub("…", str(entry["message"]))[:160]


def chaos_table(outcomes: Sequence[ChaosOutcome]) -> Table:
    """A row for each fault."""
    table = Table(show_lines=True)
    for name in ("fault", "what was seen", "what people saw", "lost", "doubled"):
        table.add_column(name)
    for one in outcomes:
        seen = [f"{one.refused} of {one.reports} deliveries refused"] if one.refused else []
        people = f"{one.right} of {one.reports} right"
        people += f", {one.silent} without a comment" if one.silent else ""
        people += f", {one.failed} failed" if one.failed else ""
        people += f"; after {one.median_s:.0f} s (median), {one.max_s:.0f} s (longest)"
        table.add_row(
            one.what, "\n".join([*seen, *one.seen]), people, str(one.lost), str(one.doubled)
        )
    return table
