"""The state of the fake: made through a few methods, read freely, safe to share between threads."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from threading import RLock
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.server.records import (
    App,
    Comment,
    Edit,
    HookDelivery,
    Installation,
    Issue,
    Json,
    Kind,
    Label,
    Reaction,
    Repository,
    Token,
    User,
    now,
)

PERMISSIONS = {"metadata": "read", "contents": "read", "issues": "write"}
EVENTS = ["issues", "issue_comment"]
TOKEN_LIFE = timedelta(hours=1)


@cache
def new_key() -> str:
    """An RSA key as PEM, made once a process: that takes half a second."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    plain = serialization.NoEncryption()
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain
    ).decode()


def _app() -> App:
    return App(
        4711,
        "reprise",
        "Reprise",
        "octo-org",
        new_key(),
        secrets.token_hex(20),
        dict(PERMISSIONS),
        list(EVENTS),
    )


@dataclass
class State:
    """Everything this GitHub knows. Hold `lock` to read several things that belong together."""

    app: App = field(default_factory=_app)
    users: dict[str, User] = field(default_factory=dict)
    installations: dict[int, Installation] = field(default_factory=dict)
    repositories: dict[str, Repository] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    deliveries: list[HookDelivery] = field(default_factory=list)
    codes: dict[str, Json] = field(default_factory=dict)
    lock: Any = field(default_factory=RLock)
    _last_id: int = 1000

    def new_id(self) -> int:
        """A number nothing else has."""
        with self.lock:
            self._last_id += 1
            return self._last_id

    def user(self, login: str, kind: Kind | None = None) -> User:
        """The account with this login, made when there is none."""
        with self.lock:
            guess: Kind = "Bot" if login.endswith("[bot]") else "User"
            return self.users.setdefault(login.lower(), User(self.new_id(), login, kind or guess))

    def installation(
        self,
        account: str,
        repositories: Iterable[str] = (),
        permissions: dict[str, str] | None = None,
    ) -> int:
        """Install the App on an account; the installation's id."""
        with self.lock:
            self.user(account, "Organization")
            made = Installation(
                self.new_id(),
                account,
                list(repositories),
                dict(permissions or self.app.permissions),
            )
            self.installations[made.id] = made
            return made.id

    def repository(
        self,
        name: str,
        *,
        private: bool = False,
        default_branch: str = "main",
        installed: bool = True,
    ) -> Repository:
        """The repository "owner/name", made when there is none and covered by the owner's
        installation unless told not to.
        """
        with self.lock:
            found = self.repositories.get(name.lower())
            if found is not None:
                return found
            made = Repository(self.new_id(), name, private, default_branch)
            self.user(made.owner, "Organization")
            self.repositories[name.lower()] = made
            if installed and self.covering(name) is None:
                here = [
                    each
                    for each in self.installations.values()
                    if each.account.lower() == made.owner.lower()
                ]
                (here or [self.installations[self.installation(made.owner)]])[
                    0
                ].repositories.append(name)
            return made

    def collaborator(self, repository: str, login: str, role: str, base: str | None = None) -> None:
        """Give someone a role. `base`: what a role that the organisation made up amounts to."""
        with self.lock:
            self.user(login)
            here = self.repository(repository)
            here.roles[login.lower()] = role
            if base is not None:
                here.bases[role] = base

    def issue(
        self, repository: str, title: str = "It fails", body: str | None = "", author: str = "reporter", *,
        number: int | None = None, labels: Iterable[str] = (), created_at: datetime | None = None, pull_request: bool = False,
    ) -> Issue:  # fmt: skip
        """Somebody opens an issue; nothing is delivered yet."""
        with self.lock:
            here, at = self.repository(repository), created_at or now()
            self.user(author)
            which = number or max(here.issues, default=0) + 1
            made = Issue(
                self.new_id(), which, title, body, author, at, at, pull_request=pull_request
            )
            made.labels = [self.label(repository, name).name for name in labels]
            here.issues[which] = made
            return made

    def label(
        self, repository: str, name: str, color: str = "ededed", description: str | None = None
    ) -> Label:
        """The label of a repository, made when there is none."""
        with self.lock:
            made = Label(self.new_id(), name, color, description)
            return self.repository(repository).labels.setdefault(name.lower(), made)

    def comment(
        self, repository: str, number: int, author: str, body: str, *, app: bool = False
    ) -> Comment:
        """Somebody comments; nothing is delivered yet."""
        with self.lock:
            self.user(author)
            at = now()
            made = Comment(
                self.new_id(), repository, number, author, body, app, at, at, [Edit(at, body)]
            )
            self.comments[made.id] = made
            return made

    def edit(self, comment: Comment, body: str) -> None:
        """A comment gets another body."""
        with self.lock:
            comment.body, comment.updated_at = body, now()
            comment.history.append(Edit(comment.updated_at, body))

    def react(self, reactions: list[Reaction], login: str, content: str) -> tuple[Reaction, bool]:
        """The reaction of someone to a thing, and whether it is new."""
        with self.lock:
            for each in reactions:
                if (each.user, each.content) == (login, content):
                    return each, False
            reactions.append(Reaction(self.new_id(), login, content))
            return reactions[-1], True

    def conversation(self, repository: str, number: int) -> list[Comment]:
        """The comments on an issue, the oldest first."""
        with self.lock:
            every = sorted(self.comments.values(), key=lambda each: each.id)
            return [
                each
                for each in every
                if each.repository.lower() == repository.lower() and each.number == number
            ]

    def ours(self, repository: str, number: int) -> list[Comment]:
        """The App's own comments on an issue, the oldest first."""
        return [each for each in self.conversation(repository, number) if each.app]

    def covering(self, repository: str) -> Installation | None:
        """The installation that covers a repository."""
        with self.lock:
            every = self.installations.values()
            return next(
                (each for each in every if repository.lower() in map(str.lower, each.repositories)),
                None,
            )

    def mint(
        self, installation: int, repositories: list[str] | None, permissions: dict[str, str]
    ) -> Token:
        """A new installation token."""
        with self.lock:
            token = Token(
                f"ghs_{secrets.token_hex(18)}",
                installation,
                repositories,
                permissions,
                now() + TOKEN_LIFE,
            )
            self.tokens[token.value] = token
            return token
