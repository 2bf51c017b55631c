"""A webhook's body → the deliveries to store, or the reason why there are none."""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AliasPath, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bot.kernel.bug import MOST_BODY, Issue
from bot.kernel.run import Command, Delivery, Repository, Trigger
from handlers import commands

# The few fields of GitHub's webhook payloads that we read; all others are ignored.
#
# Source: https://docs.github.com/webhooks/webhook-events-and-payloads. An account is null when it
# was deleted ("ghost"), a body when nothing was written.

DatabaseId = Annotated[int, Field(ge=0, lt=2**63)]  # what a database can hold
WriterId = Annotated[  # the GitHub App through which something was written
    DatabaseId | None, Field(validation_alias=AliasPath("performed_via_github_app", "id"))
]
RepositoryName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$")
]
Login = Annotated[str, StringConstraints(max_length=100)]


class _Part(BaseModel):
    """`extra="ignore"` rather than "allow": a payload has about 200 more fields, and none
    is used.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class PayloadAccount(_Part):
    """A person, a bot or an organisation."""

    login: Login = ""
    type: str = ""

    @property
    def bot(self) -> bool:
        """Whether this account is not a person."""
        return self.type == "Bot" or self.login.lower().endswith("[bot]")


class PayloadLabel(_Part):
    """A label of an issue."""

    name: str | None = None


class PayloadRepository(_Part):
    """A repository, whole or in the short form of installation events."""

    id: DatabaseId
    full_name: RepositoryName
    private: bool | None = None
    default_branch: str | None = None
    clone_url: str | None = None


class PayloadIssue(_Part):
    """An issue; `pull_request` is set if it is one."""

    number: DatabaseId
    title: str | None = None
    body: str | None = None
    user: PayloadAccount | None = None
    created_at: datetime | None = None
    labels: tuple[PayloadLabel | None, ...] | None = None
    html_url: str | None = None
    pull_request: object = None
    app_id: WriterId = None


class PayloadComment(_Part):
    """A comment on an issue or a pull request."""

    id: DatabaseId
    body: str | None = None
    user: PayloadAccount | None = None
    app_id: WriterId = None


class Payload(_Part):
    """A delivery's body. Its parts depend on the event; `before` is the text before an edit. What
    else stands beside them tells which event it is.
    """

    model_config = ConfigDict(extra="allow")

    action: str = ""
    sender: PayloadAccount | None = None
    installation: DatabaseId | None = Field(None, validation_alias=AliasPath("installation", "id"))
    repository: PayloadRepository | None = None
    issue: PayloadIssue | None = None
    comment: PayloadComment | None = None
    label: str | None = Field(None, validation_alias=AliasPath("label", "name"))
    before: str | None = Field(None, validation_alias=AliasPath("changes", "body", "from"))
    repositories_removed: tuple[PayloadRepository, ...] | None = None

    def beside(self, fields: frozenset[str]) -> bool:
        """Whether anything stands here that these parts do not include."""
        return not fields >= ({*self.model_fields_set, *(self.model_extra or ())} - _EVERYWHERE)


_EVERYWHERE = frozenset(
    {"action", "sender", "installation", "organization", "enterprise", "repository"}
)

# A pair of halves is one character; any other escape is matched so that its backslash is not taken
# for the next one's.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2}|0000)|.)",
    re.DOTALL,
)
_ODD = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")


def parse(body: bytes) -> Payload | str:
    """The payload, or one line on why the body is none, without any of its text."""
    try:
        return Payload.model_validate_json(_storable(body) if _ODD.search(body) else body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where or 'the body'} is not usable ({first['type']})"


def _storable(body: bytes) -> bytes:
    """JSON can name half a character, and a NUL; such a text could be neither stored nor shown."""
    return _ESCAPE.sub(lambda match: match.group() if match.group(1) is None else rb"\ufffd", body)


CONCERNS: dict[tuple[str, str], Trigger] = {
    ("issues", "opened"): "opened",
    ("issues", "labeled"): "labeled",
    ("issues", "closed"): "closed",
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

_ENDS: frozenset[Trigger] = frozenset({"closed", "gone", "uninstalled"})
MAX_REPOSITORIES = 5_000  # that one delivery may remove from an installation
_MAX_TITLE = 1_024  # GitHub's own limit is 256
_NEEDED = {  # the parts without which an event means nothing
    "issues": ("repository", "issue"),
    "issue_comment": ("repository", "issue", "comment"),
    "repository": ("repository",),
    "installation_repositories": ("repositories_removed",),
}
_BESIDE = {  # all that these events, which end runs, hold besides what every event holds
    "repository": frozenset({"changes", "before"}),
    "installation": frozenset({"repositories", "requester"}),
    "installation_repositories": frozenset(
        {"repositories_added", "repositories_removed", "repository_selection", "requester"}
    ),
}
_URL = re.compile(r"https?://[^\s@]{1,500}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """How our own App shows in payloads; `slug` "" and `app_id` None before it is registered.
    `installation` is assumed where a payload names none, as the events of a workflow do.
    """

    app_id: int | None = None
    slug: str = ""
    installation: int | None = None

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
    # An end counts, no matter who caused it.
    return "" if trigger in _ENDS else _of_people(trigger, payload, identity)


def _of_people(trigger: Trigger, payload: Payload, identity: AppIdentity) -> str:
    """Only people start work: never bots, and never the App itself."""
    sender = payload.sender
    if sender is None or not sender.login:
        return "it names no sender"
    item = {"opened": payload.issue, "comment": payload.comment}.get(trigger)
    through = item.app_id if item else None
    ours = identity.is_account(sender) or (through is not None and through == identity.app_id)
    by_bot = bool(item and item.user and item.user.bot)
    what = "issue" if trigger == "opened" else "comment"
    reasons = (
        (ours, "the App wrote it itself"),
        (sender.bot, "a bot sent it"),
        (by_bot, f"a bot wrote the {what}"),
        (trigger == "labeled" and not payload.label, "the label has no name"),
    )
    return next((reason for applies, reason in reasons if applies), "")


@dataclass(frozen=True, slots=True)
class IgnoredDelivery:
    """A valid delivery that asks for nothing; `reason` is a clause."""

    reason: str


@dataclass(frozen=True, slots=True)
class InvalidPayload:
    """A body that GitHub would not send; `reason` never quotes it."""

    reason: str


def parse_event(
    event: str, guid: str, body: bytes, now: datetime, identity: AppIdentity
) -> tuple[Delivery, ...] | IgnoredDelivery | InvalidPayload:
    """What a delivery asks for, never empty. Only one that takes several repositories away
    yields several: the first bears `guid` itself, the n-th `guid.n`.
    """
    if event not in EVENTS:
        return IgnoredDelivery("pong" if event == "ping" else "Reprise does not handle this event")
    payload = parse(body)
    if isinstance(payload, str):
        return InvalidPayload(payload)
    if payload.installation is None and identity.installation is not None:
        payload = payload.model_copy(update={"installation": identity.installation})
    if reason := refusal(event, payload, identity):
        return IgnoredDelivery(reason)
    if _of_another(event, payload):
        return InvalidPayload("the body belongs to another event")
    for part in _NEEDED.get(event, ()):
        if getattr(payload, part) is None:
            return InvalidPayload(f"{part} is missing")
    commands_of_comment = _commands(payload) if event == "issue_comment" else ()
    if event == "issue_comment" and not commands_of_comment:
        return IgnoredDelivery("the comment contains no command")
    first = _delivery(event, guid, payload, now).model_copy(
        update={"commands": commands_of_comment, "digest": hashlib.sha256(body).hexdigest()}
    )
    return _each_removed(first, payload) if event == "installation_repositories" else (first,)


def _of_another(event: str, payload: Payload) -> bool:
    """Whether a body belongs to another event than the header says: only the body is signed."""
    if event not in _BESIDE:
        return event == "issues" and payload.comment is not None
    whole = event == "installation" and payload.repository is not None
    return whole or payload.beside(_BESIDE[event])


def _delivery(event: str, guid: str, payload: Payload, now: datetime) -> Delivery:
    assert payload.installation is not None
    repository, issue = payload.repository, payload.issue
    return Delivery(
        guid=guid,
        event=event,
        action=payload.action,
        trigger=CONCERNS[event, payload.action],
        installation=payload.installation,
        repository=_repository(repository) if repository else None,
        issue=_issue(issue, repository) if issue and repository else None,
        pull_request=bool(issue and issue.pull_request),
        sender=payload.sender.login if payload.sender else "",
        label=(payload.label or "") if payload.action == "labeled" else "",
        comment=payload.comment.id if payload.comment else None,
        received_at=now,
    )


def _each_removed(first: Delivery, payload: Payload) -> tuple[Delivery, ...] | IgnoredDelivery:
    repositories = (payload.repositories_removed or ())[:MAX_REPOSITORIES]
    deliveries = tuple(
        first.model_copy(
            update={
                "repository": _repository(repo),
                "guid": first.guid if number == 1 else f"{first.guid}.{number}",
                "digest": f"{first.digest}.{number}",
            }
        )
        for number, repo in enumerate(repositories, 1)
    )
    return deliveries or IgnoredDelivery("it names no repository")


def _commands(payload: Payload) -> tuple[Command, ...]:
    """The commands of a new comment; of an edited one, those that its earlier text did not have
    (none if the payload lacks that text).
    """
    after = _whole_lines(payload.comment.body or "") if payload.comment else ""
    if payload.action == "created":
        return commands.parse(after)
    author = payload.comment.user.login if payload.comment and payload.comment.user else None
    if payload.sender is None or author != payload.sender.login:
        return ()  # editing someone else's comment requests nothing
    return (
        commands.added_commands(_whole_lines(payload.before), after)
        if payload.before is not None
        else ()
    )


def _whole_lines(text: str) -> str:
    """At most MOST_BODY characters of a comment; half a line may be another command."""
    return text if len(text) <= MOST_BODY else text[:MOST_BODY].rpartition("\n")[0]


def _repository(repo: PayloadRepository) -> Repository:
    return Repository(
        id=repo.id,
        full_name=repo.full_name,
        private=bool(repo.private),
        default_branch=repo.default_branch or "main",
        clone_url=_address(repo.clone_url),
    )


def _issue(issue: PayloadIssue, repo: PayloadRepository) -> Issue:
    created = issue.created_at
    return Issue(
        title=(issue.title or "")[:_MAX_TITLE],
        body=(issue.body or "")[:MOST_BODY],
        repository=repo.full_name,
        number=issue.number,
        author=issue.user.login if issue.user and issue.user.login else "ghost",
        created_at=created.replace(tzinfo=UTC) if created and created.tzinfo is None else created,
        labels=tuple(label.name for label in issue.labels or () if label and label.name),
        url=_address(issue.html_url),
        clone_url=_address(repo.clone_url),
    )


def _address(url: str | None) -> str:
    """A web address without credentials, else ""."""
    return url if url and _URL.fullmatch(url) else ""
