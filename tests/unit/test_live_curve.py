"""The loss of a training as the page of its run shows it: bounded, whatever a program prints."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from bot.app.execute_run import StoreJournal
from bot.app.factory import _Engine
from bot.app.live_curve import CurveWriter, LiveCurve
from bot.kernel.bug import Issue
from bot.kernel.errors import ModelUnavailable, TransientError
from bot.kernel.journal import EXCHANGES, LOSSES, USAGE, E, EntryKind
from bot.kernel.ports import Ports
from bot.kernel.report import IssueReport
from bot.kernel.settings import Settings
from bot.kernel.training_trace import MOST_POINTS
from bot.model.cassette import Recording
from bot.products import engine
from bot.report.svg import training
from sandbox.port import RunResult
from tests.contract.samples import exchange, new_run, report
from tests.support.fakes import FrozenClock, MemoryJournal, MemoryStore, ScriptedModel
from tests.support.jobs import issue_job
from tests.support.sandbox import FakeSandbox


class FailingJournal(MemoryJournal):
    """A journal whose store is out of reach."""

    def append(self, kind: EntryKind[E], entry: E) -> None:
        super().append(kind, entry)
        raise TransientError("the database does not answer")


def test_a_long_training_keeps_few_even_points_and_the_newest() -> None:
    live = LiveCurve()
    for step in range(72_001):
        live.add(step, 1 / (1 + step))
    points = live.curve.points
    assert MOST_POINTS / 2 <= len(points) <= MOST_POINTS + 1
    assert (points[0], points[-1]) == ((0.0, 1.0), (72_000.0, 1 / 72_001))
    steps = [step for step, _ in points[:-1]]
    assert len({after - before for before, after in pairwise(steps)}) == 1


@pytest.mark.parametrize(
    ("step", "loss"),
    [(2, math.nan), (2, math.inf), (2, -math.inf), (2, 1e300), (10**400, 1.0), (-1, 1.0)],
)
def test_a_number_that_cannot_be_drawn_is_left_out(step: int, loss: float) -> None:
    live = LiveCurve()
    live.add(step, loss)
    assert live.curve.points == ()
    live.add(1, 0.5)
    live.add(step, loss)
    live.add(3, 0.4)
    assert live.curve.points == ((1.0, 0.5), (3.0, 0.4))
    assert "NaN" not in training([live.curve])


def test_another_optimizer_adds_nothing_and_another_training_begins_anew() -> None:
    live = LiveCurve()
    for step in range(100, 140, 4):
        live.add(step, 0.5)
        live.add(step // 5, 9.0)
    assert {loss for _, loss in live.curve.points} == {0.5}
    for step in range(20):
        live.add(step, 2.0)
    assert {loss for _, loss in live.curve.points} == {2.0}


def test_the_curve_is_one_entry_that_is_written_every_few_seconds() -> None:
    clock, journal = FrozenClock(), MemoryJournal()
    write = CurveWriter(journal, clock)
    write(0, math.nan)
    assert journal.appended == []
    for step in range(20):
        write(step, 1.0)
        clock.advance(0.5)
    assert len(journal.appended) == 4
    (curve,) = journal.read(LOSSES)
    assert curve.points[-1] == (18.0, 1.0)


def test_a_store_out_of_reach_does_not_disturb_the_program() -> None:
    clock, journal = FrozenClock(), FailingJournal()
    write = CurveWriter(journal, clock)
    for step in range(100):
        write(step, 1.0)
        clock.advance(0.5)
    assert len(journal.appended) == 1, "it is tried again after a minute"


def leased(clock: FrozenClock) -> tuple[MemoryStore, str]:
    store = MemoryStore(clock=clock)
    run = store.add_run(new_run())[0].id
    store.take_run(run, "one", 10)
    return store, run


def test_a_worker_that_lost_its_run_writes_no_curve() -> None:
    clock = FrozenClock()
    store, run = leased(clock)
    write = CurveWriter(StoreJournal(store, run, "one"), clock)
    clock.advance(20)
    store.overdue(1000)
    assert store.take_run(run, "two", 10) is not None
    write(1, 0.5)
    assert store.entries(run, LOSSES) == ()
    CurveWriter(StoreJournal(store, run, "two"), clock)(1, 0.5)
    assert len(store.entries(run, LOSSES)) == 1


def test_what_models_used_is_summed_over_workers_until_the_report() -> None:
    clock = FrozenClock()
    store, run = leased(clock)
    question = exchange(1, "why").question.model_copy(update={"answer_schema": {}})
    first = Recording(ScriptedModel([{"a": 1}], usd=0.5), StoreJournal(store, run, "one"))
    first.ask(question)
    again = Recording(ScriptedModel([{"a": 2}], usd=0.25), StoreJournal(store, run, "one"))
    again.ask(question)  # answered from the journal
    again.ask(question)
    with pytest.raises(ModelUnavailable):
        again.ask(question)
    (usage,) = store.entries(run, USAGE)
    assert (usage.calls, usage.usd) == (2, 0.75)
    assert len(store.entries(run, EXCHANGES)) == 3
    CurveWriter(StoreJournal(store, run, "one"), clock)(1, 0.5)
    assert store.put_report(run, "one", report())
    assert store.entries(run, USAGE) == store.entries(run, LOSSES) == ()


def test_the_engine_of_the_app_listens_to_the_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trains(_job: object, ports: Ports) -> IssueReport:
        assert ports.training.loss is not None
        ports.training.loss(3, 0.5)
        return report()

    monkeypatch.setattr(engine, "execute", trains)
    settings = Settings(cache_dir=tmp_path / "cache", runs_dir=tmp_path / "runs")
    journal = MemoryJournal()
    _Engine(settings, FakeSandbox(lambda _: RunResult(exit_code=0)))(
        issue_job(Issue(title="flat", body="it does not learn")),
        journal=journal,
        listener=lambda _: None,
        cancel=Event(),
        clone=None,
    )
    (curve,) = journal.read(LOSSES)
    assert curve.points == ((3.0, 0.5),)
