"""A delivery is decided once: whatever fails afterwards, and however often it is sent, a second
look only completes what the first one decided.
"""

from __future__ import annotations

from datetime import timedelta
from threading import Event

import pytest

from bot.app.ports import Task
from bot.kernel.errors import TransientError
from bot.kernel.run import RunState
from tests.unit.test_service import NOW, REPOSITORY, App, Slow, command, start_one, working

AWAY = TransientError("502 Bad Gateway")


def again(app, delivery, **changed):
    """The same body, under a new delivery id."""
    body = delivery.model_copy(update={"guid": f"{delivery.guid}-again", **changed})
    app.store.claim([body])
    app.queue.offer(Task(kind="delivery", id=body.guid))
    app.queue.drain(app.service.handle)
    return body


@pytest.mark.parametrize("method", ["react", "create_comment"])
def test_a_lost_reaction_makes_no_run_refuse_itself(method):
    app = App(config="quota:\n  person: 1\ndefaults:\n  proofs: []\n")
    app.hub.fail(AWAY, method)
    delivery = app.deliver("comment", command(), sender="max")
    app.resume()
    assert [run.verdict for run in app.runs()] == ["reproduced"]
    assert "eyes" in app.reactions(delivery)
    assert "confused" not in app.reactions(delivery)
    assert not any("quota" in body or "already in progress" in body for body in app.ours())


def test_a_cancel_that_is_looked_at_twice_still_stopped_something():
    slow = Slow()
    app = App(slow)
    run = start_one(app)
    thread, _ = working(app, Task(kind="run", id=run.id))
    assert slow.began.wait(60)
    app.hub.fail(AWAY, "react")
    delivery = app.deliver("comment", command("cancel"), sender="max")
    assert app.cancels[0].wait(20)  # a run that ends before it is told keeps its verdict
    slow.go_on.set()
    thread.join(20)
    app.resume()
    assert [each.verdict for each in app.runs()] == ["cancelled"]
    assert app.reactions(delivery) == {"+1"}
    assert not any("nothing to cancel" in body for body in app.ours())


def test_a_cancel_that_is_looked_at_twice_leaves_a_newer_run_alone():
    app = App()
    app.deliver("comment", command(python="3.10"), sender="stranger")
    app.hub.fail(AWAY, "react")
    app.deliver("comment", command("cancel"), sender="max")
    app.deliver("comment", command(python="3.11"), sender="stranger")
    app.resume()
    newest, oldest = app.runs()
    assert (newest.state, oldest.verdict) == (RunState.WAITING, "cancelled")


def test_a_command_stops_only_what_was_asked_for_before_it():
    app = App()
    app.deliver("comment", command(python="3.10"), sender="stranger")
    late = NOW - timedelta(minutes=1)
    delivery = app.deliver("comment", command("cancel"), sender="max", received_at=late)
    assert [run.state for run in app.runs()] == [RunState.WAITING]
    assert app.reactions(delivery) == {"confused"}


def test_an_approval_that_is_looked_at_twice_is_one():
    app = App()
    app.deliver("comment", command(), sender="passer-by")
    (run,) = app.runs()
    app.hub.fail(AWAY, "react")
    approval = command("approve", run.plan)
    delivery = app.deliver("comment", approval, sender="max")
    app.hub.repository("acme/lib").permissions["max"] = "none"
    app.resume()
    assert [run.verdict for run in app.runs()] == ["reproduced"]
    assert app.reactions(delivery) == {"+1"}


def test_the_same_body_under_another_id_does_nothing_again():
    app = App()
    opened = app.deliver(digest="a" * 64)
    asked = app.deliver("comment", command(seed=7), command("help"), sender="max", digest="b" * 64)
    writes = len(app.hub.writes)
    for delivery in (opened, asked):
        again(app, delivery)
    assert len(app.runs()) == 2
    assert {write.what for write in app.hub.writes[writes:]} <= {"react"}
    gone = app.deliver("gone", issue=None, digest="c" * 64)
    app.deliver("comment", command(python="3.12"), sender="stranger")
    again(app, gone)
    assert app.runs()[0].state is RunState.WAITING


def test_an_issue_opened_with_a_trigger_label_runs_once():
    app = App(config="triggers:\n  labels: [bug]\ndefaults:\n  proofs: []\n")
    app.deliver()
    app.deliver("labeled", label="bug", sender="max")
    assert len(app.runs()) == 1
    app.deliver("labeled", label="bug", sender="max", received_at=NOW + timedelta(days=1))
    assert len(app.runs()) == 2, "set again a day later, it runs again"


@pytest.mark.parametrize(("sender", "runs"), [("reporter", 0), ("tria", 1), ("max", 1)])
def test_a_label_counts_only_from_those_who_may_set_it(sender, runs):
    app = App(config="triggers:\n  opened: off\n  labels: [bug]\n")
    app.deliver("labeled", label="bug", sender=sender)
    assert len(app.runs()) == runs


def test_plans_use_up_no_run_and_have_a_limit_of_their_own():
    app = App(config="quota:\n  repository: 2\n  plans: 3\ndefaults:\n  proofs: []\n")
    for number in range(5):
        app.deliver("comment", command(seed=number + 1), sender=f"stranger{number}")
    assert [run.state for run in app.runs()] == [RunState.WAITING] * 3
    assert "quota.plans" in app.ours()[-1]
    app.deliver("comment", command("cancel"), sender="stranger0")
    for seed in (10, 11, 12):
        app.deliver("comment", command(seed=seed), sender="max")
    done = [run for run in app.runs() if run.verdict == "reproduced"]
    assert len(done) == 2, "those with write permission have the whole quota"
    waiting = app.store.runs(states=(RunState.WAITING,))[0]
    app.deliver("comment", command("approve", waiting.plan), sender="max")
    assert app.store.run(waiting.id).state is RunState.WAITING, "an approval makes it a run"
    assert "quota.repository" in app.ours()[-1]


def test_a_run_that_was_stopped_before_it_began_uses_up_nothing():
    app = App(config="quota:\n  repository: 1\ndefaults:\n  proofs: []\n")
    start = start_one(app)
    app.store.cancel("max", run=start.id)
    app.service.handle(Task(kind="run", id=start.id), Event())
    app.deliver("comment", command(seed=3), sender="max")
    assert [each.verdict for each in app.runs()] == ["reproduced", "cancelled"]


@pytest.mark.parametrize(
    ("action", "trigger", "left"),
    [("deleted", "uninstalled", 0), ("suspend", "uninstalled", 1), ("removed", "gone", 0)],
)
def test_what_belongs_to_a_private_repository_goes_with_the_app(action, trigger, left):
    app = App()
    private = REPOSITORY.model_copy(update={"private": True})
    app.deliver("comment", command(seed=3), sender="max", repository=private)
    (run,) = app.runs()
    assert app.store.report(run.id) is not None
    where = None if trigger == "uninstalled" else private
    app.deliver(trigger, issue=None, repository=where, action=action)
    assert len(app.runs()) == left
    assert (app.store.report(run.id) is None) == (left == 0)


def test_what_is_public_stays_when_the_app_goes():
    app = App()
    app.deliver()
    app.deliver("uninstalled", issue=None, repository=None, action="deleted")
    assert [run.verdict for run in app.runs()] == ["reproduced"]


SHA = "0123456789abcdef0123456789abcdef01234567"


def test_an_approval_names_the_commit_that_the_plan_showed():
    app = App()
    commits = app.hub.repository("acme/lib").commits
    commits["heads/main"] = SHA
    app.deliver("comment", command(ref="main"), sender="stranger")
    (first,) = app.runs()
    (plan,) = app.ours()
    assert SHA in plan
    assert first.request.job.environment.ref == SHA
    commits["heads/main"] = SHA[::-1]
    app.deliver("comment", command(ref="main"), sender="another")
    second = app.runs()[0]
    assert second.request.plan != first.request.plan
    app.deliver("comment", command("approve", first.plan), sender="max")
    assert [job.environment.ref for job in app.worked] == [SHA]


def test_a_bare_hash_of_somebody_who_may_not_write_is_refused():
    """It may be that of a pull request, which GitHub keeps among a repository's commits."""
    app = App()
    app.hub.repository("acme/lib").commits |= {SHA: SHA, "tags/v1": SHA}
    app.deliver("comment", command(ref=SHA), sender="stranger")
    assert app.runs() == ()
    app.deliver("comment", command(ref="v1"), sender="stranger")
    assert [run.request.job.environment.ref for run in app.runs()] == [SHA]


def test_a_ref_that_names_no_commit_is_refused():
    app = App()
    delivery = app.deliver("comment", command(ref="nowhere"), sender="stranger")
    assert app.runs() == ()
    assert app.reactions(delivery) == {"confused"}
    assert "names no branch" in app.ours()[0]


FAILS = '```python\nimport lib\nlib.fit()\n```\n\n```\nTraceback (most recent call last):\n  File "a.py", line 2, in <module>\n    lib.fit()\nRuntimeError: no rows\n```\n'
WORKS = "\nThis works fine:\n\n```python\nimport lib\nlib.fit_slowly({})\n```\n"


def test_an_approval_covers_the_variant_that_should_work():
    """It runs beside a failure that was confirmed."""
    app = App()
    app.deliver("comment", command(), sender="stranger", body=FAILS + WORKS.format("'a'"))
    (first,) = app.runs()
    assert "lib.fit_slowly('a')" in app.ours()[0]
    app.deliver("comment", command(), sender="another", body=FAILS + WORKS.format("'b'"))
    assert app.runs()[0].request.plan != first.request.plan
    app.deliver("comment", command(), sender="third", body=FAILS)
    assert len({run.request.plan for run in app.runs()}) == 3
