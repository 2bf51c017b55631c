"""The ports of the App but for the store, which holds the truth: the queue says "look at this",
GitHub shows the results. All of them are synchronous and safe to call from several threads.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Literal, Protocol, Self

from pydantic import Field

from bot.errors import TransientError, UserError
from bot.models.base import Record
from bot.service.ports.repository import RepositoryWriter

Device = Literal["cpu", "gpu"]
Lane = Literal["deliveries", "cpu", "gpu"]
Reaction = Literal["eyes", "+1", "confused"]
Permission = Literal["admin", "maintain", "write", "triage", "read", "none"]
WRITERS: frozenset[Permission] = frozenset({"admin", "maintain", "write"})


class Write(Record):
    """One write to GitHub: what is done, where (an issue or a comment), the text that goes there,
    and whether people are notified.
    """

    what: str
    where: str
    text: str = ""
    notifies: bool = False


RequestHook = Callable[[int, Write | None], AbstractContextManager[None]]
"""Called with the installation (0: none, the App itself asks) and what the request writes, None
when it only reads; encloses the request, from before it is sent until its answer is understood.
"""


class Task(Record):
    """Something to look at: a delivery or a run. `turn` grows each time the same thing is
    offered again.
    """

    kind: Literal["delivery", "run"]
    id: str
    device: Device = "cpu"
    turn: int = 0

    @property
    def lane(self) -> Lane:
        """The line it waits in: that of its device, or for deliveries one of their own, so that
        they overtake runs.
        """
        return "deliveries" if self.kind == "delivery" else self.device


Handler = Callable[[Task, Event], None]
"""Handles one task. The event is set when the task is aborted or the worker stops."""


class Queue(Protocol):
    """Delivers tasks at least once, soon. It may forget and repeat: the store holds the truth."""

    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        """Offer a task. The same kind, id and turn offered twice while it waits count once.

        Raises TransientError when the queue is unreachable.
        """

    def abort(self, task: Task) -> None:
        """Ask whoever handles this turn of a task to stop. Does nothing if nobody does: the store
        tells each worker the same with its next heartbeat.
        """

    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        """Hand runs for one device to `handle`, at most `slots` at once, until `stop`; then wait
        for those in flight. A "cpu" worker also gets deliveries, a few at once and in the order
        in which they fell due: they are short, and one may ask a run to stop. An error that
        escapes `handle` is logged and the task is over; the store offers it again.
        """

    def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """Something a worker does every `every_s` seconds; several workers may do it at once."""

    name: str
    every_s: float
    do: Callable[[], object]


class Throttled(TransientError):
    """GitHub, or our own rate limit, asks to wait `after_s` seconds. The work is deferred."""

    def __init__(self, message: str, after_s: float) -> None:
        super().__init__(message, f"Reprise tries again in {after_s:.0f} s.")
        self.after_s = after_s


class CredentialsRefused(Throttled):
    """GitHub does not accept the App's id, its key or a token. All work waits until it does."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message, 60.0)
        self.fix = fix


class Gone(TransientError):
    """The issue, comment or repository no longer exists, or the installation cannot see it."""


class NotGranted(UserError):
    """The installation does not grant what a step needs."""


class Target(Record):
    """A repository as one installation of the App sees it."""

    installation: int
    repository: str


class Hook(Record):
    """One delivery that GitHub attempted. `ok` when our answer was 2xx."""

    id: int
    guid: str
    event: str
    ok: bool
    at: datetime


class CloneToken(Record):
    """A token that reads the contents of one repository, valid for an hour at most."""

    username: str = "x-access-token"
    token: str = Field(repr=False)


class GitHub(Protocol):
    """What the App asks of GitHub. Each call uses a token narrowed to one repository and one
    permission.

    Raises Throttled with the time to wait, CredentialsRefused when GitHub does not know the App,
    Gone for what does not exist (any more), TransientError for GitHub's own errors and for answers
    that are not GitHub's, UserError when the App's permissions do not suffice.
    """

    def hooked(self, *hooks: RequestHook) -> Self:
        """The same GitHub, which encloses each request in these hooks too, the first outermost."""

    def permission(self, target: Target, login: str) -> Permission:
        """A user's permission on a repository; "none" for someone who is no collaborator."""

    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        """A text file of the default branch; None when it is missing, binary or larger."""

    def commit(self, target: Target, ref: str) -> str | None:
        """The id of the commit that a branch, a tag or an abbreviated id names now; None when
        there is none.
        """

    def find_comments(self, target: Target, number: int, marker: str) -> tuple[int, ...]:
        """The comments of the App itself on an issue whose body starts with the marker, the
        oldest first.
        """

    def create_comment(self, target: Target, number: int, body: str) -> int:
        """Write a comment and return its id. Never retried: after an error the caller looks for
        the marker first.
        """

    def update_comment(self, target: Target, comment: int, body: str) -> None:
        """Replace the body of a comment. Gone when it was deleted."""

    def delete_comment(self, target: Target, comment: int) -> None:
        """Delete a comment of the App. Idempotent."""

    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        """React to a comment, or to the issue itself. Idempotent."""

    def labels(
        self,
        target: Target,
        number: int,
        add: str,
        remove: Sequence[str],
        colour: str,
        description: str,
    ) -> None:
        """Put one label on an issue, creating it first if needed, and remove others."""

    def clone_token(self, target: Target) -> CloneToken:
        """A token to clone with: contents read, this repository only."""

    def writable(self, target: Target) -> AbstractContextManager[RepositoryWriter]:
        """The repository, with a token for its contents and pull requests that ends with the
        block. Raises NotGranted.
        """

    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        """The deliveries GitHub attempted since a moment, newest first, at most 3,000."""

    def redeliver(self, hook: int) -> None:
        """Ask GitHub to send a delivery again."""
