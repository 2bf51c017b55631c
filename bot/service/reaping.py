"""What dead workers and lost messages left: offered again, from the store; and deliveries that never arrived, from GitHub."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from bot.service.office import Office
from bot.service.ports import Hook

_log = logging.getLogger(__name__)
_LOOK_BACK = timedelta(days=2)  # GitHub keeps deliveries for three
_UNDER_WAY = timedelta(seconds=30)  # GitHub waits ten for an answer
_MOST = 50
_TRIES = 5  # what we refuse that often (a wrong secret, say) will not get better by sending it again


def reap(office: Office) -> int:
    """Offer again what waits unheard or was left by the dead; returns how many."""
    overdue = office.store.overdue(office.house.unheard_s)
    for task in overdue:
        _log.info("offered again: %s %s, turn %d", task.kind, task.id, task.turn)
        office.queue.offer(task)
    return len(overdue)


def reconcile(office: Office, grace: timedelta = _UNDER_WAY) -> int:
    """Have GitHub send again what we never took in; returns how many. Those tried within `grace` may still be under way."""
    now = datetime.fromtimestamp(office.now(), UTC)
    tries: dict[str, list[Hook]] = {}
    for hook in sorted(office.github.hooks(now - _LOOK_BACK), key=lambda each: each.at):
        tries.setdefault(hook.guid, []).append(hook)
    failed = [each for each in tries.values() if not any(hook.ok for hook in each) and len(each) < _TRIES]
    missed = [each[-1] for each in failed if each[-1].at <= now - grace]
    seen = office.store.seen([hook.guid for hook in missed])
    asked = [hook for hook in missed if hook.guid not in seen][:_MOST]
    for hook in asked:
        _log.info("asked GitHub for delivery %s (%s) again", hook.guid, hook.event)
        office.github.redeliver(hook.id)
    return len(asked)


def prune(office: Office) -> int:
    """Forget what is older than the host keeps."""
    return office.store.prune(datetime.fromtimestamp(office.now(), UTC) - timedelta(days=office.house.keep_days))
