"""A rehearsed delivery: a GitHub that writes nothing, and a queue that hands on tasks in the
caller's own thread.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from threading import Event

from typing_extensions import override

from bot.app.configuration import PATH
from bot.app.github.writes import HookedGitHub
from bot.app.ports import (
    CloneToken,
    Device,
    Handler,
    Hook,
    Permission,
    Queue,
    Reaction,
    RepositoryWriter,
    Target,
    Task,
    Write,
)
from bot.kernel.errors import UserError
from bot.kernel.run import Delivery

_MOST_TASKS = 1_000


@dataclass
class DryRunGitHub(HookedGitHub):
    """A GitHub that has the sender of one delivery and one configuration file, and ignores every
    write.
    """

    delivery: Delivery
    sender_permission: Permission
    config: str | None
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    @override
    def permission(self, target: Target, login: str) -> Permission:
        same = login.lower() == self.delivery.sender.lower()
        return self.sender_permission if same else "none"

    @override
    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        here = self.delivery.repository
        own = here is not None and target.repository == here.full_name and path == PATH
        return self.config if own else None

    @override
    def commit(self, target: Target, ref: str) -> str | None:
        return ref

    @override
    def find_comments(self, target: Target, number: int, marker: str) -> tuple[int, ...]:
        return ()

    @override
    def create_comment(self, target: Target, number: int, body: str) -> int:
        self._note(target, "comment", f"#{number}", body)
        return next(self._ids)

    @override
    def update_comment(self, target: Target, comment: int, body: str) -> None:
        self._note(target, "edit", f", comment {comment}", body)

    @override
    def delete_comment(self, target: Target, comment: int) -> None:
        self._note(target, "deletion", f", comment {comment}")

    @override
    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        place = f"#{number}" if comment is None else f", comment {comment}"
        self._note(target, "reaction", place, reaction)

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
        self._note(target, "label", f"#{number}", add)

    @override
    def clone_token(self, target: Target) -> CloneToken:
        return CloneToken(token="")

    @override
    def writable(self, target: Target) -> AbstractContextManager[RepositoryWriter]:
        raise UserError("A rehearsal opens no pull request.", "Use reprise pr on a checkout.")

    @override
    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        return ()

    @override
    def redeliver(self, hook: int) -> None:
        """Nothing to send."""

    def _note(self, target: Target, what: str, place: str, text: str = "") -> None:
        """Nothing is written; the hooks see it all the same."""
        write = Write(what=what, where=f"{target.repository}{place}", text=text)
        with self._request(target.installation, write):
            return


class RehearsalQueue(Queue):
    """Tasks in the order in which they fall due; nobody waits for that time to come."""

    def __init__(self) -> None:
        self._tasks: list[tuple[float, int, Task]] = []
        self._number = count()

    @override
    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        if all(task != waiting for _, _, waiting in self._tasks):
            heappush(self._tasks, (delay_s, next(self._number), task))

    @override
    def abort(self, task: Task) -> None:
        """One task is handled at a time: there is nothing to stop."""

    @override
    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        for _ in range(_MOST_TASKS):
            if not self._tasks or stop.is_set():
                return
            handle(heappop(self._tasks)[2], stop)

    @override
    def close(self) -> None:
        self._tasks.clear()
