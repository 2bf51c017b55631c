"""What a webhook delivery leads to: runs are cancelled, commands are carried out, or a run starts
automatically. Idempotent.
"""

import logging

from bot.models.config import Config
from bot.models.run import Delivery
from bot.render.replies import problems
from bot.service import app_context, publish
from bot.service.app_context import AppContext, IssueEvent
from bot.service.commands import Commands, stop
from bot.service.configuration import problem_key
from bot.service.ports import Target
from bot.service.ports.store import OurComment
from bot.service.run_requests import RunRequests, request

_log = logging.getLogger(__name__)


def handle(context: AppContext, delivery: Delivery) -> None:
    """Handle one delivery. Raises Throttled, Gone and TransientError: then it is retried."""
    store, repository, issue = context.store, delivery.repository, delivery.issue
    if delivery.trigger == "uninstalled":
        stop(context, store.cancel("GitHub (uninstalled)", installation=delivery.installation))
    elif repository is None:
        return
    elif delivery.trigger == "gone":
        number = issue.number if issue is not None else None
        by = "GitHub (removed)" if number is None else "GitHub (deleted)"
        stop(context, store.cancel(by, repository=repository.full_name, number=number))
    elif issue is not None and issue.number is not None:
        target = Target(installation=delivery.installation, repository=repository.full_name)
        off = context.switched_off(delivery.installation, repository)
        config = context.config(target) if not off else Config()
        _handle_issue(IssueEvent(context, delivery, issue, target, issue.number, config), off)


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
    context, config, target = event.context, event.config, event.target
    opened = event.delivery.trigger == "opened"
    person = event.issue.author if opened else event.delivery.sender
    asked = request(event, person)
    verdict = asked.plan.verdict
    no_bug = opened and verdict is not None and verdict.kind == "not_a_bug"
    if no_bug or _ignored(person, config):
        return False
    if limit := app_context.over_quota(context, config, target.repository, person):
        _log.info("%s#%d is not run: %s", target.repository, event.number, limit)
        return False
    if opened and not config.author_may_run and not app_context.writes(context, target, person):
        if config.outsiders == "approve" and verdict is None:
            RunRequests(event).wait(asked)
        return False
    RunRequests(event).start(asked)
    return True


def _report_problems(event: IssueEvent) -> None:
    context, where = event.context, event.target
    loaded = context.loaded(where)
    key = f"config:{problem_key(loaded.problems)}"
    if loaded.problems and context.store.comment(where.repository, 0, key) is None:
        publish.reply(context, where, event.number, key, problems(loaded.problems))
        note = OurComment(repository=where.repository, number=0, key=key, comment=0)
        context.store.put_comment(note)
