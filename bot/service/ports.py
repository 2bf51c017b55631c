"""The ports of the App: a store that holds the truth, a queue that says "look at this", and GitHub. Fakes: `bot.testing`.

All three are synchronous and may be called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from bot.errors import TransientError
from bot.models.attempt import Attempt, Script
from bot.models.base import Record
from bot.models.delivery import Delivery
from bot.models.dialogue import Exchange
from bot.models.report import Report
from bot.models.run import NewRun, Run, RunState

Device = Literal["cpu", "gpu"]
Reaction = Literal["eyes", "+1", "confused"]
Permission = Literal["admin", "maintain", "write", "triage", "read", "none"]
WRITERS: frozenset[Permission] = frozenset({"admin", "maintain", "write"})


class Throttled(TransientError):
    """GitHub, or our own pacing, asks to wait `after_s` seconds; the work is deferred, nobody sleeps."""

    def __init__(self, message: str, after_s: float) -> None:
        super().__init__(message, f"It goes on by itself in {after_s:.0f} s.")
        self.after_s = after_s


class Gone(TransientError):
    """The issue, comment or repository is no longer there, or the installation may no longer see it."""


# --- Store -------------------------------------------------------------------------------------------------------------------


class Task(Record):
    """Something to look at: a delivery or a run. `turn` grows each time the same thing is offered again."""

    kind: Literal["delivery", "run"]
    id: str
    device: Device = "cpu"
    turn: int = 0


Claim = Literal["new", "again", "known"]


class Beat(Record):
    """The store's answer to a heartbeat: whether someone asked to stop, and whether the lease is lost to another worker."""

    cancel: bool = False
    lost: bool = False


class Usage(Record):
    """What was used since a moment: runs that began or wait, their compute seconds, and dollars."""

    runs: int = 0
    seconds: float = 0.0
    usd: float = 0.0


class OurComment(Record):
    """A comment of ours. `key` is "run" for the sticky one of an issue, else the mark of a reply; `digest` is the SHA-256 of
    the body last written.
    """

    repository: str
    number: int
    key: str
    comment: int
    digest: str = ""


class Store(Protocol):
    """The truth. Every method is one transaction; nothing is half done when the process is killed."""

    def claim(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        """Keep deliveries, all in one transaction: "new" when never seen, "again" when it had failed (it is open once
        more), "known" when it is waiting, being handled or handled. Equal ids in one call: the first wins.
        """
        ...

    def take_delivery(self, guid: str, owner: str, lease_s: float) -> Delivery | None:
        """The delivery, if it waits or its lease ran out; None when there is nothing to do."""
        ...

    def renew_delivery(self, guid: str, owner: str, lease_s: float) -> bool:
        """Renew the lease of a delivery that takes long to look at. False when it was lost."""
        ...

    def finish_delivery(self, guid: str, owner: str, error: str = "") -> bool:
        """Handled, or failed with an error (a redelivery may then try again). False when the lease was lost."""
        ...

    def defer_delivery(self, guid: str, owner: str, after_s: float) -> int:
        """Give the delivery back, to be taken no sooner than in `after_s` seconds. Returns the turn to offer it under."""
        ...

    def seen(self, guids: Sequence[str]) -> frozenset[str]:
        """Those that need no redelivery: waiting, being handled or handled."""
        ...

    def add_run(self, new: NewRun) -> tuple[Run, bool]:
        """The run of this delivery and ordinal, and whether it is new."""
        ...

    def run(self, run: str) -> Run | None:
        """A run by its id."""
        ...

    def runs(
        self,
        *,
        repository: str | None = None,
        number: int | None = None,
        installation: int | None = None,
        states: Sequence[RunState] = (),
        limit: int = 50,
    ) -> tuple[Run, ...]:
        """Runs that fit, the newest first. No states: all of them."""
        ...

    def ahead(self, run: str) -> int:
        """How many queued or running runs for the same device are older."""
        ...

    def take_run(self, run: str, owner: str, lease_s: float) -> Run | None:
        """Lease a run. QUEUED becomes RUNNING; a REPORTED one without a live lease stays REPORTED. None when it is in another
        state, is leased, is deferred to later, or another run of the same issue holds a live lease (one at a time an issue).
        """
        ...

    def beat(self, run: str, owner: str, lease_s: float, stage: str = "", progress: str = "", seconds: float = 0.0) -> Beat:
        """Renew a lease and say what goes on. `seconds` is added to the run's compute time."""
        ...

    def note_attempt(self, run: str, owner: str, attempt: Attempt, script: Script, log: str) -> bool:
        """Keep one attempt of a run with its script and log, once a number. False when the lease was lost."""
        ...

    def attempts(self, run: str) -> tuple[Attempt, ...]:
        """The attempts of a run in order of their numbers."""
        ...

    def script(self, run: str, number: int) -> Script | None:
        """The program of one attempt, None when there is no such attempt."""
        ...

    def log(self, run: str, number: int) -> str:
        """The log of one attempt, "" when there is none."""
        ...

    def forget_attempts(self, run: str, owner: str, above: int) -> bool:
        """Drop attempts with a number above `above`: what was done before no longer fits. False when the lease was lost."""
        ...

    def note_exchange(self, run: str, owner: str, exchange: Exchange) -> bool:
        """Keep what a model was asked for a run and answered, once a number, until there is a report. False when the lease was
        lost.
        """
        ...

    def exchanges(self, run: str) -> tuple[Exchange, ...]:
        """What a model was asked for a run and answered, in order of the numbers."""
        ...

    def put_report(self, run: str, owner: str, report: Report) -> bool:
        """RUNNING becomes REPORTED, with the report. False when the lease was lost."""
        ...

    def report(self, run: str) -> Report | None:
        """The report of a run, once there is one."""
        ...

    def finish_run(self, run: str, owner: str, error: str = "") -> bool:
        """FINISHED, or FAILED with an error. False when the lease was lost."""
        ...

    def defer_run(self, run: str, owner: str, after_s: float) -> int:
        """Give the run back (RUNNING becomes QUEUED, REPORTED stays), to be taken no sooner than in `after_s` seconds.
        Returns the turn to offer it under.
        """
        ...

    def approve(self, repository: str, number: int, plan: str, by: str) -> Run | None:
        """The waiting run of this plan (a prefix of at least 8 characters will do), now QUEUED; None when there is none."""
        ...

    def cancel(
        self, by: str, *, run: str | None = None, repository: str | None = None, number: int | None = None,
        installation: int | None = None,
    ) -> tuple[Run, ...]:  # fmt: skip
        """Ask every live run that fits to stop. WAITING and QUEUED ones become QUEUED with `cancelled_by` set, so that a
        worker tells the issue; RUNNING ones learn it with their next heartbeat. Returns the runs that were asked.
        """
        ...

    def overdue(self, unheard_s: float) -> tuple[Task, ...]:
        """What must be offered again, marked as offered: deliveries and runs whose lease ran out (RUNNING ones become QUEUED),
        and those that wait although they were last offered more than `unheard_s` seconds ago and are not deferred past now; so
        0.0 finds all that can be taken. Deliveries come first, in the order in which they were received, then runs.

        A delivery that waited keeps its turn: a queue that still has it keeps it once, in its place. All others get a new one.
        For runs the patience doubles with each turn, to 64 times `unheard_s` at most: behind a long queue the same run is not
        offered over and over.
        """
        ...

    def comment(self, repository: str, number: int, key: str) -> OurComment | None:
        """A comment of ours, if we wrote it."""
        ...

    def comments(self, repository: str, number: int) -> tuple[OurComment, ...]:
        """All comments of ours on an issue."""
        ...

    def put_comment(self, comment: OurComment) -> None:
        """Remember a comment of ours, in place of one with the same repository, number and key."""
        ...

    def forget_comment(self, repository: str, number: int, key: str) -> None:
        """Somebody deleted it on GitHub."""
        ...

    def reserve_write(self, installation: int, *, notifies: bool) -> float:
        """Book one write to GitHub. 0.0: booked, write now. Otherwise nothing is booked, and this is how many seconds to
        wait before asking again. Holds across processes: the gaps and the caps are those the store was made with.
        """
        ...

    def hold_writes(self, installation: int, after_s: float) -> None:
        """GitHub asked this installation to wait: no write is booked before then."""
        ...

    def usage(self, since: datetime, *, repository: str | None = None, requester: str | None = None) -> Usage:
        """What was used since a moment, in all or by one repository or person (or by that person there)."""
        ...

    def note_cost(self, run: str, *, calls: int = 0, input_tokens: int = 0, output_tokens: int = 0, usd: float = 0.0) -> None:
        """Add what a model cost."""
        ...

    def switches(self) -> dict[str, str]:
        """The kill switches that are thrown: "all", "owner/name" or "installation:N", each with its reason."""
        ...

    def set_switch(self, name: str, reason: str | None) -> None:
        """Throw a switch, or with None take it back."""
        ...

    def counts(self) -> dict[str, int]:
        """Figures for the metrics page: "deliveries.<state>", "runs.<state>", "verdicts.<kind>"."""
        ...

    def prune(self, before: datetime) -> int:
        """Forget handled deliveries, finished runs and bookings older than a moment; returns how many runs went."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class ClaimsNow(Protocol):
    """What a store may offer besides: claims that are made in the caller's thread in well under a millisecond."""

    def claim_now(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...] | None:
        """The same as `claim`, as durable; None, and nothing is kept, when it would have to wait for somebody else's
        transaction, or cannot be done in this way. What is wrong is for `claim` to say.
        """
        ...


# --- Queue -------------------------------------------------------------------------------------------------------------------

Handler = Callable[[Task, Event], None]
"""Looks at one task; the event is set when the task was aborted or the worker is to stop."""


class Queue(Protocol):
    """Says "look at this", at least once, soon. It may forget and repeat: the store holds the truth."""

    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        """Offer a task. The same kind, id and turn offered twice while it waits is one. Raises TransientError when away."""
        ...

    def abort(self, task: Task) -> None:
        """Ask whoever handles this kind and id (any turn) to stop; nothing happens when nobody does."""
        ...

    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        """Hand runs for one device to `handle`, at most `slots` at once, until `stop`; then wait for those under way. Whoever
        works for "cpu" is handed deliveries besides, a few at once and in the order in which they fell due: they are short,
        and one may ask a run to stop. An error that escapes `handle` is logged and the task is over: who offered it sees to it.
        """
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class OffersMany(Protocol):
    """What a queue may offer besides: several tasks in one round trip."""

    def offer_all(self, tasks: Sequence[Task]) -> None:
        """The same as `offer` for each of them, due now. Raises TransientError when away."""
        ...


@dataclass(frozen=True, slots=True)
class Tick:
    """Something a worker does every `every_s` seconds beside its tasks, at the worst in several workers at once."""

    name: str
    every_s: float
    do: Callable[[], object]


# --- GitHub ------------------------------------------------------------------------------------------------------------------


class Target(Record):
    """A repository as one installation of the App sees it."""

    installation: int
    repository: str


class Hook(Record):
    """One delivery that GitHub tried. `ok` when our answer was 2xx."""

    id: int
    guid: str
    event: str
    ok: bool
    redelivery: bool
    at: datetime


class CloneToken(Record):
    """A token that reads the contents of one repository, for an hour at most."""

    username: str = "x-access-token"
    token: str = Field(repr=False)


class GitHub(Protocol):
    """What the App asks of GitHub. Each call uses a token narrowed to one repository and what the call needs.

    Raises Throttled with the time to wait, Gone for what is not there (any more), TransientError for GitHub's own errors,
    UserError when credentials or permissions of the App are wrong.
    """

    def permission(self, target: Target, login: str) -> Permission:
        """What someone may do on a repository, from the collaborator-permission API; "none" for who is no collaborator."""
        ...

    def file(self, target: Target, path: str, most_bytes: int = 65_536) -> str | None:
        """A file of the default branch as text; None when there is none, or it is no text, or larger."""
        ...

    def find_comment(self, target: Target, number: int, marker: str) -> int | None:
        """The oldest comment of the App itself on an issue whose body holds the marker."""
        ...

    def create_comment(self, target: Target, number: int, body: str) -> int:
        """Write a comment; its id. Never repeated by itself: after an error the caller looks for the marker first."""
        ...

    def update_comment(self, target: Target, comment: int, body: str) -> None:
        """Replace the body of a comment. Gone when it was deleted."""
        ...

    def react(self, target: Target, number: int, comment: int | None, reaction: Reaction) -> None:
        """React to a comment, or to the issue itself. Doing it twice is doing it once."""
        ...

    def labels(self, target: Target, number: int, add: str, remove: Sequence[str], colour: str, description: str) -> None:
        """Put one label on an issue (made first when the repository lacks it) and take others off, where they are on."""
        ...

    def clone_token(self, target: Target) -> CloneToken:
        """A token to clone with: contents read, this repository only."""
        ...

    def hooks(self, since: datetime) -> tuple[Hook, ...]:
        """The deliveries GitHub tried since a moment, newest first, at most a few hundred."""
        ...

    def redeliver(self, hook: int) -> None:
        """Have GitHub send a delivery again."""
        ...
