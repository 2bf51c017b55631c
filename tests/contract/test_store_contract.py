"""Every store keeps the same promises: in memory, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from threading import Barrier, Thread

import pytest
from sqlalchemy import select

from bot.app.ports import AppStore, Beat, OurComment, QuotaUsage, Settled, Task
from bot.app.store import MEMORY, SqlStore, database
from bot.app.store.tables import metadata
from bot.kernel.environment import Environment
from bot.kernel.errors import UserError
from bot.kernel.job import Note
from bot.kernel.journal import ATTEMPTS, EXCHANGES, LOGS, PROGRAMS
from bot.kernel.run import Repository, RunState, approval_hash
from tests.contract.databases import NOW, Bench, bench_on
from tests.contract.samples import (
    SCRIPT,
    WHEN,
    attempt,
    delivery,
    exchange,
    log,
    new_run,
    paper_report,
    report,
)
from tests.support.postgres import PostgresServer, postgres_server

KINDS = ("memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres))


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    with postgres_server() as made:
        yield made


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param == "postgres":
        url = request.getfixturevalue("server").fresh()
    else:
        url = f"sqlite:///{tmp_path}/reprise.db" if request.param == "sqlite" else MEMORY
    with bench_on(url) as made:
        yield made


def since(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOW + seconds, UTC)


# --- deliveries ----------------------------------------------------------------------------------


def test_a_delivery_is_new_once_and_known_until_it_fails(bench: Bench) -> None:
    store, other = bench.store, bench.another()
    assert store.claim([]) == ()
    assert store.claim([delivery("a"), delivery("b"), delivery("a", sender="second")]) == (
        "new",
        "new",
        "known",
    )
    assert other.claim([delivery("b"), delivery("c")]) == ("known", "new")
    taken = other.take_delivery("a", "w1", 10)
    assert taken == delivery("a")
    assert store.claim([delivery("a")]) == ("known",)
    assert store.finish_delivery("a", "w1", "GitHub said no")
    assert store.seen(["a", "b", "zz"]) == {"b"}
    assert store.claim([delivery("a"), delivery("a")]) == ("again", "known")
    assert store.seen(["a", "b"]) == {"a", "b"}
    assert store.take_delivery("a", "w2", 10) is not None
    assert store.finish_delivery("a", "w2")
    assert store.claim([delivery("a")]) == ("known",)
    assert store.take_delivery("a", "w3", 10) is None


def test_claims_of_two_processes_know_of_each_other(bench: Bench) -> None:
    store, other = bench.store, bench.another()
    assert store.claim([delivery("a")]) == ("new",)
    assert store.claim([delivery("a"), delivery("b")]) == ("known", "new")
    assert other.claim([delivery("b")]) == store.claim([delivery("a")]) == ("known",)
    assert other.claim([delivery("c")]) == ("new",)
    assert store.claim([delivery("c")]) == ("known",)
    assert [other.take_delivery(guid, "w", 10) for guid in "abc"] == [
        delivery(guid) for guid in "abc"
    ]
    assert store.claim([delivery("a")]) == ("known",)
    assert store.finish_delivery("a", "w", "GitHub said no")
    assert store.finish_delivery("b", "w", "GitHub said no")
    assert (store.claim([delivery("a")]), store.claim([delivery("b")])) == (("again",), ("again",))
    assert other.claim([delivery("a")]) == ("known",)
    assert store.seen("abc") == {"a", "b", "c"}
    assert (store.take_delivery("a", "w2", 10), store.take_delivery("b", "w2", 10)) == (
        delivery("a"),
        delivery("b"),
    )
    assert store.claim([delivery("two"), delivery("at a time")]) == ("new", "new")


def test_a_delivery_has_one_holder_whose_lease_can_run_out(bench: Bench) -> None:
    store = bench.store
    store.claim([delivery()])
    assert store.take_delivery("nobody sent this", "w1", 10) is None
    assert store.take_delivery("g1", "w1", 10) is not None
    assert store.take_delivery("g1", "w1", 10) is None
    assert not store.renew_delivery("g1", "w2", 10)
    assert not store.finish_delivery("g1", "w2")
    bench.clock.advance(9)
    assert store.renew_delivery("g1", "w1", 10)
    bench.clock.advance(9)
    assert store.take_delivery("g1", "w2", 10) is None
    bench.clock.advance(1)
    assert store.renew_delivery("g1", "w1", 10)  # late, but nobody else came
    bench.clock.advance(10)
    assert store.take_delivery("g1", "w2", 10) is not None
    assert not store.renew_delivery("g1", "w1", 10)
    assert not store.finish_delivery("g1", "w1")
    assert store.finish_delivery("g1", "w2")
    assert not store.finish_delivery("g1", "w2")


def test_a_deferred_delivery_waits_its_time_under_a_new_turn(bench: Bench) -> None:
    store = bench.store
    store.claim([delivery()])
    store.take_delivery("g1", "w1", 10)
    assert store.defer_delivery("g1", "w2", 5) == 0  # not the holder: nothing happens
    assert store.defer_delivery("g1", "w1", 5) == 1
    assert store.take_delivery("g1", "w1", 10) is None
    assert store.overdue(0) == ()
    bench.clock.advance(5)
    assert store.take_delivery("g1", "w1", 10) is not None
    assert store.defer_delivery("unknown", "w1", 5) == 0


# --- runs ----------------------------------------------------------------------------------------


def test_a_run_is_asked_for_once(bench: Bench) -> None:
    run, new = bench.store.add_run(new_run())
    assert new
    assert (run.request, run.state, run.turn, run.takes, run.started_at) == (
        new_run(),
        RunState.QUEUED,
        0,
        0,
        None,
    )
    assert run.created_at == since(0)
    assert len(run.id) == 32
    assert bench.another().add_run(new_run(requester="someone else")) == (run, False)
    second, new = bench.store.add_run(new_run(ordinal=1))
    assert new
    assert second.id != run.id
    assert bench.store.run(run.id) == run
    assert bench.store.run("no such run") is None


def test_runs_are_found_newest_first(bench: Bench) -> None:
    store = bench.store
    a = store.add_run(new_run("a", 1))[0]
    b = store.add_run(new_run("b", 2, state=RunState.WAITING))[0]
    c = store.add_run(new_run("c", 1, installation=2, name="acme/other"))[0]
    d = store.add_run(new_run("d", 1, device="gpu"))[0]
    assert store.runs() == (d, c, b, a)
    assert store.runs(limit=2) == (d, c)
    assert store.runs(repository="acme/pool") == (d, b, a)
    assert store.runs(repository="acme/pool", number=1) == (d, a)
    assert store.runs(installation=2) == (c,)
    assert store.runs(states=[RunState.WAITING, RunState.FAILED]) == (b,)
    assert [store.ahead(run.id) for run in (a, b, c, d)] == [0, 1, 1, 0]
    assert store.ahead("no such run") == 0


def finished(
    bench: Bench, guid: str, number: int, *, stopped: bool = False, **given: object
) -> str:
    store = bench.store
    run, _ = store.add_run(new_run(guid, number, **given))
    assert store.take_run(run.id, "w", 10) is not None
    assert store.put_report(run.id, "w", report(stopped=stopped))
    assert store.finish_run(run.id, "w")
    bench.clock.advance(40_000)  # less than half a day
    return run.id


def test_the_runs_of_a_repository_are_listed_for_those_who_may_see_it(bench: Bench) -> None:
    store, public = bench.store, Repository(id=1, full_name="acme/pool")
    private = public.model_copy(update={"full_name": "acme/renamed", "private": True})
    other = Repository(id=9, full_name="acme/pool")
    first = finished(bench, "a", 1)
    second = finished(bench, "b", 2, stopped=True)
    third = store.add_run(new_run("c", 3))[0].id
    hidden = finished(bench, "d", 4, repository=private)
    finished(bench, "e", 5, repository=other)
    assert [run.id for run in store.history(public)] == [third, second, first]
    assert [run.id for run in store.history(private)] == [hidden, third, second, first]
    assert [run.id for run in store.history(public, limit=2)] == [third, second]
    assert [run.id for run in store.history(public, limit=2, before=second)] == [first]
    assert [run.id for run in store.history(public, verdict="reproduced")] == [first]
    assert [run.id for run in store.history(public, verdict="reproduced", before=first)] == []
    assert [run.id for run in store.history(public, verdict="")] == [third]
    assert store.history(public, before="nothing\0") == ()
    counted = [(row.day.isoformat(), row.verdict, row.runs) for row in store.verdict_counts(public)]
    assert counted == [
        ("2027-01-15", "cancelled", 1),
        ("2027-01-15", "reproduced", 1),
        ("2027-01-16", "", 1),
    ]
    assert sum(row.runs for row in store.verdict_counts(private)) == 4
    assert store.verdict_counts(Repository(id=77, full_name="acme/pool")) == ()


def test_days_of_verdicts_begin_at_midnight(bench: Bench) -> None:
    midnight = NOW - NOW % 86_400 + 86_400
    for guid, moment in (("a", midnight - 1), ("b", midnight), ("c", midnight + 86_399.9)):
        bench.clock.now = moment
        bench.store.add_run(new_run(guid, 1))
    rows = bench.store.verdict_counts(Repository(id=1, full_name="acme/pool"))
    assert [(row.day.isoformat(), row.runs) for row in rows] == [
        ("2027-01-15", 1),
        ("2027-01-16", 2),
    ]


def test_runs_of_deleted_issues_are_listed_no_more(bench: Bench) -> None:
    store, where = bench.store, Repository(id=1, full_name="acme/pool")
    old = store.add_run(new_run("a", 1, asked_at=WHEN))[0].id
    kept = store.add_run(new_run("b", 2, asked_at=WHEN))[0].id
    new = store.add_run(new_run("c", 1, asked_at=WHEN + timedelta(minutes=1)))[0].id
    store.unlist("acme/pool", 1, before=WHEN)
    assert [run.id for run in store.history(where)] == [new, kept]
    assert store.run(old) is not None
    store.unlist("acme/pool", None, before=WHEN + timedelta(minutes=1))
    assert store.history(where) == ()


def test_a_run_keeps_what_was_tested(bench: Bench) -> None:
    store = bench.store
    run, _ = store.add_run(new_run())
    store.take_run(run.id, "w", 10)
    built = Environment(id="e", python="3.11", interpreter="python", commit="0123456789abcdef")
    store.put_report(run.id, "w", report().model_copy(update={"environment": built}))
    stored = store.run(run.id)
    assert stored is not None
    assert stored.package == "commit 0123456789ab"


def test_one_lease_an_issue_at_a_time(bench: Bench) -> None:
    store, other = bench.store, bench.another()
    a = store.add_run(new_run("a"))[0].id
    b = store.add_run(new_run("b"))[0].id
    elsewhere = store.add_run(new_run("c", 8))[0].id
    taken = store.take_run(a, "w1", 10)
    assert taken is not None
    assert (taken.state, taken.takes, taken.started_at) == (RunState.RUNNING, 1, since(0))
    assert other.take_run(a, "w2", 10) is None
    assert other.take_run(b, "w2", 10) is None
    assert other.take_run(elsewhere, "w2", 10) is not None
    assert other.take_run("no such run", "w2", 10) is None
    assert store.finish_run(a, "w1")
    assert other.take_run(b, "w2", 10) is not None
    assert store.take_run(a, "w1", 10) is None


def test_a_lease_that_ran_out_is_renewed_only_while_nobody_took_over(bench: Bench) -> None:
    store = bench.store
    a = store.add_run(new_run("a"))[0].id
    b = store.add_run(new_run("b"))[0].id
    store.take_run(a, "w1", 10)
    bench.clock.advance(11)
    assert store.beat(a, "w1", 10) == Beat()
    assert store.take_run(b, "w2", 10) is None
    bench.clock.advance(10)
    assert store.take_run(b, "w2", 10) is not None  # the issue has a new worker
    assert store.beat(a, "w1", 10) == Beat(lost=True)
    assert store.overdue(1000) == (Task(kind="run", id=a, turn=1),)
    assert not store.finish_run(a, "w1")
    assert store.beat(a, "w1", 10) == Beat(lost=True)
    assert store.beat(b, "w2", 10) == Beat()


def test_a_heartbeat_tells_and_counts(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    assert store.beat(run, "w1", 10) == Beat(lost=True)
    assert store.beat("no such run", "w1", 10) == Beat(lost=True)
    store.take_run(run, "w1", 10)
    assert store.beat(run, "w1", 10, "search", "attempt 2 of 9", 1.5) == Beat()
    assert store.beat(run, "w1", 10, seconds=2.0) == Beat()
    seen = store.run(run)
    assert seen is not None
    assert (seen.stage, seen.progress, seen.seconds) == ("search", "attempt 2 of 9", 3.5)
    assert store.beat(run, "w2", 10, "report", "lies", 9.0) == Beat(lost=True)
    assert store.run(run) == seen


def test_a_run_is_deferred_reported_and_finished(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    store.take_run(run, "w1", 10)
    assert store.defer_run(run, "w2", 5) == 0
    assert store.defer_run(run, "w1", 5) == 1
    assert store.take_run(run, "w1", 10) is None
    bench.clock.advance(5)
    again = store.take_run(run, "w2", 10)
    assert again is not None
    assert (again.takes, again.turn, again.started_at) == (2, 1, since(0))
    assert store.report(run) is None
    assert not store.put_report(run, "w1", report())
    assert store.put_report(run, "w2", report())
    assert store.report(run) == report()
    assert store.defer_run(run, "w2", 0) == 2
    told = store.take_run(run, "w3", 10)
    assert told is not None
    assert (told.state, told.verdict) == (RunState.REPORTED, "reproduced")
    assert store.finish_run(run, "w3")
    done = store.run(run)
    assert done is not None
    assert (done.state, done.finished_at, done.error) == (RunState.FINISHED, since(5), "")
    assert store.defer_run(run, "w3", 0) == 2
    assert store.defer_run("no such run", "w3", 0) == 0


def test_a_failed_run_says_why(bench: Bench) -> None:
    run = bench.store.add_run(new_run())[0].id
    bench.store.take_run(run, "w1", 10)
    assert bench.store.finish_run(run, "w1", "KeyError: 'x'")
    failed = bench.store.run(run)
    assert failed is not None
    assert (failed.state, failed.error) == (RunState.FAILED, "KeyError: 'x'")


def test_a_report_that_no_page_could_read_is_refused(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    store.take_run(run, "w1", 10)
    note = Note(kind="run", text="a" * database.MOST_ROW)
    with pytest.raises(UserError, match="has 16 MiB; the database takes at most 16 MiB"):
        store.put_report(run, "w1", report().model_copy(update={"notes": (note,)}))
    assert store.report(run) is None
    assert store.put_report(run, "w1", report())


def test_a_papers_job_and_report_come_back_as_such(bench: Bench) -> None:
    store, made = bench.store, paper_report()
    run = store.add_run(new_run(job=made.job, proof="paper"))[0]
    assert run.request.job == made.job
    store.take_run(run.id, "w1", 10)
    assert store.put_report(run.id, "w1", made)
    assert store.report(run.id) == made
    done = store.run(run.id)
    assert done is not None
    assert (done.verdict, done.patch, done.request.issue.body) == ("needs_info", "", "94 %")


def test_a_report_of_an_older_release_that_is_too_large_is_not_read(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    store.take_run(run, "w1", 10)
    assert store.put_report(run, "w1", report())
    huge = report().model_dump_json() + " " * database.MOST_ROW
    bench.execute("UPDATE reports SET body = :body WHERE run = :run", body=huge, run=run)
    assert store.report(run) is None


def test_a_report_of_an_older_release_that_holds_its_reading_is_read(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    store.take_run(run, "w1", 10)
    assert store.put_report(run, "w1", report())
    fence = {"index": 0, "tag": "", "kind": "data", "text": "", "raw": "", "line": 1, "lead": "It"}
    old = json.loads(report().model_dump_json()) | {"bug": {"kind": "bug", "fences": [fence]}}
    bench.execute("UPDATE reports SET body = :body WHERE run = :run", body=json.dumps(old), run=run)
    assert store.report(run) == report()


def test_a_journal_is_kept_in_order_and_goes_on_from_a_key_that_comes_again(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    assert not store.append_entry(run, "w1", ATTEMPTS, attempt())
    store.take_run(run, "w1", 10)
    assert store.append_entry(run, "w1", PROGRAMS, SCRIPT)
    for number in (1, 2, 3):
        assert store.append_entry(run, "w1", LOGS, log(number, f"log {number}"))
        assert store.append_entry(run, "w1", ATTEMPTS, attempt(number))
    assert not store.append_entry(run, "w2", ATTEMPTS, attempt(1))
    assert [each.number for each in store.entries(run, ATTEMPTS)] == [1, 2, 3]
    assert [each.number for each in store.entries(run, ATTEMPTS, last=2)] == [2, 3]
    assert str(store.entries(run, ATTEMPTS)[0].execution.seconds) == "nan"
    assert store.entries(run, LOGS, key="2") == (log(2, "log 2"),)
    assert store.entries(run, LOGS, key="9") == store.entries("no such run", LOGS) == ()
    assert store.append_entry(run, "w1", ATTEMPTS, attempt(2, "anew"))
    assert [each.judgement.reason for each in store.entries(run, ATTEMPTS)] == ["met", "anew"]
    assert len(store.entries(run, LOGS)) == 3
    assert store.entries(run, PROGRAMS) == (SCRIPT,)


def test_what_a_model_was_asked_is_kept_until_there_is_a_report(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    store.take_run(run, "w1", 10)
    for number, said in ((1, "nul \0 half \ud83d end"), (2, "second")):
        assert store.append_entry(run, "w1", EXCHANGES, exchange(number, said))
    assert store.append_entry(run, "w1", ATTEMPTS, attempt())
    first, second = store.entries(run, EXCHANGES)
    assert (first.number, second) == (1, exchange(2, "second"))
    assert first.question.messages[0].content.startswith("nul \0 half ")
    assert store.put_report(run, "w1", report())
    assert store.entries(run, EXCHANGES) == ()
    assert store.entries(run, ATTEMPTS) != ()


def test_equal_plans_have_hashes_of_their_own_that_a_redelivery_keeps(bench: Bench) -> None:
    store, plan = bench.store, "abcdefgh" + "1" * 56
    first, second = (
        store.add_run(new_run(guid, plan=plan, state=RunState.WAITING))[0] for guid in "ab"
    )
    assert first.plan == approval_hash(first.id, plan)
    assert first.plan != second.plan
    assert len(first.plan) == 32
    again, new = store.add_run(new_run("a", plan=plan, state=RunState.WAITING))
    assert (again, new) == (first, False)
    assert store.runs(repository="acme/pool", number=7, plan=first.plan) == (first,)
    for missed in (first.plan[:31], first.plan.upper(), plan, ""):
        assert store.runs(repository="acme/pool", number=7, plan=missed) == ()
    assert store.runs(repository="acme/pool", number=8, plan=first.plan) == ()


def test_approving_queues_a_waiting_run_once(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run("a", state=RunState.WAITING))[0].id
    queued = store.add_run(new_run("b"))[0].id
    assert store.take_run(run, "w1", 10) is None
    assert store.approve(queued, "owner") is None
    assert store.approve("none", "owner") is None
    approved = store.approve(run, "owner")
    assert approved is not None
    assert (approved.id, approved.state, approved.approved_by) == (run, RunState.QUEUED, "owner")
    assert store.approve(run, "another") is None


def test_cancelling_asks_every_live_run_that_fits(bench: Bench) -> None:
    store = bench.store
    waiting = store.add_run(new_run("a", state=RunState.WAITING))[0].id
    running = store.add_run(new_run("b"))[0].id
    deferred = store.add_run(new_run("c", 8))[0].id
    other = store.add_run(new_run("d", 7, name="acme/other"))[0].id
    store.take_run(deferred, "w1", 10)
    store.defer_run(deferred, "w1", 1000)
    store.take_run(running, "w1", 10)
    asked = store.cancel("mona", repository="acme/pool")
    assert {run.id for run in asked} == {waiting, running, deferred}
    assert {run.id: run.state for run in asked}[running] is RunState.RUNNING
    assert store.beat(running, "w1", 10) == Beat(cancel=True)
    assert store.finish_run(running, "w1")
    for run in (waiting, deferred):
        taken = store.take_run(run, "w2", 10)
        assert taken is not None
        assert (taken.cancelled_by, taken.turn > 0) == ("mona", True)
    assert store.cancel("hubot", run=running) == ()
    (still,) = store.cancel("hubot", run=waiting)
    assert still.cancelled_by == "mona"
    assert [run.id for run in store.cancel("GitHub", installation=1, number=7)] == [waiting, other]
    assert store.cancel("GitHub", installation=9) == ()


# --- overdue -------------------------------------------------------------------------------------


def test_what_the_dead_left_is_offered_again_once(bench: Bench) -> None:
    store = bench.store
    store.claim([delivery()])
    store.take_delivery("g1", "w1", 10)
    running = store.add_run(new_run("a", 1, device="gpu"))[0].id
    told = store.add_run(new_run("b", 2))[0].id
    for run in (running, told):
        store.take_run(run, "w1", 10)
    store.put_report(told, "w1", report())
    assert store.overdue(1000) == ()
    bench.clock.advance(10)
    expected = {
        Task(kind="delivery", id="g1", turn=1),
        Task(kind="run", id=running, device="gpu", turn=1),
        Task(kind="run", id=told, turn=1),
    }
    assert store.overdue(1000, leases=False) == ()
    assert set(bench.another().overdue(1000)) == expected
    assert store.overdue(1000) == ()
    assert not store.renew_delivery("g1", "w1", 10)
    again = store.take_run(running, "w2", 10)
    assert again is not None
    assert again.state is RunState.RUNNING
    told_again = store.take_run(told, "w2", 10)
    assert told_again is not None
    assert told_again.state is RunState.REPORTED


def test_what_nobody_heard_is_offered_ever_more_patiently(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    store.add_run(new_run("w", state=RunState.WAITING))  # waits for a person, not for the queue
    bench.clock.advance(10)
    assert store.overdue(10) == ()
    bench.clock.advance(0.5)
    for turn, patience in enumerate((20, 40, 80, 160, 320, 640, 640), start=1):
        assert store.overdue(10) == (Task(kind="run", id=run, turn=turn),)
        bench.clock.advance(patience)
        assert store.overdue(10) == ()
        bench.clock.advance(0.5)


def test_the_patience_for_a_delivery_does_not_grow(bench: Bench) -> None:
    store = bench.store
    store.claim([delivery()])
    store.take_delivery("g1", "w1", 10)
    turn = store.defer_delivery("g1", "w1", 0)
    for _ in range(9):
        bench.clock.advance(10)
        assert store.overdue(10) == ()
        bench.clock.advance(0.5)
        assert store.overdue(10) == (Task(kind="delivery", id="g1", turn=turn),)
    assert store.take_delivery("g1", "w2", 10) is not None


def test_deliveries_are_offered_again_in_the_order_in_which_they_came(bench: Bench) -> None:
    store, came = bench.store, ["c", "a", "d", "b"]
    for number, guid in enumerate(came):
        store.claim([delivery(guid, received_at=since(number / 1000))])
        bench.clock.advance(1)
    assert [task.id for task in store.overdue(2.5)] == ["c", "a"]
    store.take_delivery("c", "w1", 1)  # its worker dies
    bench.clock.advance(2)
    assert [task.id for task in bench.another().overdue(1)] == came
    assert store.overdue(0) == ()
    bench.clock.advance(0.001)
    assert [(task.id, task.turn) for task in store.overdue(0)] == [
        ("c", 1),
        ("a", 0),
        ("d", 0),
        ("b", 0),
    ]


def test_without_patience_all_that_can_be_taken_is_found(bench: Bench) -> None:
    store = bench.store
    store.claim([delivery("g1"), delivery("g2")])
    runs = [store.add_run(new_run(f"r{number}", number))[0].id for number in (1, 2, 3)]
    for _ in range(3):
        bench.clock.advance(1000)
        store.overdue(1)
    store.take_delivery("g2", "w1", 10)
    store.defer_delivery("g2", "w1", 10)
    store.take_run(runs[1], "w1", 10)
    bench.clock.advance(0.01)
    found = store.overdue(0)
    assert [(task.kind, task.id) for task in found] == [
        ("delivery", "g1"),
        ("run", runs[0]),
        ("run", runs[2]),
    ]


def test_a_run_deferred_past_now_is_not_overdue(bench: Bench) -> None:
    store = bench.store
    run = store.add_run(new_run())[0].id
    store.take_run(run, "w1", 10)
    store.defer_run(run, "w1", 100)
    bench.clock.advance(99)
    assert store.overdue(1) == ()
    bench.clock.advance(2)
    assert store.overdue(1) == ()  # it was offered for that moment; patience counts from there
    bench.clock.advance(2)
    assert store.overdue(1) == (Task(kind="run", id=run, turn=2),)


def test_what_waits_for_other_credentials_is_found_as_soon_as_it_is_asked_for(
    bench: Bench,
) -> None:
    store, guids = bench.store, ("refused", "deferred")
    store.claim([delivery(guid) for guid in guids])
    runs = {guid: store.add_run(new_run(guid, n))[0].id for n, guid in enumerate(guids)}
    for guid in guids:
        store.take_delivery(guid, "w", 10)
        store.defer_delivery(guid, "w", 960, refused=guid == "refused")
        store.take_run(runs[guid], "w", 10)
        store.defer_run(runs[guid], "w", 60, refused=guid == "refused")
    assert store.overdue(10) == ()
    found = [
        Task(kind="delivery", id="refused", turn=1),
        Task(kind="run", id=runs["refused"], turn=2),
    ]
    assert list(bench.another().overdue(10, refused=True)) == found
    assert store.overdue(10, refused=True) == ()
    assert store.take_delivery("refused", "w", 10) is not None
    assert store.take_run(runs["refused"], "w", 10) is not None
    assert store.take_delivery("deferred", "w", 10) is None
    assert store.take_run(runs["deferred"], "w", 10) is None


def write(store: AppStore, installation: int, *, notifies: bool) -> float:
    """A write that takes no time; how long it has to wait."""
    wait = store.reserve_write(installation, "w", notifies=notifies)
    if not wait:
        store.end_write(installation, "w")
    return wait


# --- comments, pacing, figures -------------------------------------------------------------------


def test_comments_are_remembered_by_key(bench: Bench) -> None:
    store = bench.store
    sticky = OurComment(repository="acme/pool", number=7, key="run", comment=2**53, digest="d")
    reply = OurComment(repository="acme/pool", number=7, key="reply:1", comment=5)
    assert store.comment("acme/pool", 7, "run") is None
    store.put_comment(sticky)
    store.put_comment(reply)
    store.put_comment(OurComment(repository="acme/pool", number=8, key="run", comment=6))
    assert bench.another().comment("acme/pool", 7, "run") == sticky
    assert store.comment("acme/pool", 7, "reply:1") == reply
    newer = sticky.model_copy(update={"digest": "e", "comment": 3})
    store.put_comment(newer)
    assert store.comment("acme/pool", 7, "run") == newer
    store.forget_comment("acme/pool", 7, "run")
    store.forget_comment("acme/pool", 7, "run")
    assert store.comment("acme/pool", 7, "run") is None
    assert store.comment("acme/pool", 7, "reply:1") == reply


def test_a_look_for_a_second_comment_is_noted_until_it_is_made(bench: Bench) -> None:
    store, other = bench.store, bench.another()
    here = (1, "acme/pool", 7, "run")
    first = store.note_sweep(*here, 300)
    assert first is not None
    assert other.note_sweep(*here[:3], "plan:1", 300) is not None
    bench.clock.advance(100)
    assert other.note_sweep(*here, 300) is None
    store.forget_sweep(first)  # it was put off since
    bench.clock.advance(250)
    (plan,) = store.due_sweeps(60)
    assert (plan.installation, plan.repository, plan.number, plan.key) == (*here[:3], "plan:1")
    assert other.due_sweeps(60) == ()
    other.forget_sweep(plan)
    bench.clock.advance(50)
    (due,) = other.due_sweeps(60)
    assert due.key == "run"
    bench.clock.advance(60)
    (again,) = store.due_sweeps(60)
    store.forget_sweep(due)
    store.forget_sweep(again)
    bench.clock.advance(1000)
    assert store.due_sweeps(60) == ()
    assert store.note_sweep(*here, 0) is not None
    bench.clock.advance(1)
    store.prune(since(10**6))
    assert store.due_sweeps(60) == ()


def test_writes_keep_their_distance(bench: Bench) -> None:
    store, other = bench.store, bench.another()
    assert write(store, 1, notifies=True) == 0
    assert write(other, 1, notifies=False) == 1
    assert write(other, 1, notifies=True) == 3
    assert write(other, 2, notifies=True) == 0  # another installation has limits of its own
    bench.clock.advance(1)
    assert write(other, 1, notifies=False) == 0
    assert write(store, 1, notifies=True) == 2
    bench.clock.advance(2)
    assert write(store, 1, notifies=True) == 0
    store.hold_writes(1, 60)
    other.hold_writes(1, 10)
    assert write(store, 1, notifies=False) == 60
    assert write(store, 2, notifies=False) == 0
    bench.clock.advance(60)
    assert write(store, 1, notifies=False) == 0


def test_a_gap_counts_from_the_end_of_a_write(bench: Bench) -> None:
    store, other = bench.store, bench.another()
    assert store.reserve_write(1, "w1", notifies=True) == 0
    bench.clock.advance(5)
    assert other.reserve_write(1, "w2", notifies=False) == 1
    assert other.reserve_write(1, "w2", notifies=True) == 3
    assert other.reserve_write(2, "w2", notifies=True) == 0
    other.end_write(1, "w2")
    other.end_write(1, "")
    assert other.reserve_write(1, "w2", notifies=False) == 1
    store.end_write(1, "w1")
    bench.clock.advance(0.5)
    store.end_write(1, "w1")
    assert other.reserve_write(1, "w2", notifies=False) == 0.5
    assert other.reserve_write(1, "w2", notifies=True) == 2.5
    bench.clock.advance(0.5)
    assert other.reserve_write(1, "w2", notifies=False) == 0
    bench.clock.advance(29)  # its process has died
    assert store.reserve_write(1, "w1", notifies=False) == 1
    bench.clock.advance(1)
    assert store.reserve_write(1, "w1", notifies=False) == 0


def test_writes_are_capped_by_the_minute_and_the_hour(bench: Bench) -> None:
    store, booked = bench.store, []
    while not booked or bench.clock.now - NOW < 3600:
        wait = write(store, 1, notifies=False)
        if wait == 0:
            booked.append(bench.clock.now)
        bench.clock.advance(wait or (0.25 if len(booked) < 100 else 1))
    assert len(booked) == 500
    assert all(later - earlier >= 1 for earlier, later in pairwise(booked))


def test_the_caps_hold_where_no_gap_does(bench: Bench) -> None:
    store, waits = bench.limited(per_minute=3, per_hour=5), []
    for _ in range(4):
        waits.append(write(store, 1, notifies=True))
        bench.clock.advance(1)
    assert waits == [0, 0, 0, 57]
    bench.clock.advance(60)
    assert [write(store, 1, notifies=False) for _ in range(3)] == [0, 0, 3600 - 64]


def test_usage_counts_what_began_or_is_queued_and_plans_apart(bench: Bench) -> None:
    store = bench.store
    yesterday = store.add_run(new_run("a", 1))[0].id
    store.take_run(yesterday, "w1", 10)
    store.beat(yesterday, "w1", 10, seconds=100)
    store.note_cost(yesterday, calls=1, usd=9.0)
    store.finish_run(yesterday, "w1")
    store.add_run(new_run("b", 2, state=RunState.WAITING))
    store.add_run(new_run("c", 3))
    bench.clock.advance(1000)
    today = store.add_run(new_run("d", 4, requester="hubot"))[0].id
    store.take_run(today, "w1", 10)
    store.beat(today, "w1", 10, seconds=30)
    store.note_cost(today, calls=1, input_tokens=10, output_tokens=20, usd=0.25)
    store.note_cost(today, usd=0.25)
    store.note_cost("no such run", usd=100.0)
    store.add_run(new_run("e", 5, name="acme/other", state=RunState.WAITING))
    withdrawn = store.add_run(new_run("f", 6, state=RunState.WAITING))[0].id
    store.cancel("mona", run=withdrawn)
    store.take_run(withdrawn, "w2", 10)
    assert store.usage(since(0)) == QuotaUsage(runs=3, plans=3, seconds=130, usd=9.5)
    assert store.usage(since(500)) == QuotaUsage(runs=2, plans=2, seconds=30, usd=0.5)
    assert store.usage(since(500), repository="acme/pool") == QuotaUsage(
        runs=2, plans=1, seconds=30, usd=0.5
    )
    assert store.usage(since(500), requester="hubot") == QuotaUsage(runs=1, seconds=30, usd=0.5)
    assert store.usage(since(500), repository="acme/other", requester="hubot") == QuotaUsage()


def test_a_decision_is_made_once_and_with_what_it_does_or_not_at_all(bench: Bench) -> None:
    store, other = bench.store, bench.another()
    made = []

    def act(ledger: AppStore) -> Settled:
        made.append(ledger.add_run(new_run("a"))[0].id)
        seen = ledger.usage(since(0)).runs
        return Settled(kind="queued", runs=(made[-1],), text=f"{seen} \0 now")

    def fails(ledger: AppStore) -> Settled:
        ledger.add_run(new_run("b"))
        raise RuntimeError

    assert store.outcome("a", 0) is None
    first = store.decide("a", 0, act)
    assert first.runs == tuple(made)
    assert other.decide("a", 0, act) == other.outcome("a", 0)
    assert len(made) == 1
    with pytest.raises(RuntimeError):
        store.decide("b", 0, fails)
    assert [run.id for run in other.runs()] == made
    assert store.outcome("b", 0) is None
    assert store.decide("a", 1, lambda _: Settled(text="second")).text == "second"


def test_deciders_take_turns(bench: Bench) -> None:
    stores, barrier = [bench.store, *(bench.another() for _ in range(2))], Barrier(3)

    def decide(store: AppStore, name: str) -> None:
        def act(ledger: AppStore) -> Settled:
            if ledger.usage(since(0)).runs >= 2:
                return Settled()
            ledger.add_run(new_run(name))
            return Settled(kind="queued")

        barrier.wait()
        for number in range(4):
            store.decide(f"{name}{number}", 0, act)

    threads = [
        Thread(target=decide, args=(store, f"g{number}")) for number, store in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bench.store.runs()) == 2


def test_texts_are_shared_until_they_are_taken_back(bench: Bench) -> None:
    store, other = bench.store, bench.another()
    assert store.shared("key") == ""
    assert store.share("key", "one", once=True) == "one"
    assert other.share("key", "two", once=True) == "one"
    assert other.share("key", "three") == store.shared("key") == "three"
    bench.clock.advance(60)
    assert (store.shared("key", 59), store.shared("key", 61)) == ("", "three")
    store.unshare("key")
    assert other.shared("key") == ""


def test_switches_are_thrown_and_taken_back(bench: Bench) -> None:
    store = bench.store
    store.set_switch("all", "maintenance")
    store.set_switch("acme/pool", "asked to")
    store.set_switch("all", "")
    assert bench.another().switches() == {"all": "", "acme/pool": "asked to"}
    store.set_switch("all", None)
    store.set_switch("never thrown", None)
    assert store.switches() == {"acme/pool": "asked to"}


def test_figures_and_forgetting(bench: Bench) -> None:
    store = bench.store
    store.claim([delivery("a"), delivery("b"), delivery("c")])
    for guid, error in (("a", ""), ("b", "no")):
        store.take_delivery(guid, "w", 10)
        store.finish_delivery(guid, "w", error)
    done = store.add_run(new_run("a"))[0].id
    live = store.add_run(new_run("b"))[0].id
    store.take_run(done, "w", 10)
    store.append_entry(done, "w", ATTEMPTS, attempt())
    store.put_report(done, "w", report())
    store.note_cost(done, usd=1.0)
    store.finish_run(done, "w")
    write(store, 1, notifies=True)
    figures = store.counts()
    assert {name: number for name, number in figures.items() if number} == {
        "deliveries.waiting": 1,
        "deliveries.handled": 1,
        "deliveries.failed": 1,
        "runs.queued": 1,
        "runs.finished": 1,
        "verdicts.reproduced": 1,
    }
    assert set(figures) >= {f"runs.{state}" for state in RunState}
    assert store.prune(since(0)) == 0
    assert store.prune(since(0) + timedelta(seconds=1)) == 1
    assert store.run(done) is None
    assert (store.entries(done, ATTEMPTS), store.report(done)) == ((), None)
    assert store.run(live) is not None
    assert store.seen(["a", "b", "c"]) == {"c"}
    assert store.usage(since(0)) == QuotaUsage(runs=1)
    assert write(store, 1, notifies=True) == 0


def test_what_is_private_can_be_erased(bench: Bench) -> None:
    store, private = bench.store, Repository(id=2, full_name="acme/secret", private=True)
    other = private.model_copy(update={"id": 3, "full_name": "acme/other"})
    renamed = private.model_copy(update={"full_name": "acme/hidden"})
    open_ = store.add_run(new_run("open", 1))[0].id
    runs = [
        store.add_run(new_run(guid, 7, repository=where))[0].id
        for guid, where in (("a", private), ("b", renamed), ("c", other))
    ]
    store.take_run(runs[0], "w", 10)
    store.append_entry(runs[0], "w", ATTEMPTS, attempt())
    store.put_report(runs[0], "w", report())
    store.claim([delivery("open"), delivery("a", repository=private, digest="d1")])
    store.claim(
        [delivery("e", repository=private, installation=12), delivery("c", repository=other)]
    )
    store.decide("d1", 0, lambda _: Settled(text="private words"))
    store.put_comment(OurComment(repository="acme/secret", number=7, key="run", comment=5))
    assert store.erase(2, before=WHEN) == 0
    assert store.erase(1, private.id, before=WHEN - timedelta(seconds=1)) == 0
    assert store.erase(1, private.id, before=WHEN) == 2
    assert [run.id for run in store.runs()] == [runs[2], open_]
    assert (store.report(runs[0]), store.entries(runs[0], ATTEMPTS)) == (None, ())
    assert not store.beat(runs[0], "w", 10).cancel
    assert store.beat(runs[0], "w", 10).lost
    assert store.outcome("d1", 0) is None
    assert store.comment("acme/secret", 7, "run") is None
    assert store.seen(["open", "a", "c", "e"]) == {"open", "c", "e"}
    assert store.erase(1, before=WHEN) == 1
    assert [run.id for run in store.runs()] == [open_]
    assert store.seen(["open", "a", "c", "e"]) == {"open", "e"}


def test_only_what_came_before_is_erased_or_cancelled(bench: Bench) -> None:
    store, private = bench.store, Repository(id=2, full_name="acme/secret", private=True)

    def add(guid: str, number: int, minutes: int) -> str:
        at = WHEN + timedelta(minutes=minutes)
        store.claim([delivery(guid, repository=private, received_at=at)])
        store.put_comment(OurComment(repository="acme/secret", number=number, key="run", comment=5))
        store.note_sweep(1, "acme/secret", number, "run", 0)
        return store.add_run(new_run(guid, number, repository=private, asked_at=at))[0].id

    old, same, new = (add(guid, at, at) for guid, at in (("a", 1), ("b", 2), ("c", 3)))
    before = WHEN + timedelta(minutes=2)
    assert [run.id for run in store.cancel("GitHub", installation=1, before=before)] == [old, same]
    assert store.erase(1, before=before) == 2
    assert [(run.id, run.cancelled_by) for run in store.runs()] == [(new, "")]
    assert store.seen("abc") == {"c"}
    kept = [store.comment("acme/secret", number, "run") is not None for number in (1, 2, 3)]
    assert kept == [False, False, True]
    bench.clock.advance(1)
    assert [sweep.number for sweep in store.due_sweeps(60)] == [3]


def test_what_was_erased_still_counts_today_and_names_nobody(bench: Bench) -> None:
    store, secret = bench.store, Repository(id=2, full_name="acme/secret", private=True)

    def ran(guid: str, **fields: object) -> str:
        run = store.add_run(new_run(guid, repository=secret, **fields))[0].id
        store.take_run(run, "w", 10)
        store.beat(run, "w", 10, seconds=30)
        store.note_cost(run, usd=0.25)
        return run

    bench.clock.advance(-86_400)
    yesterday = ran("a")
    store.finish_run(yesterday, "w")
    bench.clock.advance(86_400)
    at_work = ran("b", requester="hubot")
    store.finish_run(ran("c", number=8), "w")
    store.add_run(new_run("d", repository=secret, state=RunState.WAITING))
    store.add_run(new_run("e", name="acme/pool", number=9))
    today = since(0).replace(hour=0)
    before = store.usage(today)
    assert before == QuotaUsage(runs=3, plans=1, seconds=60, usd=0.5)
    assert store.erase(1, before=since(0)) == 4
    assert not any(word in stored_words(store, "usage") for word in ("acme", "secret", "hubot"))
    store.note_cost(at_work, usd=1.0)  # its worker is told with its next heartbeat
    after = before.model_copy(update={"usd": 1.5})
    assert store.usage(today) == bench.another().usage(today) == after
    secrets = QuotaUsage(runs=2, plans=1, seconds=60, usd=1.5)
    assert store.usage(today, repository="acme/secret") == secrets
    assert store.usage(today, repository="acme/secret", requester="hubot").runs == 1
    assert store.usage(today, repository="acme/pool").runs == 1
    assert store.usage(today, requester="nobody") == QuotaUsage()
    store.prune(since(-30 * 86_400))
    assert store.usage(today) == after
    bench.clock.advance(86_400)
    store.prune(since(-30 * 86_400))
    assert store.usage(today).runs == 1
    assert stored_words(store, "usage") == ""


def stored_words(store: AppStore, table: str) -> str:
    """Everything in a table, as text."""
    assert isinstance(store, SqlStore)
    with store._db.reading() as connection:
        return "".join(map(str, connection.execute(select(metadata.tables[table])).all()))


# --- text nobody should send ---------------------------------------------------------------------


def test_hostile_text_is_kept_without_harm(bench: Bench) -> None:
    store, bad = bench.store, "nul \0 half \ud83d end"
    odd = delivery("g", sender=bad)
    assert store.claim([odd]) == ("new",)
    taken = store.take_delivery("g", "w", 10)
    assert taken is not None
    assert taken.sender.encode().endswith(b" end")
    run = store.add_run(new_run("g", requester=bad, name=f"acme/{bad}"))[0].id
    store.take_run(run, "w", 10)
    store.beat(run, "w", 10, bad, bad * 1000)
    assert store.append_entry(run, "w", ATTEMPTS, attempt(1, bad))
    assert store.append_entry(run, "w", LOGS, log(1, bad))
    assert "\0" not in store.entries(run, LOGS)[0].text
    assert store.put_report(run, "w", report())
    assert store.finish_run(run, "w", bad)
    seen = store.run(run)
    assert seen is not None
    assert len(seen.progress) <= database.MOST_LINE
    seen.model_dump_json().encode()


def test_a_long_log_keeps_both_ends(bench: Bench) -> None:
    run = bench.store.add_run(new_run())[0].id
    bench.store.take_run(run, "w", 10)
    text = "first\n" + "x" * 2 * database.MOST_LOG + "\nlast"
    bench.store.append_entry(run, "w", LOGS, log(1, text))
    (stored,) = bench.store.entries(run, LOGS)
    assert len(stored.text) < database.MOST_LOG + 100
    assert stored.text.startswith("first\n")
    assert stored.text.endswith("\nlast")
    assert "characters left out" in stored.text


# --- threads -------------------------------------------------------------------------------------


def test_threads_that_want_the_same_get_it_once(bench: Bench) -> None:
    store, start, won = bench.store, Barrier(8), []
    rival = [store.add_run(new_run(f"r{n}"))[0].id for n in range(8)]

    def work(me: int) -> None:
        start.wait()
        won.extend(("claim", n) for n in range(10) if store.claim([delivery(f"d{n}")]) == ("new",))
        won.extend(("take", n) for n in range(10) if store.take_delivery(f"d{n}", f"w{me}", 60))
        won.extend(("issue", 0) for run in rival if store.take_run(run, f"w{me}", 60))
        won.extend(("write", 0) for _ in range(3) if write(store, 1, notifies=True) == 0)

    threads = [Thread(target=work, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == sorted(
        [("claim", n) for n in range(10)]
        + [("take", n) for n in range(10)]
        + [("issue", 0), ("write", 0)]
    )
