"""SQLite and PostgreSQL, taken through the same random operations, give the same answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from pydantic import BaseModel

from bot.app.ports import AppStore, OurComment, Task
from bot.app.store import MEMORY, SqlStore, tables
from bot.kernel.attempt import Script
from bot.kernel.journal import ATTEMPTS, EXCHANGES, LOGS, PROGRAMS
from bot.kernel.run import Repository, Run, RunState
from bot.training.repair.trials import TRIALS
from tests.contract.databases import NOW
from tests.contract.samples import attempt, delivery, exchange, log, new_run, report, trial
from tests.support.fakes import FrozenClock
from tests.support.postgres import postgres_server

GUIDS = st.sampled_from(["a", "b", "c"])
OWNERS = st.sampled_from(["w1", "w1", "w1", "w2"])
NUMBERS = st.sampled_from([1, 2])
RUNS = st.integers(0, 3)
SECONDS = st.sampled_from([0.0, 1.0, 10.0, 60.0])
PLANS = st.sampled_from(["p" * 64, "p" * 10 + "q" * 54, "r" * 64])
ERRORS = st.sampled_from(["", "went wrong"])


def empty(store: SqlStore) -> None:
    """To empty the tables takes a tenth of the time that it takes to make them."""
    with store._db.writing() as connection:
        for table in reversed(tables.metadata.sorted_tables):
            connection.execute(table.delete())


def comparable(answer: Any) -> Any:
    """Values as text: a NaN does not equal itself."""
    if isinstance(answer, tuple):
        return tuple(map(comparable, answer))
    return answer.model_dump_json(warnings=False) if isinstance(answer, BaseModel) else answer


class Lives(RuleBasedStateMachine):
    """Two stores, one clock. Ids of runs differ: they are compared by the order in which the
    runs were added.
    """

    clock: FrozenClock
    stores: tuple[SqlStore, SqlStore]

    @initialize()
    def begin(self) -> None:
        self.clock.now = NOW
        for store in self.stores:
            empty(store)
        self.ids: tuple[list[str], list[str]] = ([], [])
        self.both(lambda store, _: store.claim([delivery("a"), delivery("b")]))
        for guid, number in (("x", 1), ("y", 2), ("z", 1)):
            self.both(
                lambda store, _, guid=guid, number=number: store.add_run(new_run(guid, number))
            )

    def both(self, ask: Callable[[AppStore, Callable[[int], str]], Any]) -> Any:
        """Ask both the same; their answers are equal, ids aside."""
        answers = []
        for store, ids in zip(self.stores, self.ids, strict=True):
            answer = ask(store, lambda number, ids=ids: ids[number % len(ids)] if ids else "none")
            if (
                isinstance(answer, tuple)
                and len(answer) == 2
                and isinstance(answer[0], Run)
                and answer[0].id not in ids
            ):
                ids.append(answer[0].id)
            answers.append(self.plain(answer, ids))
        assert comparable(answers[0]) == comparable(answers[1])
        return answers[0]

    def plain(self, answer: Any, ids: list[str]) -> Any:
        if isinstance(answer, Run | Task) and answer.id in ids:
            drawn = {"plan": ""} if isinstance(answer, Run) else {}
            return answer.model_copy(update={"id": ids.index(answer.id), **drawn})
        if isinstance(answer, tuple):
            return tuple(self.plain(each, ids) for each in answer)
        return answer

    @rule(guids=st.lists(GUIDS, max_size=4))
    def claim(self, guids: list[str]) -> None:
        self.both(lambda store, _: store.claim([delivery(guid) for guid in guids]))

    @rule(guid=GUIDS, owner=OWNERS, lease=SECONDS)
    def take_delivery(self, guid: str, owner: str, lease: float) -> None:
        self.both(lambda store, _: store.take_delivery(guid, owner, lease))

    @rule(
        guid=GUIDS,
        owner=OWNERS,
        lease=SECONDS,
        error=ERRORS,
        what=st.sampled_from(["renew", "finish", "defer"]),
    )
    def hold_delivery(self, guid: str, owner: str, lease: float, error: str, what: str) -> None:
        if what == "renew":
            self.both(lambda store, _: store.renew_delivery(guid, owner, lease))
        elif what == "finish":
            self.both(lambda store, _: store.finish_delivery(guid, owner, error))
        else:
            self.both(lambda store, _: store.defer_delivery(guid, owner, lease))

    @rule(
        guid=GUIDS, ordinal=st.sampled_from([0, 1]), number=NUMBERS, plan=PLANS, waits=st.booleans()
    )
    def add_run(self, guid: str, ordinal: int, number: int, plan: str, waits: bool) -> None:
        state = RunState.WAITING if waits else RunState.QUEUED
        self.both(
            lambda store, _: store.add_run(
                new_run(guid, number, ordinal=ordinal, plan=plan, state=state)
            )
        )

    @rule(run=RUNS, owner=OWNERS, lease=SECONDS)
    def take_run(self, run: int, owner: str, lease: float) -> None:
        self.both(lambda store, id_: store.take_run(id_(run), owner, lease))

    @rule(run=RUNS, owner=OWNERS, lease=SECONDS, stage=st.sampled_from(["", "search"]))
    def beat(self, run: int, owner: str, lease: float, stage: str) -> None:
        self.both(lambda store, id_: store.beat(id_(run), owner, lease, stage, stage, 2.0))

    @rule(
        run=RUNS,
        lease=SECONDS,
        passes=SECONDS,
        after=SECONDS,
        what=st.sampled_from(["tell", "end", "later", "report"]),
    )
    def work(self, run: int, lease: float, passes: float, after: float, what: str) -> None:
        """A worker takes a run, time passes, and it goes on as if nobody else had come."""
        self.both(lambda store, id_: store.take_run(id_(run), "w3", lease))
        self.clock.advance(passes)
        if what == "tell":
            self.both(lambda store, id_: store.beat(id_(run), "w3", lease, seconds=1.0))
        elif what == "end":
            self.both(lambda store, id_: store.finish_run(id_(run), "w3"))
        elif what == "later":
            self.both(lambda store, id_: store.defer_run(id_(run), "w3", after))
        else:
            self.both(lambda store, id_: store.put_report(id_(run), "w3", report()))
        self.both(lambda store, id_: store.run(id_(run)))

    @rule(
        run=RUNS,
        owner=OWNERS,
        takes=st.booleans(),
        numbers=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    )
    def attempts(self, run: int, owner: str, takes: bool, numbers: list[int]) -> None:
        if takes:  # without a lease nothing is kept, and to hold one by chance is rare
            self.both(lambda store, id_: store.take_run(id_(run), owner, 60.0))
        for number in numbers:
            script = Script(files={"repro.py": f"print({owner!r}, {number})  # \0\n"})
            told = log(number, f"log of {owner} \ud800\0")
            for kind, entry in ((PROGRAMS, script), (LOGS, told), (ATTEMPTS, attempt(number))):
                self.append(run, owner, kind, entry)
        for kind in (PROGRAMS, LOGS, ATTEMPTS):
            self.entries(run, kind)

    @rule(run=RUNS, owner=OWNERS, takes=st.booleans(), number=st.integers(1, 3))
    def exchanges(self, run: int, owner: str, takes: bool, number: int) -> None:
        if takes:
            self.both(lambda store, id_: store.take_run(id_(run), owner, 60.0))
        self.append(run, owner, EXCHANGES, exchange(number, f"{owner} \ud800"))
        self.entries(run, EXCHANGES)

    @rule(run=RUNS, owner=OWNERS, takes=st.booleans(), seed=st.integers(1, 3))
    def trials(self, run: int, owner: str, takes: bool, seed: int) -> None:
        if takes:
            self.both(lambda store, id_: store.take_run(id_(run), owner, 60.0))
        self.append(run, owner, TRIALS, trial(seed, f"{owner} \ud800"))
        self.entries(run, TRIALS)

    def append(self, run: int, owner: str, kind: Any, entry: Any) -> None:
        self.both(lambda store, id_: store.append_entry(id_(run), owner, kind, entry))

    def entries(self, run: int, kind: Any) -> None:
        self.both(lambda store, id_: store.entries(id_(run), kind))
        self.both(lambda store, id_: store.entries(id_(run), kind, last=1))
        self.both(lambda store, id_: store.entries(id_(run), kind, key="2"))

    @rule(run=RUNS, owner=OWNERS, stopped=st.booleans())
    def put_report(self, run: int, owner: str, stopped: bool) -> None:
        self.both(lambda store, id_: store.put_report(id_(run), owner, report(stopped=stopped)))
        self.both(lambda store, id_: store.report(id_(run)))

    @rule(run=RUNS, owner=OWNERS, error=ERRORS)
    def finish_run(self, run: int, owner: str, error: str) -> None:
        self.both(lambda store, id_: store.finish_run(id_(run), owner, error))

    @rule(run=RUNS, owner=OWNERS, after=SECONDS)
    def defer_run(self, run: int, owner: str, after: float) -> None:
        self.both(lambda store, id_: store.defer_run(id_(run), owner, after))

    @rule(run=RUNS)
    def approve(self, run: int) -> None:
        self.both(lambda store, id_: store.approve(id_(run), "owner"))

    @rule(number=st.none() | NUMBERS, run=st.none() | RUNS)
    def cancel(self, number: int | None, run: int | None) -> None:
        self.both(
            lambda store, id_: store.cancel(
                "mona", number=number, run=None if run is None else id_(run)
            )
        )

    @rule(unheard=SECONDS)
    def overdue(self, unheard: float) -> None:
        self.both(
            lambda store, _: tuple(
                sorted(store.overdue(unheard), key=lambda task: self.place(store, task))
            )
        )

    def place(self, store: AppStore, task: Task) -> tuple[str, str]:
        ids = self.ids[self.stores.index(store)]
        return task.kind, str(ids.index(task.id)) if task.id in ids else task.id

    @rule(installation=NUMBERS, owner=OWNERS, notifies=st.booleans(), hold=st.none() | SECONDS)
    def write(self, installation: int, owner: str, notifies: bool, hold: float | None) -> None:
        if hold is not None:
            self.both(lambda store, _: store.hold_writes(installation, hold))
        self.both(lambda store, _: store.reserve_write(installation, owner, notifies=notifies))

    @rule(installation=NUMBERS, owner=OWNERS)
    def end_write(self, installation: int, owner: str) -> None:
        self.both(lambda store, _: store.end_write(installation, owner))

    @rule(number=NUMBERS, comment=st.none() | st.integers(1, 3))
    def comment(self, number: int, comment: int | None) -> None:
        if comment is None:
            self.both(lambda store, _: store.forget_comment("acme/pool", number, "run"))
        else:
            ours = OurComment(repository="acme/pool", number=number, key="run", comment=comment)
            self.both(lambda store, _: store.put_comment(ours))
        self.both(lambda store, _: store.comment("acme/pool", number, "run"))

    @rule(number=NUMBERS, after=SECONDS)
    def sweep(self, number: int, after: float) -> None:
        self.both(lambda store, _: store.note_sweep(1, "acme/pool", number, "run", after))
        for sweep in self.both(lambda store, _: tuple(sorted(store.due_sweeps(after), key=str))):
            self.both(lambda store, _, sweep=sweep: store.forget_sweep(sweep))

    @rule(installation=NUMBERS, private=st.booleans(), ago=SECONDS)
    def erase(self, installation: int, private: bool, ago: float) -> None:
        """Runs of a private repository come, and older ones go."""
        before = datetime.fromtimestamp(self.clock.now - ago, UTC)
        where = Repository(id=2, full_name="acme/secret", private=private)
        self.both(lambda store, _: store.add_run(new_run("p", 9, repository=where)))
        self.both(lambda store, _: store.erase(installation, before=before))
        since = datetime.fromtimestamp(self.clock.now - 3600, UTC)
        self.both(lambda store, _: store.usage(since, repository="acme/secret"))

    @rule(run=RUNS, back=SECONDS)
    def figures(self, run: int, back: float) -> None:
        since = datetime.fromtimestamp(self.clock.now - back, UTC)
        self.both(lambda store, id_: store.note_cost(id_(run), usd=0.25))
        self.both(lambda store, id_: (store.usage(since), store.counts(), store.ahead(id_(run))))
        self.both(lambda store, _: store.usage(since, repository="acme/pool", requester="mona"))

    @rule(back=SECONDS)
    def prune(self, back: float) -> None:
        self.both(lambda store, _: store.prune(datetime.fromtimestamp(self.clock.now - back, UTC)))

    @rule(number=st.none() | NUMBERS, states=st.lists(st.sampled_from(list(RunState)), max_size=3))
    def look(self, number: int | None, states: list[RunState]) -> None:
        self.both(lambda store, _: store.runs(number=number, states=states))
        self.both(lambda store, _: store.seen(["a", "b", "c"]))

    @rule(private=st.booleans(), verdict=st.sampled_from([None, "", "reproduced"]), run=RUNS)
    def list_runs(self, private: bool, verdict: str | None, run: int) -> None:
        where = Repository(id=2 if private else 1, full_name="acme/pool", private=private)
        self.both(lambda store, _: store.history(where, verdict=verdict))
        self.both(lambda store, id_: store.history(where, before=id_(run), limit=2))
        self.both(lambda store, _: store.verdict_counts(where))

    @rule(number=st.none() | NUMBERS, back=SECONDS)
    def unlist(self, number: int | None, back: float) -> None:
        before = datetime.fromtimestamp(self.clock.now - back, UTC)
        self.both(lambda store, _: store.unlist("acme/pool", number, before=before))

    @rule(seconds=st.sampled_from([0.5, 1.0, 9.0, 10.0, 61.0, 3600.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)


@pytest.mark.postgres
@pytest.mark.slow  # hundreds of histories on two databases
def test_sqlite_and_postgres_give_the_same_answers() -> None:
    with postgres_server() as server:
        Lives.clock, limits = FrozenClock(NOW), {"writes_per_minute": 4, "writes_per_hour": 6}
        sqlite = SqlStore(MEMORY, clock=Lives.clock, **limits)
        postgres = SqlStore(server.fresh(), clock=Lives.clock, **limits)
        Lives.stores = sqlite, postgres
        run_state_machine_as_test(
            Lives,
            settings=settings(
                max_examples=30,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                derandomize=True,
            ),
        )
        postgres.close()
        sqlite.close()
