"""GitHubs that pass every call on to another one and add something: each write is booked in the
store first, so that all processes together keep to GitHub's limit, or it is recorded.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from datetime import datetime
from functools import partial
from typing import Self

from typing_extensions import override

from bot.errors import TransientError
from bot.models.base import Record
from bot.service.ports import (
    CloneToken,
    CredentialsRefused,
    GitHub,
    Hook,
    Permission,
    Reaction,
    Target,
    Throttled,
    WriteSlot,
)
from bot.service.ports.repository import RepositoryWriter
from bot.service.ports.store import AppStore

STEP_S = 0.25
PULL_REQUEST = "pull request"
_WRITES = 5  # of a pull request, each of which may have to wait


class Written(Record):
    """One write: what was done, where (an issue or comment), and the text that went there."""

    what: str
    where: str
    text: str


class GitHubProxy(GitHub):
    """Passes calls on; `_reading` and `_writing` enclose those about a repository."""

    def __init__(self, github: GitHub) -> None:
        self._github = github

    @contextmanager
    def _reading(self, target: Target) -> Iterator[GitHub]:  # noqa: ARG002  # for subclasses
        yield self._github

    @contextmanager
    def _writing(self, target: Target, write: Written) -> Iterator[GitHub]:  # noqa: ARG002
        yield self._github

    @override
    def in_slots(self, slot: WriteSlot) -> Self:
        other = copy(self)
        other._github = self._github.in_slots(slot)
        return other

    @override
    def permission(self, target: Target, login: str) -> Permission:
        with self._reading(target) as github:
            return github.permission(target, login)

    @override
    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        with self._reading(target) as github:
            return github.file(target, path, most_bytes)

    @override
    def commit(self, target: Target, ref: str) -> str | None:
        with self._reading(target) as github:
            return github.commit(target, ref)

    @override
    def find_comments(self, target: Target, number: int, marker: str) -> tuple[int, ...]:
        with self._reading(target) as github:
            return github.find_comments(target, number, marker)

    @override
    def create_comment(self, target: Target, number: int, body: str) -> int:
        write = Written(what="comment", where=f"{target.repository}#{number}", text=body)
        with self._writing(target, write) as github:
            return github.create_comment(target, number, body)

    @override
    def update_comment(self, target: Target, comment: int, body: str) -> None:
        where = f"{target.repository}, comment {comment}"
        with self._writing(target, Written(what="edit", where=where, text=body)) as github:
            github.update_comment(target, comment, body)

    @override
    def delete_comment(self, target: Target, comment: int) -> None:
        where = f"{target.repository}, comment {comment}"
        with self._writing(target, Written(what="deletion", where=where, text="")) as github:
            github.delete_comment(target, comment)

    @override
    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        place = f"#{number}" if comment is None else f", comment {comment}"
        write = Written(what="reaction", where=f"{target.repository}{place}", text=reaction)
        with self._writing(target, write) as github:
            github.react(target, number, comment, reaction)

    @override
    def labels(
        self,
        target: Target,
        number: int,
        add: str,
        remove: Sequence[str],
        colour: str,
        description: str,
    ) -> None:
        write = Written(what="label", where=f"{target.repository}#{number}", text=add)
        with self._writing(target, write) as github:
            github.labels(target, number, add, remove, colour, description)

    @override
    def clone_token(self, target: Target) -> CloneToken:
        with self._reading(target) as github:
            return github.clone_token(target)

    @override
    @contextmanager
    def writable(self, target: Target) -> Iterator[RepositoryWriter]:
        write = Written(what=PULL_REQUEST, where=target.repository, text="")
        with self._writing(target, write) as github, github.writable(target) as opened:
            yield opened

    @override
    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        return self._github.hooks(since)

    @override
    def redeliver(self, hook: int) -> None:
        self._github.redeliver(hook)


class RateLimited(Throttled):
    """Our own rate limit asks to wait; GitHub was not asked."""


class RateLimitedGitHub(GitHubProxy):
    """A GitHub whose writes are booked. One call waits at most `patience_s` seconds for all of
    its writes; beyond that it raises RateLimited. When GitHub itself asks to wait, all processes
    hold the installation's writes.
    """

    def __init__(
        self,
        github: GitHub,
        store: AppStore,
        *,
        patience_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(github)
        self._store, self._patience_s = store, patience_s
        self._clock, self._sleep = clock, sleep

    @override
    @contextmanager
    def _reading(self, target: Target) -> Iterator[GitHub]:
        try:
            yield self._github
        except (RateLimited, CredentialsRefused):
            raise
        except Throttled as throttled:
            self._store.hold_writes(target.installation, throttled.after_s)
            raise

    @override
    @contextmanager
    def _writing(self, target: Target, write: Written) -> Iterator[GitHub]:
        patience = self._patience_s * (_WRITES if write.what == PULL_REQUEST else 1)
        until = self._clock() + patience
        with self._reading(target) as github:
            yield github.in_slots(partial(self._slot, until))

    @contextmanager
    def _slot(self, until: float, installation: int, notifies: bool) -> Iterator[None]:
        owner = secrets.token_hex(8)
        while wait := self._store.reserve_write(installation, owner, notifies=notifies):
            if wait > until - self._clock():
                raise RateLimited("Reprise limits its writes to GitHub.", wait)
            self._sleep(min(wait, STEP_S))
        try:
            yield
        finally:
            with suppress(TransientError):  # what GitHub answered counts; the booking runs out
                self._store.end_write(installation, owner)


class RecordingGitHub(GitHubProxy):
    """Any GitHub; `record` is called with each write after it succeeded."""

    def __init__(self, github: GitHub, record: Callable[[Written], None]) -> None:
        super().__init__(github)
        self._record = record

    @override
    @contextmanager
    def _writing(self, target: Target, write: Written) -> Iterator[GitHub]:
        with super()._writing(target, write) as github:
            yield github
        self._record(write)
