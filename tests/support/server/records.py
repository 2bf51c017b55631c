"""What a GitHub keeps: users, the App and its installations, repositories, issues, comments,
tokens, hook deliveries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Json = dict[str, Any]
Kind = Literal["User", "Bot", "Organization"]


def now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A moment as GitHub writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class User:
    """An account."""

    id: int
    login: str
    type: Kind = "User"


@dataclass(slots=True)
class App:
    """The one App of this GitHub. `key` is its private key as PEM; `webhook` where deliveries
    go, "" for nowhere.
    """

    id: int
    slug: str
    name: str
    owner: str
    key: str
    secret: str
    permissions: dict[str, str]
    events: list[str]
    webhook: str = ""
    created_at: datetime = field(default_factory=now)

    @property
    def login(self) -> str:
        """Who writes."""
        return f"{self.slug}[bot]"


@dataclass(slots=True)
class Installation:
    """The App on one account. `repositories` are full names."""

    id: int
    account: str
    repositories: list[str]
    permissions: dict[str, str]
    suspended: bool = False
    created_at: datetime = field(default_factory=now)


@dataclass(slots=True)
class Label:
    """A label of a repository. `color` without the #."""

    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(slots=True)
class Reaction:
    """One reaction of one person."""

    id: int
    user: str
    content: str
    created_at: datetime = field(default_factory=now)


@dataclass(slots=True)
class Issue:
    """An issue or pull request. `labels` are names."""

    id: int
    number: int
    title: str
    body: str | None
    author: str
    created_at: datetime
    updated_at: datetime
    labels: list[str] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    pull_request: bool = False
    state: Literal["open", "closed"] = "open"
    locked: bool = False


@dataclass(slots=True)
class Edit:
    """What a comment said from a moment on."""

    at: datetime
    body: str


@dataclass(slots=True)
class Comment:
    """A comment on an issue. `app` when it was written by the App; `history` holds every body it
    had, the first one first.
    """

    id: int
    repository: str
    number: int
    author: str
    body: str
    app: bool
    created_at: datetime
    updated_at: datetime
    history: list[Edit] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(slots=True)
class Pull:
    """What a pull request has beside its issue, which holds its number, title, body and state."""

    number: int
    branch: str
    base: str
    draft: bool
    merged_at: datetime | None = None


@dataclass(slots=True)
class Repository:
    """A repository. `roles` maps logins in lower case to role names; `bases` what an
    organisation's own role amounts to. `drafts` is whether its plan has draft pull requests.
    """

    id: int
    full_name: str
    private: bool
    default_branch: str
    created_at: datetime = field(default_factory=now)
    labels: dict[str, Label] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)
    fork: bool = False
    archived: bool = False
    drafts: bool = True

    @property
    def owner(self) -> str:
        """The part of the name before the slash."""
        return self.full_name.partition("/")[0]

    @property
    def name(self) -> str:
        """The part of the name after the slash."""
        return self.full_name.partition("/")[2]


@dataclass(slots=True)
class Token:
    """An installation token. `repositories` are full names, None for all of the installation."""

    value: str
    installation: int
    repositories: list[str] | None
    permissions: dict[str, str]
    expires_at: datetime


@dataclass(slots=True)
class HookDelivery:
    """One try to deliver an event. `status_code` 0: nobody answered."""

    id: int
    guid: str
    event: str
    payload: Json
    raw: bytes
    delivered_at: datetime
    redelivery: bool = False
    status_code: int = 0
    status: str = "pending"
    duration: float = 0.0
    answer: str = ""
