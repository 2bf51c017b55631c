"""Kills the web and worker processes of a whole App at random while GitHub delivers: each
delivery must end in exactly one run and one comment.

Everything is real but GitHub itself; see `benchmarks.whole_app`.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from benchmarks.supervised import Supervised
from benchmarks.whole_app import AppPlan, running, stored_runs
from bot.app.store import SqlStore
from bot.kernel.run import LIVE, Run, RunState
from bot.kernel.values import Record
from tests.support.stand_in import GitHubServer

Say = Callable[[str], None]
_PER_REPOSITORY = 20
_BODY = """With Python 3.11:

```python
import statistics

print(statistics.mean([]))  # sample {number}
```

```
Traceback (most recent call last):
  File "repro.py", line 3, in <module>
    print(statistics.mean([]))
  File "/usr/lib/python3.11/statistics.py", line 327, in mean
    raise StatisticsError('mean requires at least one data point')
statistics.StatisticsError: mean requires at least one data point
```
"""


def report_body(number: int) -> str:
    """A bug report that is like no other, of a failure that needs no package."""
    return _BODY.format(number=number)


class Fate(Record):
    """What became of one delivery."""

    guid: str
    issue: str
    sent: int
    runs: int
    comments: int
    verdict: str
    state: str

    @property
    def right(self) -> bool:
        """One run, one comment, and the verdict that the program has when nobody is killed."""
        return (self.runs, self.comments, self.verdict, self.state) == (
            1,
            1,
            "reproduced",
            RunState.FINISHED,
        )


class Outcome(Record):
    """What became of all of them. `kills` by process; `starts` as well; times in seconds."""

    fates: tuple[Fate, ...]
    deliveries: int
    refused: int
    kills: dict[str, int]
    starts: dict[str, int]
    taken: int
    stream_s: float
    settled_s: float
    violations: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether nothing was lost and nothing was done twice."""
        return all(fate.right for fate in self.fates) and not self.violations


@dataclass
class Plan:
    """How much is delivered and killed, and by what dice."""

    deliveries: int = 200
    duplicates: float = 0.3
    kills: int = 50
    seed: int = 0
    rate: float = 2.0
    sandbox: str = "auto"
    database: str = ""
    settle_s: float = 600.0
    openapi: Path | None = None
    cache: Path | None = None
    environ: dict[str, str] = field(default_factory=dict)


def storm(plan: Plan, say: Say) -> Outcome:
    """Deliver, kill, wait until nothing is left to do, and count."""
    chance = random.Random(plan.seed)
    with (
        tempfile.TemporaryDirectory(prefix="reprise-storm-") as folder,
        running(_app(plan), Path(folder)) as app,
    ):
        hub, database = app.hub, app.database
        issues = _issues(hub, plan)
        order = _order(issues, plan, chance)
        began = time.monotonic()
        kills: Counter[str] = Counter()
        killer = Thread(target=_kill, args=(app.programs, plan, chance, kills, say), name="killer")
        killer.start()
        _deliver(hub, order, plan)
        stream_s = time.monotonic() - began
        killer.join()
        say(f"{len(order)} deliveries sent, {kills.total()} kills; waiting for what is left")
        runs = _settled(hub, database, issues, plan, say)
        return Outcome(
            fates=tuple(_fate(hub, guid, where, runs, order) for guid, where in issues.items()),
            deliveries=len(order),
            refused=sum(
                not 200 <= each.status_code < 300
                for each in hub.state.deliveries
                if each.guid in issues
            ),
            kills=dict(kills),
            starts=app.programs.starts,
            taken=sum(run.takes for run in runs),
            stream_s=stream_s,
            settled_s=time.monotonic() - began,
            violations=tuple(hub.violations),
        )


def _app(plan: Plan) -> AppPlan:
    return AppPlan(plan.sandbox, plan.database, plan.openapi, plan.cache, plan.environ)


def _issues(hub: GitHubServer, plan: Plan) -> dict[str, tuple[str, int]]:
    """The different issues, each by the id of the delivery that tells of it."""
    different = max(1, round(plan.deliveries * (1 - plan.duplicates)))
    made = {}
    for number in range(different):
        repository = f"storm/repository-{number // _PER_REPOSITORY}"
        issue = hub.state.issue(
            repository,
            "mean fails on an empty list",
            report_body(number),
            author=f"reporter-{number}",
        )
        made[f"storm-{plan.seed}-{number:04d}"] = (repository, issue.number)
    return made


def _order(
    issues: dict[str, tuple[str, int]], plan: Plan, chance: random.Random
) -> list[tuple[str, str, int]]:
    """All deliveries in order: each issue once, and duplicates of what came before strewn in."""
    order = [(guid, *where) for guid, where in issues.items()]
    for _ in range(plan.deliveries - len(order)):
        at = chance.randrange(1, len(order) + 1)
        order.insert(at, chance.choice(order[:at]))
    return order


def _deliver(hub: GitHubServer, order: list[tuple[str, str, int]], plan: Plan) -> None:
    """At a steady rate, whether or not somebody listens."""
    began = time.monotonic()
    with ThreadPoolExecutor(8, "deliveries") as senders:
        for number, (guid, repository, issue) in enumerate(order):
            time.sleep(max(0.0, began + number / plan.rate - time.monotonic()))
            senders.submit(hub.deliver, hub.events.issue_opened(repository, issue), guid=guid)


def _kill(
    app: Supervised, plan: Plan, chance: random.Random, kills: Counter[str], say: Say
) -> None:
    """Kills spread over the stream at random moments; those that meet no living process are made
    up for.
    """
    mean = plan.deliveries / plan.rate / max(1, plan.kills)
    while kills.total() < plan.kills:
        time.sleep(chance.uniform(0.2, 1.8) * mean)
        if name := app.kill(chance):
            kills[name] += 1
            if kills.total() % 10 == 0:
                say(f"{kills.total()} kills")


def _settled(
    hub: GitHubServer, database: str, issues: dict[str, tuple[str, int]], plan: Plan, say: Say
) -> list[Run]:
    end, last = time.monotonic() + plan.settle_s, -1
    store = SqlStore(database)
    try:
        while True:
            runs = stored_runs(store, {repository for repository, _ in issues.values()})
            told = sum(bool(hub.state.ours(*where)) for where in issues.values())
            done = len({run.request.delivery for run in runs if run.state not in LIVE})
            if (done >= len(issues) and told >= len(issues)) or time.monotonic() > end:
                time.sleep(3.0)  # whatever would be done twice may be about to be
                return stored_runs(store, {repository for repository, _ in issues.values()})
            if done != last and done % 20 == 0:
                say(f"{done} of {len(issues)} done")
            last = done
            time.sleep(1.0)
    finally:
        store.close()


def _fate(
    hub: GitHubServer,
    guid: str,
    where: tuple[str, int],
    runs: list[Run],
    order: list[tuple[str, str, int]],
) -> Fate:
    ours = [run for run in runs if run.request.delivery == guid]
    return Fate(
        guid=guid,
        issue=f"{where[0]}#{where[1]}",
        sent=sum(each[0] == guid for each in order),
        runs=len(ours),
        comments=len(hub.state.ours(*where)),
        verdict=ours[0].verdict if ours else "",
        state=ours[0].state if ours else "",
    )


def told(outcome: Outcome) -> str:
    """The figures in lines, and each delivery that did not end as it should."""
    kills = (
        ", ".join(f"{name} {number}" for name, number in sorted(outcome.kills.items())) or "none"
    )
    wrong = [each for each in outcome.fates if not each.right]
    lines = [
        (
            f"{outcome.deliveries} deliveries of {len(outcome.fates)} issues in "
            f"{outcome.stream_s:.0f} s; "
            f"settled after {outcome.settled_s:.0f} s"
        ),
        (
            f"kills: {sum(outcome.kills.values())} ({kills}); deliveries that found nobody: "
            f"{outcome.refused}"
        ),
        (
            f"runs taken by workers: {outcome.taken} for "
            f"{sum(fate.runs for fate in outcome.fates)} runs"
        ),
        (
            "exactly one run and one comment, with the right verdict: "
            f"{len(outcome.fates) - len(wrong)} of {len(outcome.fates)}"
        ),
        *(
            f"  {each.issue}: sent {each.sent}, {each.runs} runs, {each.comments} comments, "
            f"{each.verdict or each.state}"
            for each in wrong
        ),
        *(f"  not as GitHub describes it: {violation}" for violation in outcome.violations),
    ]
    return "\n".join(lines)
