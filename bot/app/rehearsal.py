"""What handles one delivery in one process: GitHubs that write nothing, and a queue that hands on
tasks in the caller's own thread.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
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
    GitHub,
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


class UnwritingGitHub(HookedGitHub):
    """A GitHub that ignores every write; the hooks see it all the same. `comments` are the bodies
    of those that there would be, in the order of their first writing.
    """

    def __init__(self) -> None:
        self._ids = count(1)
        self.comments: dict[int, str] = {}

    @override
    def find_comments(self, target: Target, number: int, marker: str) -> tuple[int, ...]:
        return ()

    @override
    def create_comment(self, target: Target, number: int, body: str) -> int:
        self._note(target, "comment", f"#{number}", body)
        comment = next(self._ids)
        self.comments[comment] = body
        return comment

    @override
    def update_comment(self, target: Target, comment: int, body: str) -> None:
        self._note(target, "edit", f", comment {comment}", body)
        self.comments[comment] = body

    @override
    def delete_comment(self, target: Target, comment: int) -> None:
        self._note(target, "deletion", f", comment {comment}")
        self.comments.pop(comment, None)

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
    def writable(self, target: Target) -> AbstractContextManager[RepositoryWriter]:
        raise UserError("A rehearsal opens no pull request.", "Use reprise pr on a checkout.")

    @override
    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        return ()

    @override
    def redeliver(self, hook: int) -> None:
        """Nothing to send."""

    def _note(self, target: Target, what: str, place: str, text: str = "") -> None:
        write = Write(what=what, where=f"{target.repository}{place}", text=text)
        with self._request(target.installation, write):
            return


class DryRunGitHub(UnwritingGitHub):
    """A GitHub that has the sender of one delivery and one configuration file."""

    def __init__(
        self, delivery: Delivery, sender_permission: Permission, config: str | None
    ) -> None:
        super().__init__()
        self._delivery, self._permission, self._config = delivery, sender_permission, config

    @override
    def permission(self, target: Target, login: str) -> Permission:
        same = login.lower() == self._delivery.sender.lower()
        return self._permission if same else "none"

    @override
    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        here = self._delivery.repository
        own = here is not None and target.repository == here.full_name and path == PATH
        return self._config if own else None

    @override
    def commit(self, target: Target, ref: str) -> str | None:
        return ref

    @override
    def clone_token(self, target: Target) -> CloneToken:
        return CloneToken(token="")


class ReadOnlyGitHub(UnwritingGitHub):
    """What another GitHub says, without its writes."""

    def __init__(self, source: GitHub) -> None:
        super().__init__()
        self._source = source

    @override
    def permission(self, target: Target, login: str) -> Permission:
        return self._source.permission(target, login)

    @override
    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        return self._source.file(target, path, most_bytes)

    @override
    def commit(self, target: Target, ref: str) -> str | None:
        return self._source.commit(target, ref)

    @override
    def clone_token(self, target: Target) -> CloneToken:
        return self._source.clone_token(target)


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
