"""A private repository that the App has left: what is erased, what stays, and what it used today."""

from __future__ import annotations

from datetime import timedelta
from threading import Event, Thread

import pytest

from bot.app.ports import Task
from bot.kernel.dialogue import Usage
from bot.kernel.run import RunState
from tests.support.fakes import ScriptedModel
from tests.unit.test_decisions import again
from tests.unit.test_service import NOW, REPOSITORY, UNCHECKABLE, App, Slow, command, start_one

PRIVATE = REPOSITORY.model_copy(update={"private": True})
LATER = NOW + timedelta(minutes=5)
LAST = NOW + timedelta(minutes=10)
LEAVES = [
    {"trigger": "gone", "repository": PRIVATE, "action": "removed"},
    {"trigger": "uninstalled", "repository": None, "action": "deleted"},
]
leaving = pytest.mark.parametrize("leave", LEAVES, ids=["removed", "uninstalled"])


class Private(App):
    """An App on a private repository."""

    def deliver(self, *args, **more):
        return super().deliver(*args, **{"repository": PRIVATE, **more})

    def leave(self, leave, **more):
        return self.deliver(**{"issue": None, "digest": "d" * 64, **leave, **more})


def limited(**quota):
    limits = "".join(f"  {name}: {number}\n" for name, number in quota.items())
    return f"quota:\n{limits}defaults:\n  proofs: []\n"


@leaving
@pytest.mark.parametrize("quota", ["repository", "person"])
def test_a_repository_that_comes_back_has_used_what_it_used_today(leave, quota):
    app = Private(config=limited(**{quota: 2}))
    for seed in (1, 2):
        app.deliver("comment", command(seed=seed), sender="max")
    app.leave(leave, received_at=LATER)
    assert app.runs() == ()
    app.deliver("comment", command(seed=3), sender="max", received_at=LAST)
    assert app.runs() == ()
    assert f"quota.{quota}" in app.ours()[-1]


def test_plans_count_too():
    app = Private(config=limited(plans=1))
    app.deliver("comment", command(), sender="stranger")
    app.leave(LEAVES[0], received_at=LATER)
    app.deliver("comment", command(), sender="stranger", received_at=LAST)
    assert app.runs() == ()
    assert "quota.plans" in app.ours()[-1]


def test_another_repository_and_another_person_have_used_nothing():
    app = Private(config=limited(repository=1))
    app.deliver("comment", command(), sender="max")
    app.leave(LEAVES[1], received_at=LATER)
    store, day = app.store, app.service.context.day()
    assert (store.usage(day).runs, store.usage(day).seconds > 0) == (1, True)
    assert store.usage(day, repository="acme/lib", requester="max").runs == 1
    assert store.usage(day, repository="acme/other").runs == 0
    assert store.usage(day, repository="acme/lib", requester="mona").runs == 0


def test_the_host_s_dollars_are_spent():
    app = Private(daily_usd=0.2)
    app.model = ScriptedModel(lambda _: UNCHECKABLE, usd=0.25)
    app.deliver(body="lib 1.0 does not fit, it fails with an error.")
    app.leave(LEAVES[1], received_at=LATER)
    app.deliver(number=4, received_at=LAST)
    assert app.runs() == ()


@leaving
def test_a_run_that_is_erased_at_work_stops_and_what_it_cost_counts(leave):
    slow = Slow()
    app = Private(slow)
    engine = app.service.context.engine

    def costly(*args, **more):
        return engine(*args, **more).model_copy(update={"cost": Usage(calls=1, usd=0.5)})

    app.service.context.engine = costly
    run = start_one(app)
    stop = Event()
    app.queue.offer(Task(kind="run", id=run.id))
    worker = Thread(
        target=app.queue.work,
        args=(app.service.handle,),
        kwargs={"device": "cpu", "slots": 1, "stop": stop},
    )
    worker.start()
    assert slow.began.wait(20)
    app.queue.drain = lambda handle: None
    app.leave(leave, received_at=LATER)
    assert app.cancels[0].wait(20)
    slow.go_on.set()
    stop.set()
    worker.join(20)
    assert app.runs() == ()
    assert not any("Reproduced" in body for body in app.ours())
    used = app.store.usage(app.service.context.day())
    assert (used.runs, used.usd) == (1, 0.5)


@leaving
def test_what_was_asked_for_after_a_late_delivery_stays(leave):
    app = Private()
    app.deliver("comment", command(seed=1), sender="max")
    app.deliver("comment", command(seed=2), sender="max", number=4, received_at=LAST)
    app.deliver("comment", command(python="3.10"), sender="stranger", number=5, received_at=LAST)
    app.leave(leave, received_at=LATER)
    waiting, done = app.runs()
    assert (waiting.state, done.verdict) == (RunState.WAITING, "reproduced")
    assert app.store.report(done.id) is not None
    assert app.store.seen(["guid-1", "guid-2"]) == {"guid-2"}
    assert app.store.comment("acme/lib", 4, "run") is not None
    assert app.store.comment("acme/lib", 3, "run") is None


@leaving
def test_a_delivery_that_is_sent_again_erases_nothing_new(leave):
    app = Private()
    app.deliver("comment", command(seed=1), sender="max")
    left = app.leave(leave, received_at=LATER)
    app.deliver("comment", command(seed=2), sender="max", received_at=LAST)
    app.deliver("comment", command(python="3.10"), sender="stranger", received_at=LAST)
    assert app.store.claim([left]) == ("known",)
    app.queue.offer(Task(kind="delivery", id=left.guid))
    app.queue.drain(app.service.handle)
    again(app, left, received_at=LAST + timedelta(minutes=5))
    waiting, done = app.runs()
    assert (waiting.state, done.verdict) == (RunState.WAITING, "reproduced")


@leaving
def test_a_worker_that_dies_after_the_decision_has_erased(leave):
    app = Private()
    run = start_one(app)

    class Dying(type(app.store)):
        def finish_delivery(self, *args):
            raise SystemExit

    store, app.store.__class__ = type(app.store), Dying
    with pytest.raises(SystemExit):
        app.leave(leave, received_at=LATER)
    assert (app.runs(), app.store.run(run.id)) == ((), None)
    app.store.__class__ = store
    app.deliver("comment", command(seed=2), sender="max", received_at=LAST)
    app.resume()
    assert [each.verdict for each in app.runs()] == ["reproduced"]
    assert app.store.counts()["deliveries.handling"] == 0


@leaving
def test_a_worker_that_dies_before_the_decision_erases_when_it_is_handled_again(leave):
    app = Private()
    app.deliver("comment", command(seed=1), sender="max")

    class Dying(type(app.store)):
        def erase(self, *args, **more):
            super().erase(*args, **more)
            raise SystemExit

    store, app.store.__class__ = type(app.store), Dying
    with pytest.raises(SystemExit):
        app.leave(leave, received_at=LATER)
    assert len(app.runs()) == 1
    app.store.__class__ = store
    app.resume()
    assert app.runs() == ()
