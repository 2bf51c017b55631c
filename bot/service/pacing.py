"""GitHub at the speed that GitHub allows: each write is booked in the store first, so that all processes keep it together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol, runtime_checkable

from bot.service.ports import CloneToken, GitHub, Hook, Permission, Reaction, Store, Target, Throttled

STEP_S = 0.25


@runtime_checkable
class Paceable(GitHub, Protocol):
    """A GitHub that asks before each single write: only it knows how many a call of the port takes."""

    def paced(self, before_write: Callable[[int, bool], None]) -> GitHub:
        """The same GitHub, which calls `before_write(installation, notifies)` before each write."""
        ...


class NotYet(Throttled):
    """Our own pace asks to wait; GitHub was not asked."""


class Paced:
    """The GitHub port, paced. A call waits `patience_s` seconds in all for its writes; what takes longer is Throttled, and
    nobody sleeps. When GitHub itself asks to wait, the installation's writes are held in every process. A GitHub that is not
    Paceable is booked one write for each call that writes.
    """

    def __init__(
        self,
        github: GitHub,
        store: Store,
        *,
        patience_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._github = github
        self._store = store
        self._patience_s = patience_s
        self._clock = clock
        self._sleep = sleep

    @contextmanager
    def _writing(self, target: Target, *, notifies: bool = False) -> Iterator[GitHub]:
        """GitHub for one call that may write, with a patience of its own."""
        until = self._clock() + self._patience_s
        with self._obeying(target):
            if isinstance(self._github, Paceable):
                yield self._github.paced(lambda installation, notifying: self._book(installation, notifying, until))
            else:
                self._book(target.installation, notifies, until)
                yield self._github

    @contextmanager
    def _obeying(self, target: Target) -> Iterator[None]:
        try:
            yield
        except NotYet:
            raise
        except Throttled as throttled:
            self._store.hold_writes(target.installation, throttled.after_s)
            raise

    def _book(self, installation: int, notifies: bool, until: float) -> None:
        while wait := self._store.reserve_write(installation, notifies=notifies):
            left = until - self._clock()
            if wait > left:
                raise NotYet("Writes to GitHub are paced.", wait)
            self._sleep(min(wait, STEP_S))

    def permission(self, target: Target, login: str) -> Permission:
        """Not paced."""
        with self._obeying(target):
            return self._github.permission(target, login)

    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        """Not paced."""
        with self._obeying(target):
            return self._github.file(target, path, most_bytes)

    def find_comment(self, target: Target, number: int, marker: str) -> int | None:
        """Not paced."""
        with self._obeying(target):
            return self._github.find_comment(target, number, marker)

    def create_comment(self, target: Target, number: int, body: str) -> int:
        """One write that notifies."""
        with self._writing(target, notifies=True) as github:
            return github.create_comment(target, number, body)

    def update_comment(self, target: Target, comment: int, body: str) -> None:
        """One write."""
        with self._writing(target) as github:
            github.update_comment(target, comment, body)

    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        """One write."""
        with self._writing(target) as github:
            github.react(target, number, comment, reaction)

    def labels(self, target: Target, number: int, add: str, remove: Sequence[str], colour: str, description: str) -> None:
        """A write for each label that is made, put on or taken off."""
        with self._writing(target) as github:
            github.labels(target, number, add, remove, colour, description)

    def clone_token(self, target: Target) -> CloneToken:
        """Not paced."""
        with self._obeying(target):
            return self._github.clone_token(target)

    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        """Not paced; asked as the App, not as an installation."""
        return self._github.hooks(since)

    def redeliver(self, hook: int) -> None:
        """Not paced: nothing that anyone could see is written."""
        self._github.redeliver(hook)
