"""A webhook's body → the deliveries to keep, or why there are none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.models.command import Command
from bot.models.delivery import Delivery, Repository
from bot.models.issue import Issue
from handlers import commands, payloads
from handlers.payloads import IssuePart, Payload, Repo
from handlers.policy import CONCERNS, EVENTS, Us, refusal

NOBODY = Us()
MOST_REPOSITORIES = 5_000  # that one delivery may take out of an installation
_MOST_BODY = 262_144  # GitHub's own limit is 65,536 characters
_MOST_TITLE = 1_024  # and 256
_URL = re.compile(r"https?://[^\s@]{1,500}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A delivery that is in order and asks for nothing; `reason` is a clause."""

    reason: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """A body that GitHub would not send; `reason` quotes none of it."""

    reason: str


def read(event: str, guid: str, body: bytes, now: datetime, us: Us = NOBODY) -> tuple[Delivery, ...] | Ignored | Malformed:
    """What a delivery asks for, never empty. Only one that takes several repositories away yields several: the first bears
    `guid` itself, the n-th `guid.n`.
    """
    if event not in EVENTS:
        return Ignored("pong" if event == "ping" else "this event is of no concern")
    payload = payloads.parse(body)
    if isinstance(payload, str):
        return Malformed(payload)
    if reason := refusal(event, payload, us):
        return Ignored(reason)
    missing = _missing(event, payload)
    return Malformed(f"{missing} is missing") if missing else _deliveries(event, guid, payload, now)


def _missing(event: str, payload: Payload) -> str:
    """The part without which an event means nothing, "" when all are there."""
    needed = {
        "issues": ("repository", "issue"),
        "issue_comment": ("repository", "issue", "comment"),
        "repository": ("repository",),
        "installation_repositories": ("repositories_removed",),
    }
    return next((part for part in needed.get(event, ()) if getattr(payload, part) is None), "")


def _deliveries(event: str, guid: str, payload: Payload, now: datetime) -> tuple[Delivery, ...] | Ignored:
    assert payload.installation is not None
    asked = _commands(payload) if event == "issue_comment" else ()
    if event == "issue_comment" and not asked:
        return Ignored("the comment holds no command")
    first = Delivery(
        guid=guid,
        event=event,
        action=payload.action,
        trigger=CONCERNS[event, payload.action],
        installation=payload.installation.id,
        repository=_repository(payload.repository) if payload.repository else None,
        issue=_issue(payload.issue, payload.repository) if payload.issue and payload.repository else None,
        pull_request=bool(payload.issue and payload.issue.pull_request),
        sender=payload.sender.login if payload.sender else "",
        label=(payload.label.name or "") if payload.label and payload.action == "labeled" else "",
        comment=payload.comment.id if payload.comment else None,
        commands=asked,
        received_at=now,
    )
    return _each_removed(first, payload) if event == "installation_repositories" else (first,)


def _each_removed(first: Delivery, payload: Payload) -> tuple[Delivery, ...] | Ignored:
    removed = (payload.repositories_removed or ())[:MOST_REPOSITORIES]
    guids = [first.guid, *(f"{first.guid}.{number}" for number in range(2, len(removed) + 1))]
    gone = zip(removed, guids, strict=False)
    deliveries = tuple(first.model_copy(update={"repository": _repository(repo), "guid": guid}) for repo, guid in gone)
    return deliveries or Ignored("it names no repository")


def _commands(payload: Payload) -> tuple[Command, ...]:
    """Those of a new comment; of an edited one those that its earlier text did not have (none when that is not told)."""
    after = (payload.comment.body or "")[:_MOST_BODY] if payload.comment else ""
    if payload.action == "created":
        return commands.parse(after)
    author = payload.comment.user.login if payload.comment and payload.comment.user else None
    if payload.sender is None or author != payload.sender.login:
        return ()  # who edits another's comment has not asked for what stands in it
    was = payload.changes.body if payload.changes else None
    return commands.added(was.before[:_MOST_BODY], after) if was and was.before is not None else ()


def _repository(repo: Repo) -> Repository:
    return Repository(
        id=repo.id,
        full_name=repo.full_name,
        private=bool(repo.private),
        default_branch=repo.default_branch or "main",
        clone_url=_address(repo.clone_url),
    )


def _issue(issue: IssuePart, repo: Repo) -> Issue:
    created = issue.created_at
    return Issue(
        title=(issue.title or "")[:_MOST_TITLE],
        body=(issue.body or "")[:_MOST_BODY],
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
