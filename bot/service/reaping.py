"""Recovery: tasks of dead workers and lost messages are offered again, deliveries that never
arrived are requested from GitHub, and old data is deleted.
"""

import logging
from datetime import UTC, datetime, timedelta

from bot.service.app_context import AppContext
from bot.service.ports.github import Hook

_log = logging.getLogger(__name__)
_LOOK_BACK = timedelta(days=2)  # GitHub keeps deliveries for three
_IN_FLIGHT = timedelta(seconds=30)  # GitHub waits ten for an answer
_MOST = 50
_TRIES = 5  # a delivery that we refuse that often (a wrong secret, say) is not sent again


def reap(context: AppContext) -> int:
    """Offer overdue tasks again; returns how many."""
    overdue = context.store.overdue(context.policy.unheard_s)
    for task in overdue:
        _log.info("offered again: %s %s, turn %d", task.kind, task.id, task.turn)
        context.queue.offer(task)
    return len(overdue)


def reconcile(context: AppContext, grace: timedelta = _IN_FLIGHT) -> int:
    """Ask GitHub to resend deliveries that we never stored; returns how many. Attempts younger
    than `grace` may still be in flight.
    """
    now = datetime.fromtimestamp(context.now(), UTC)
    tries: dict[str, list[Hook]] = {}
    for hook in sorted(context.github.hooks(now - _LOOK_BACK), key=lambda hook: hook.at):
        tries.setdefault(hook.guid, []).append(hook)
    failed = [
        hooks
        for hooks in tries.values()
        if not any(hook.ok for hook in hooks) and len(hooks) < _TRIES
    ]
    missed = [hooks[-1] for hooks in failed if hooks[-1].at <= now - grace]
    seen = context.store.seen([hook.guid for hook in missed])
    asked = [hook for hook in missed if hook.guid not in seen][:_MOST]
    for hook in asked:
        _log.info("asked GitHub for delivery %s (%s) again", hook.guid, hook.event)
        context.github.redeliver(hook.id)
    return len(asked)


def prune(context: AppContext) -> int:
    """Delete what is older than the host keeps."""
    return context.store.prune(
        datetime.fromtimestamp(context.now(), UTC) - timedelta(days=context.policy.keep_days)
    )
