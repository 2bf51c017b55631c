"""What a webhook delivery leads to: runs are cancelled, commands are carried out, or a run starts
automatically. Idempotent: what was decided once is only completed.
"""

import logging
from collections.abc import Callable
from functools import partial

from bot.models.config import Config
from bot.models.run import Delivery
from bot.render.replies import problems
from bot.service import app_context, publish, pull_requests
from bot.service.app_context import AppContext, IssueEvent
from bot.service.carry_out import carry_out
from bot.service.commands import Commands
from bot.service.configuration import problem_key
from bot.service.ports import Target
from bot.service.ports.store import AppStore, Settled
from bot.service.run_requests import (
    RunRequest,
    among_first,
    may_run,
    may_wait,
    opened_twice,
    request,
    unshowable,
    without_model,
)

_log = logging.getLogger(__name__)


def handle(context: AppContext, delivery: Delivery) -> None:
    """Handle one delivery. Raises Throttled, Gone and TransientError: then it is retried."""
    repository, issue = delivery.repository, delivery.issue
    if delivery.trigger in {"uninstalled", "gone"}:
        carry_out(context, context.store.decide(delivery.cause, 0, partial(_end, delivery)))
    elif delivery.trigger == "closed":
        if repository is not None and issue is not None and issue.number is not None:
            pull_requests.close(context, repository, delivery.installation, issue.number)
    elif repository is not None and issue is not None and issue.number is not None:
        target = Target(installation=delivery.installation, repository=repository.full_name)
        off = context.switched_off(delivery.installation, repository)
        config = context.config(target) if not off else Config()
        _handle_issue(IssueEvent(context, delivery, issue, target, issue.number, config), off)


def _end(delivery: Delivery, ledger: AppStore) -> Settled:
    """Cancel the runs of an issue, a repository or an installation that is no more, and erase what
    is private of what the App has left for good: only what came before, because a delivery may be
    late and the App back.
    """
    repository, issue, where = delivery.repository, delivery.issue, delivery.installation
    before = delivery.received_at
    if delivery.trigger == "uninstalled":
        runs = ledger.cancel("GitHub (uninstalled)", installation=where, before=before)
        if delivery.action == "deleted":
            ledger.erase(where, before=before)
    elif repository is not None:
        number, name = issue.number if issue is not None else None, repository.full_name
        by = "GitHub (removed)" if number is None else "GitHub (deleted)"
        runs = ledger.cancel(by, repository=name, number=number, before=before)
        if issue is None:
            ledger.erase(where, repository.id, before=before)
    else:
        runs = ()
    return Settled(kind="cancelled", runs=tuple(run.id for run in runs))


def _handle_issue(event: IssueEvent, off: str) -> None:
    """Carry out commands, or start what the configuration starts automatically. `off` is the
    reason of an active kill switch.
    """
    if not event.config.enabled or _ignored(event.delivery.sender, event.config):
        return
    if event.delivery.trigger == "comment":
        asked = Commands(event).handle(off)
    else:
        asked = not off and _triggered(event.delivery, event.config) and _start(event)
    if asked:
        _report_problems(event)


def _ignored(login: str, config: Config) -> bool:
    return login.lower() in {name.lower() for name in config.ignore_authors}


def _triggered(delivery: Delivery, config: Config) -> bool:
    if delivery.trigger == "opened":
        return config.triggers.opened != "off" and not delivery.pull_request
    return delivery.label.lower() in {label.lower() for label in config.triggers.labels}


def _start(event: IssueEvent) -> bool:
    """Start or propose a run; True when it was started. What is no bug report, and what a limit
    forbids, gets no answer: nobody asked.
    """
    context, cause = event.context, event.delivery.cause
    outcome = context.store.outcome(cause, 0) or _decide(event)
    if outcome is None:
        return False
    if not outcome.runs:
        where = event.target.repository
        _log.info("%s#%d is not run: %s", where, event.number, outcome.text or "it runs already")
    carry_out(context, outcome)
    if outcome.kind == "unshown" and among_first(event):
        publish.reply(context, event.target, event.number, f"reply:{cause[:36]}", outcome.text)
    return outcome.kind == "queued"


def _decide(event: IssueEvent) -> Settled | None:
    """Whether this event starts a run, or proposes one; None when it asks for none."""
    context, config, opened = event.context, event.config, event.delivery.trigger == "opened"
    person = event.issue.author if opened else event.delivery.sender
    asked = request(event, person)
    verdict = asked.plan.verdict
    no_bug = opened and verdict is not None and verdict.kind == "not_a_bug"
    if no_bug or _ignored(person, config):
        return None
    if not opened and not app_context.labels(context, event.target, person):
        return None
    may: object = not opened or config.author_may_run
    if may or app_context.writes(context, event.target, person):
        act = partial(may_run, event, asked)
    elif config.outsiders == "approve" and not asked.plan.runs_nothing:
        asked = without_model(asked)
        act = partial(may_wait, event, asked, unshowable(event, asked))
    else:
        return None
    return context.store.decide(event.delivery.cause, 0, partial(_once, event, asked, act))


def _once(
    event: IssueEvent, asked: RunRequest, act: Callable[[AppStore], Settled], ledger: AppStore
) -> Settled:
    return Settled() if opened_twice(event, asked, ledger) else act(ledger)


def _report_problems(event: IssueEvent) -> None:
    """Say once what is wrong with the configuration, on the first issue that asks for a run."""
    context, where = event.context, event.target
    loaded = context.loaded(where)
    if not loaded.problems:
        return
    key, cause = f"config:{problem_key(loaded.problems)}", event.delivery.cause
    first = context.store.decide(f"{where.repository}:{key}", 0, lambda _: Settled(text=cause))
    if first.text == cause:
        publish.reply(context, where, event.number, key, problems(loaded.problems))
