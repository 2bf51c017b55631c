"""Which deliveries concern us, and why the others do not: a pure filter, applied before anything
is stored.
"""

from dataclasses import dataclass

from bot.models.delivery import Trigger
from handlers.payloads import Payload, PayloadAccount

CONCERNS: dict[tuple[str, str], Trigger] = {
    ("issues", "opened"): "opened",
    ("issues", "labeled"): "labeled",
    ("issues", "deleted"): "gone",
    ("issues", "transferred"): "gone",
    ("issue_comment", "created"): "comment",
    ("issue_comment", "edited"): "comment",
    ("repository", "deleted"): "gone",
    ("installation_repositories", "removed"): "gone",
    ("installation", "deleted"): "uninstalled",
    ("installation", "suspend"): "uninstalled",
}

EVENTS = frozenset(event for event, _ in CONCERNS)
"""Events whose payload is worth parsing."""

_ENDS: frozenset[Trigger] = frozenset({"gone", "uninstalled"})


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """How our own App shows in payloads; `slug` "" and `app_id` None before it is registered."""

    app_id: int | None = None
    slug: str = ""

    def is_account(self, account: PayloadAccount) -> bool:
        """Whether an account is our App's."""
        return bool(self.slug) and account.login.lower() == f"{self.slug.lower()}[bot]"


def refusal(event: str, payload: Payload, identity: AppIdentity) -> str:
    """Why a delivery is ignored, as a short clause; "" if Reprise handles it."""
    trigger = CONCERNS.get((event, payload.action))
    if trigger is None:
        return f"Reprise does not handle this {event} action"
    if payload.installation is None:
        return "it belongs to no installation of the App"
    if trigger in _ENDS:
        return ""  # an end counts, no matter who caused it
    return _of_people(trigger, payload, identity)


def _of_people(trigger: Trigger, payload: Payload, identity: AppIdentity) -> str:
    """Only people start work: never bots, and never the App itself."""
    sender = payload.sender
    if sender is None or not sender.login:
        return "it names no sender"
    written = {"opened": payload.issue, "comment": payload.comment}.get(trigger)
    through = written.app_id if written else None
    if identity.is_account(sender) or (through is not None and through == identity.app_id):
        return "the App wrote it itself"
    if sender.bot:
        return "a bot sent it"
    if written and written.user and written.user.bot:
        return "a bot wrote the issue" if trigger == "opened" else "a bot wrote the comment"
    if trigger == "labeled" and not payload.label:
        return "the label has no name"
    return ""
