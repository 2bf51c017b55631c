"""GitHub in memory: what the App reads and writes there, to be looked at afterwards, and
failures on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from threading import RLock
from typing import Any

from bot.app.github.writes import HookedGitHub
from bot.app.ports import (
    CloneToken,
    GoneError,
    Hook,
    NotGranted,
    Permission,
    Reaction,
    RepositoryWriter,
    Target,
    Write,
)
from bot.kernel.errors import UserError

MOST_BODY = 65_536
_WRITE = Write(what="write", where="")
_WRITE_LOUD = Write(what="comment", where="", notifies=True)


@dataclass(frozen=True, slots=True)
class RecordedWrite:
    """One write as GitHub saw it. `what` is create_comment, update_comment, react, create_label,
    add_label, remove_label or redeliver; `text` the body, reaction or label; `id` the comment or
    delivery.
    """

    what: str
    repository: str = ""
    number: int | None = None
    id: int | None = None
    text: str = ""


@dataclass(slots=True)
class FakeComment:
    """A comment on an issue. `reactions` are pairs of login and reaction."""

    id: int
    repository: str
    number: int
    author: str
    body: str
    reactions: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class FakeIssue:
    """An issue or pull request, without the text that nobody asks for here."""

    labels: list[str] = field(default_factory=list)
    reactions: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class FakeRepository:
    """A repository: files of its default branch, what people may do, its labels (colour and
    description) and its issues.
    """

    installation: int
    files: dict[str, str | bytes] = field(default_factory=dict)
    permissions: dict[str, Permission] = field(default_factory=dict)
    labels: dict[str, tuple[str, str]] = field(default_factory=dict)
    issues: dict[int, FakeIssue] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Failure:
    error: Exception
    method: str | None
    written: bool


@dataclass
class FakeGitHub(HookedGitHub):
    """One GitHub with one App on it. Set up with `repository`, `issue` and `comment`; failures
    with `fail` and `lose_answer`; then read `writes`, `calls`, `comments`, `repositories`. Safe
    to share between threads.
    """

    slug: str = "reprise"
    repositories: dict[str, FakeRepository] = field(default_factory=dict)
    comments: dict[int, FakeComment] = field(default_factory=dict)
    deliveries: list[Hook] = field(default_factory=list)
    writes: list[RecordedWrite] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    _failures: list[_Failure] = field(default_factory=list)
    _ids: list[int] = field(default_factory=lambda: [1000])
    _lock: Any = field(default_factory=RLock)

    @property
    def login(self) -> str:
        """Who writes."""
        return f"{self.slug}[bot]"

    # --- setting up ------------------------------------------------------------------------------

    def repository(self, name: str, installation: int = 1) -> FakeRepository:
        """The repository with this name, made when there is none."""
        with self._lock:
            return self.repositories.setdefault(name, FakeRepository(installation))

    def issue(self, repository: str, number: int) -> FakeIssue:
        """The issue with this number, made (with its repository) when there is none."""
        with self._lock:
            return self.repository(repository).issues.setdefault(number, FakeIssue())

    def comment(self, repository: str, number: int, author: str, body: str) -> int:
        """Somebody comments; the id."""
        with self._lock:
            self.issue(repository, number)
            self._ids[0] += 1
            self.comments[self._ids[0]] = FakeComment(
                self._ids[0], repository, number, author, body
            )
            return self._ids[0]

    def ours(self, repository: str, number: int) -> list[FakeComment]:
        """The App's own comments on an issue, the oldest first."""
        with self._lock:
            every = (self.comments[key] for key in sorted(self.comments))
            return [
                each
                for each in every
                if (each.repository, each.number, each.author) == (repository, number, self.login)
            ]

    def fail(self, error: Exception, method: str | None = None, times: int = 1) -> None:
        """The next calls (of one method, or of any) raise this and do nothing."""
        self._failures.extend(_Failure(error, method, written=False) for _ in range(times))

    def lose_answer(self, error: Exception, method: str = "create_comment") -> None:
        """The next call of a method does its work, and raises all the same."""
        self._failures.append(_Failure(error, method, written=True))

    # --- the port --------------------------------------------------------------------------------

    def permission(self, target: Target, login: str) -> Permission:
        """What the set-up says; "none" for anyone else."""
        with self._request(target.installation), self._lock:
            self._called("permission")
            self._repository(target)
            known = self.repositories[target.repository].permissions
            return next(
                (may for name, may in known.items() if name.lower() == login.lower()), "none"
            )

    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        """A file of the set-up; None when there is none, or it is no text, or larger."""
        with self._request(target.installation), self._lock:
            self._called("file")
            found = self._repository(target).files.get(path)
            if found is None:
                return None
            raw = found.encode() if isinstance(found, str) else found
            try:
                return raw.decode() if len(raw) <= most_bytes and b"\0" not in raw else None
            except UnicodeDecodeError:
                return None

    def commit(self, target: Target, ref: str) -> str | None:
        """The commit of the set-up with this name."""
        with self._request(target.installation), self._lock:
            self._called("commit")
            return self._repository(target).commits.get(ref)

    def find_comments(self, target: Target, number: int, marker: str) -> tuple[int, ...]:
        """The comments of the App whose body starts with the marker, the oldest first."""
        with self._request(target.installation), self._lock:
            self._called("find_comments")
            self._issue(target, number)
            ours = self.ours(target.repository, number)
            return tuple(each.id for each in ours if each.body.startswith(marker))

    def create_comment(self, target: Target, number: int, body: str) -> int:
        """Write a comment, once a call."""
        with self._request(target.installation, _WRITE_LOUD), self._lock:
            lost = self._called("create_comment")
            self._issue(target, number)
            self._fits(body)
            made = self.comment(target.repository, number, self.login, body)
            self.writes.append(
                RecordedWrite("create_comment", target.repository, number, made, body)
            )
            _answer(lost)
            return made

    def update_comment(self, target: Target, comment: int, body: str) -> None:
        """Replace a body."""
        with self._request(target.installation, _WRITE), self._lock:
            lost = self._called("update_comment")
            found = self._comment(target, comment)
            self._fits(body)
            found.body = body
            self.writes.append(
                RecordedWrite("update_comment", target.repository, found.number, comment, body)
            )
            _answer(lost)

    def delete_comment(self, target: Target, comment: int) -> None:
        """Delete a comment, once."""
        with self._request(target.installation, _WRITE), self._lock:
            lost = self._called("delete_comment")
            self._repository(target)
            found = self.comments.pop(comment, None)
            if found is not None:
                where = (target.repository, found.number, comment)
                self.writes.append(RecordedWrite("delete_comment", *where))
            _answer(lost)

    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        """React; the same reaction twice is one."""
        with self._request(target.installation, _WRITE), self._lock:
            lost = self._called("react")
            thing = (
                self._issue(target, number) if comment is None else self._comment(target, comment)
            )
            thing.reactions.add((self.login, reaction))
            self.writes.append(RecordedWrite("react", target.repository, number, comment, reaction))
            _answer(lost)

    def labels(
        self,
        target: Target,
        number: int,
        add: str,
        remove: Sequence[str],
        colour: str,
        description: str,
    ) -> None:
        """Put one label on and take others off; only what changes something is written."""
        with self._request(target.installation), self._lock:
            lost = self._called("labels")
            here, issue = self._repository(target), self._issue(target, number)
            on = {name.lower() for name in issue.labels}
            steps = (
                []
                if add.lower() in {name.lower() for name in here.labels}
                else [("create_label", add)]
            )
            steps += [] if add.lower() in on else [("add_label", add)]
            steps += [
                ("remove_label", name) for name in remove if name.lower() in on - {add.lower()}
            ]
        for what, name in steps:
            with self._request(target.installation, _WRITE), self._lock:
                self._label(issue, what, name)
                if what == "create_label":
                    here.labels[name] = (colour, description)
                self.writes.append(RecordedWrite(what, target.repository, number, text=name))
        _answer(lost)

    def clone_token(self, target: Target) -> CloneToken:
        """A made-up token; it clones nothing."""
        with self._request(target.installation), self._lock:
            self._called("clone_token")
            self._repository(target)
            return CloneToken(token=f"made-up-token-for-{target.repository}")

    def writable(self, target: Target) -> AbstractContextManager[RepositoryWriter]:
        """An installation without the permissions; the stand-in server has a whole repository."""
        with self._request(target.installation), self._lock:
            self._called("writable")
            self._repository(target)
        raise NotGranted("The installation does not grant contents=write.", "Grant it.")

    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        """The deliveries of the set-up since a moment, newest first."""
        with self._request(0), self._lock:
            self._called("hooks")
            return tuple(
                sorted(
                    (each for each in self.deliveries if each.at >= since),
                    key=lambda each: each.at,
                    reverse=True,
                )
            )

    def redeliver(self, hook: int) -> None:
        """Note that a delivery was asked for again; nothing is sent."""
        with self._request(0), self._lock:
            lost = self._called("redeliver")
            if all(each.id != hook for each in self.deliveries):
                raise GoneError(f"There is no delivery {hook}.")
            self.writes.append(RecordedWrite("redeliver", id=hook))
            _answer(lost)

    # --- inside ----------------------------------------------------------------------------------

    def _called(self, method: str) -> Exception | None:
        """Raise what was asked for; or return what is to be raised once the work is done."""
        self.calls.append(method)
        chosen = next((each for each in self._failures if each.method in {None, method}), None)
        if chosen is None:
            return None
        self._failures.remove(chosen)
        if not chosen.written:
            raise chosen.error
        return chosen.error

    def _repository(self, target: Target) -> FakeRepository:
        found = self.repositories.get(target.repository)
        if found is None or found.installation != target.installation:
            raise GoneError(
                f"{target.repository} is not there, or not covered by the installation."
            )
        return found

    def _issue(self, target: Target, number: int) -> FakeIssue:
        found = self._repository(target).issues.get(number)
        if found is None:
            raise GoneError(f"{target.repository}#{number} is not there.")
        return found

    def _comment(self, target: Target, comment: int) -> FakeComment:
        self._repository(target)
        found = self.comments.get(comment)
        if found is None or found.repository != target.repository:
            raise GoneError(f"Comment {comment} is not there.")
        return found

    def _fits(self, body: str) -> None:
        if not body.strip() or len(body) > MOST_BODY:
            raise UserError("GitHub refuses this body: it is empty or too long.")

    def _label(self, issue: FakeIssue, what: str, name: str) -> None:
        if what == "add_label":
            issue.labels.append(name)
        if what == "remove_label":
            issue.labels = [each for each in issue.labels if each.lower() != name.lower()]


def _answer(lost: Exception | None) -> None:
    if lost is not None:
        raise lost
