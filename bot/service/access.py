"""Permissions and quotas. GitHub is asked each time; any doubt means no."""

import logging

from bot.errors import TransientError, UserError
from bot.models.config import Config
from bot.service.app_context import AppContext
from bot.service.ports.github import WRITERS, Target, Throttled

_log = logging.getLogger(__name__)


def writes(context: AppContext, where: Target, login: str) -> bool:
    """Whether someone has write permission. An error means no; Throttled goes to the caller."""
    try:
        return context.github.permission(where, login) in WRITERS
    except Throttled:
        raise
    except (TransientError, UserError) as error:
        _log.warning(
            "assuming no permission on %s, which could not be read: %s", where.repository, error
        )
        return False


def over_quota(context: AppContext, config: Config, repository: str, person: str) -> str:
    """The limit that another run would exceed, as a sentence; "" when there is none."""
    day, store, policy, quota = context.day(), context.store, context.policy, config.quota
    total = store.usage(day)
    too_expensive = 0 < policy.daily_usd <= total.usd
    too_long = total.seconds >= policy.daily_minutes * 60
    if total.runs >= policy.daily_runs or too_long or too_expensive:
        return "This host has reached its daily limit, which resets at 00:00 UTC."
    here = store.usage(day, repository=repository)
    own = store.usage(day, repository=repository, requester=person)
    limits = (
        (here.runs, quota.repository, "This repository has", "its", "runs", "repository"),
        (here.seconds / 60, quota.minutes, "This repository has", "its", "minutes", "minutes"),
        (own.runs, quota.person, "You have", "your", "runs", "person"),
    )
    for used, limit, who, whose, unit, key in limits:
        if used >= limit:
            return f"{who} reached {whose} limit of {limit} {unit} a day (`quota.{key}`)."
    return ""
