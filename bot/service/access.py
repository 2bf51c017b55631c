"""Who may do what: asked from GitHub each time, and no on any doubt."""

from __future__ import annotations

import logging

from bot.errors import TransientError, UserError
from bot.models.config import Config
from bot.service.office import Office
from bot.service.ports import WRITERS, Target, Throttled

_log = logging.getLogger(__name__)


def writes(office: Office, where: Target, login: str) -> bool:
    """Whether someone has write permission. An error is a no; being asked to wait is neither, and goes on to the caller."""
    try:
        return office.github.permission(where, login) in WRITERS
    except Throttled:
        raise
    except (TransientError, UserError) as error:
        _log.warning("permission of a commenter on %s is unknown, taken for none: %s", where.repository, error)
        return False


def over_quota(office: Office, config: Config, repository: str, person: str) -> str:
    """Which limit another run would pass, as a sentence; "" when none."""
    day, store, house = office.day(), office.store, office.house
    whole = store.usage(day)
    if whole.runs >= house.daily_runs or whole.seconds >= house.daily_minutes * 60 or 0 < house.daily_usd <= whole.usd:
        return "This host has reached its limit for today; it starts anew at 00:00 UTC."
    here = store.usage(day, repository=repository)
    if here.runs >= config.quota.repository:
        return f"This repository has had its {config.quota.repository} runs for today (`quota.repository`)."
    if here.seconds >= config.quota.minutes * 60:
        return f"This repository has used its {config.quota.minutes} minutes of compute for today (`quota.minutes`)."
    if store.usage(day, repository=repository, requester=person).runs >= config.quota.person:
        return f"You have had your {config.quota.person} runs for today in this repository (`quota.person`)."
    return ""
