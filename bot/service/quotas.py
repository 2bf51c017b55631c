"""The daily limits of the host, a repository and a person, as they stand within one decision."""

from bot.models.config import Config
from bot.service.app_context import AppContext
from bot.service.ports.store import AppStore

_HOST = "This host has reached its daily limit, which resets at 00:00 UTC."
_Limit = tuple[float, int, str, str, str]


def over_host(context: AppContext, store: AppStore) -> str:
    """The host's limit that another run would exceed, as a sentence; "" when there is none."""
    policy, total = context.policy, store.usage(context.day())
    busy = total.runs >= policy.daily_runs or total.seconds >= policy.daily_minutes * 60
    return _HOST if busy or 0 < policy.daily_usd <= total.usd else ""


def over_quota(
    context: AppContext, store: AppStore, config: Config, repository: str, person: str = ""
) -> str:
    """The limit that another run would exceed, as a sentence; "" when there is none. The limit of
    one person counts where `person` is given.
    """
    quota, here = config.quota, store.usage(context.day(), repository=repository)
    limits: list[_Limit] = [
        (here.runs, quota.repository, "This repository has", "runs", "repository"),
        (here.seconds / 60, quota.minutes, "This repository has", "minutes", "minutes"),
    ]
    if person:
        own = store.usage(context.day(), repository=repository, requester=person)
        limits.append((own.runs, quota.person, "You have", "runs", "person"))
    return over_host(context, store) or _exceeded(limits)


def over_plans(
    context: AppContext, store: AppStore, config: Config, repository: str, person: str
) -> str:
    """The limit that another plan would exceed. Runs do not count here, nor plans as runs:
    neither keeps the other out.
    """
    quota, day = config.quota, context.day()
    here = store.usage(day, repository=repository).plans
    own = store.usage(day, repository=repository, requester=person).plans
    return _exceeded(
        [
            (here, quota.plans, "This repository has", "plans", "plans"),
            (own, quota.person, "You have", "plans", "person"),
        ]
    )


def _exceeded(limits: list[_Limit]) -> str:
    for used, limit, who, unit, key in limits:
        if used >= limit:
            whose = "your" if who.startswith("You") else "its"
            return f"{who} reached {whose} limit of {limit} {unit} a day (`quota.{key}`)."
    return ""
