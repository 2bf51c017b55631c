"""What GitHub refuses: credentials wait loudly, a verdict that cannot be posted stays a verdict,
and a comment that came late is deleted.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from bot.app import publish
from bot.app.context import AppContext
from bot.app.github.writes import CredentialsAlarm, WriteLimit
from bot.app.ports import ALARM_S, CREDENTIALS_ALARM, CredentialsRefused, GoneError, Throttled
from bot.app.worker import Service, probe, reap, reconcile
from bot.kernel.errors import TransientError, UserError
from bot.kernel.run import RunState
from bot.report import replies
from bot.report.html import view
from tests.unit.test_service import NOW, REPOSITORY, WHERE, App, command

REFUSED = CredentialsRefused("GitHub refuses POST /app/x (401).", "Check REPRISE_APP_ID.")


def watched(app):
    """The App with the GitHub that raises alarms."""
    hub = app.hub.hooked(CredentialsAlarm(app.store))
    app.service = Service(AppContext(app.store, app.queue, hub, app._engine, app.house))
    return app


@pytest.mark.parametrize("method", ["file", "permission", "react", "create_comment"])
def test_refused_credentials_wait_loudly_and_lose_nothing(method, caplog):
    app = watched(App())
    app.hub.fail(REFUSED, method, times=60)
    delivery = app.deliver("comment", command(seed=3), sender="max")
    for _ in range(25):  # more than anything is tried that is counted
        app.resume()
    if method == "file":  # nothing else has succeeded since
        assert app.store.shared(CREDENTIALS_ALARM, ALARM_S).startswith("GitHub refuses POST")
    assert "Check REPRISE_APP_ID" in caplog.text
    assert app.store.counts()["deliveries.failed"] == 0
    app.hub._failures.clear()
    app.resume()
    app.resume()
    assert [run.verdict for run in app.runs()] == ["reproduced"]
    assert "+1" in app.reactions(delivery)
    assert app.store.shared(CREDENTIALS_ALARM, ALARM_S) == ""


def test_a_private_run_waits_for_its_token_however_long():
    app = watched(App())
    private = {"id": 7, "full_name": "acme/lib", "clone_url": "https://github.com/acme/lib.git"}
    app.hub.fail(REFUSED, "clone_token", times=30)
    repository = type(app.deliver("gone").repository)(**private, private=True)
    app.deliver("comment", command(seed=3), sender="max", repository=repository)
    for _ in range(35):
        app.resume()
    assert [run.verdict for run in app.runs()] == ["reproduced"]


def test_asking_for_missed_deliveries_raises_the_alarm_too():
    app = watched(App())
    app.hub.fail(REFUSED, "hooks")
    with pytest.raises(CredentialsRefused):
        reconcile(app.service.context)
    assert app.store.shared(CREDENTIALS_ALARM, ALARM_S)
    reconcile(app.service.context)
    assert app.store.shared(CREDENTIALS_ALARM, ALARM_S) == ""


@pytest.mark.parametrize("method", ["file", "clone_token"])
def test_what_waited_is_due_once_github_accepts_the_credentials(method):
    app = watched(App())
    app.hub.fail(REFUSED, method, times=6)
    private = REPOSITORY.model_copy(update={"private": True})
    app.deliver("comment", command(seed=3), sender="max", repository=private)
    app.queue.close()  # its queue is lost with the process
    reap(app.service.context)
    app.queue.drain(app.service.handle)
    assert [run.verdict for run in app.runs()] in ([], [""]), "the alarm is up"
    app.hub._failures.clear()
    probe(app.service.context)
    reap(app.service.context)
    app.queue.drain(app.service.handle)
    assert [run.verdict for run in app.runs()] == ["reproduced"]


def test_an_alarm_that_a_write_raised_is_taken_back_too():
    app = App()
    hub = app.hub.hooked(WriteLimit(app.store), CredentialsAlarm(app.store))
    hub.permission(WHERE, "max")
    app.hub.issue("acme/lib", 3)
    app.hub.fail(REFUSED, "react")
    with pytest.raises(CredentialsRefused):
        hub.react(WHERE, 3, None, "eyes")
    assert app.store.shared(CREDENTIALS_ALARM, ALARM_S)
    hub.hooks(NOW)
    assert app.store.shared(CREDENTIALS_ALARM, ALARM_S) == ""


def test_github_is_probed_only_while_it_refuses():
    app = watched(App())
    probe(app.service.context)
    assert app.hub.calls == []
    app.hub.fail(REFUSED, "hooks", times=2)
    with pytest.raises(CredentialsRefused):
        reconcile(app.service.context)
    with pytest.raises(CredentialsRefused):
        probe(app.service.context)
    probe(app.service.context)
    assert app.store.shared(CREDENTIALS_ALARM, ALARM_S) == ""


def test_what_github_does_not_know_at_first_is_asked_for_again():
    app = App()
    app.hub.fail(
        GoneError("POST /app/installations/1/access_tokens is not available"), "file", times=2
    )
    app.deliver("comment", command(seed=3), sender="max")
    assert app.runs() == ()
    app.resume()
    app.resume()
    assert [run.verdict for run in app.runs()] == ["reproduced"]


LOCKED = UserError("GitHub refuses POST (403): Unable to create comment because issue is locked.")


@pytest.mark.parametrize("error", [LOCKED, TransientError("GitHub answered with status 502.")])
def test_a_verdict_that_cannot_be_posted_is_shown_elsewhere(error):
    app = App()
    app.hub.fail(error, "create_comment", times=100)
    app.deliver()
    for _ in range(25):
        app.resume(5000.0)
    (run,) = app.runs()
    assert (run.state, run.verdict) == (RunState.FINISHED, "reproduced")
    assert str(error).rstrip(".") in run.error
    shown = replies.status([run], lambda run: "https://reprise.example")
    assert "**Reproduced**; could not be posted on the issue: GitHub" in shown
    page = view(
        run,
        app.store.report(run.id),
        (),
        github_url="https://github.com",
        now=datetime.now(UTC),
    )
    assert "could not be posted on the issue" in "".join(map(str, page.request))
    assert "Reproduced" in str(page.document)
    assert "bug in Reprise" not in str(page)


def test_a_report_that_is_too_large_to_show_is_said_to_be():
    app = App()
    app.deliver()
    (run,) = app.runs()
    page = view(run, None, (), github_url="https://github.com", now=datetime.now(UTC))
    assert "The report is too large to show" in str(page.document)
    assert "`/reproduce`" in str(page.document)


def test_a_label_that_is_refused_costs_no_verdict(caplog):
    app = App()
    app.hub.fail(LOCKED, "labels")
    app.deliver()
    (run,) = app.runs()
    assert (run.state, run.verdict, run.error) == (RunState.FINISHED, "reproduced", "")
    assert "not all that goes with it" in caplog.text


def test_a_comment_that_came_after_our_timeout_is_deleted_at_the_next_look():
    app = App()
    marker = "<!-- reprise:run -->"
    app.deliver()
    (first,) = app.hub.ours("acme/lib", 3)
    late = app.hub.comment("acme/lib", 3, app.hub.login, f"{marker}\nlate")
    quoted = app.hub.comment("acme/lib", 3, "mona", f"{marker}\nquoted")
    app.deliver("comment", command(seed=4), sender="max")
    assert [comment.id for comment in app.hub.ours("acme/lib", 3)] == [first.id]
    assert late not in app.hub.comments
    assert quoted in app.hub.comments


TIMEOUT = TransientError("api.github.com did not answer within 20 s.")
LATE = [
    ("run", "reporter", command()),
    ("plan:", "stranger", command(python="3.10")),
    ("reply:", "max", command("help")),
]


def late(app, key):
    """GitHub carries out the request that we had given up waiting for."""
    mine = next(each for each in app.hub.ours("acme/lib", 3) if f"reprise:{key}" in each.body)
    return app.hub.comment("acme/lib", 3, app.hub.login, mine.body)


def swept(app):
    """How often GitHub is asked for comments by the periodic look."""
    before = app.hub.calls.count("find_comments")
    publish.sweep_due(app.another().context)
    return app.hub.calls.count("find_comments") - before


@pytest.mark.parametrize(("key", "sender", "asked"), LATE)
@pytest.mark.parametrize("error", [TIMEOUT, SystemExit()], ids=["timeout", "killed"])
def test_a_comment_that_came_after_the_end_is_deleted_by_one_look(key, sender, asked, error):
    app = App(beat_s=60.0)
    app.hub.fail(error, "create_comment")
    with suppress(SystemExit):
        app.deliver("comment", asked, sender=sender)
    app.resume(30.0)
    app.resume(60.0)
    (body,) = app.ours()
    assert f"reprise:{key}" in body
    second = late(app, key)
    assert swept(app) == 0, "it is not due"
    app.ahead += 400
    assert swept(app) == 1
    assert app.ours() == [body]
    assert second not in app.hub.comments
    app.ahead += 4000
    assert swept(app) == 0


@pytest.mark.parametrize(("key", "sender", "asked"), LATE)
@pytest.mark.parametrize("error", [None, Throttled("wait", 60.0)])
def test_where_github_answered_nothing_is_looked_for(key, sender, asked, error):
    app = App()
    if error is not None:
        app.hub.fail(error, "create_comment")
    app.deliver("comment", asked, sender=sender)
    app.resume(100.0)
    assert len(app.ours()) == 1
    app.ahead += 4000
    assert swept(app) == 0


def test_a_look_that_fails_is_made_again_and_an_issue_that_is_gone_is_left():
    app = App()
    app.hub.fail(TIMEOUT, "create_comment")
    app.deliver("comment", command("help"), sender="max")
    app.resume()
    late(app, "reply:")
    app.ahead += 400
    app.hub.fail(TIMEOUT, "find_comments")
    assert (swept(app), len(app.ours())) == (1, 2)
    app.ahead += 400
    assert (swept(app), len(app.ours())) == (1, 1)
    app.hub.fail(TIMEOUT, "create_comment")
    app.deliver("comment", command("help"), sender="max")
    app.resume()
    app.hub.fail(GoneError("GET comments is not available"), "find_comments")
    app.ahead += 400
    assert [swept(app), swept(app)] == [1, 0]


def test_two_comments_under_one_key_become_one():
    app = App()
    app.hub.issue("acme/lib", 3)
    for _ in range(2):
        app.hub.comment("acme/lib", 3, app.hub.login, "<!-- reprise:plan:1 -->\nold")
    publish.reply(app.service.context, WHERE, 3, "plan:1", "new")
    assert [body.partition("\n")[2] for body in app.ours()] == ["new"]
