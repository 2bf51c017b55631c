"""The ports of the App: the store holds the truth, the queue says 'look at this', GitHub
shows the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Literal, Protocol, Self

from pydantic import Field

from bot.kernel.errors import TransientError, UserError
from bot.kernel.journal import E, EntryKind
from bot.kernel.report import RequestedReport
from bot.kernel.run import (
    Delivery,
    NewRun,
    ProposedFile,
    Repository,
    Run,
    RunState,
    TreeEntry,
    VerdictCount,
)
from bot.kernel.values import Record

# One repository, opened for one pull request: what is read there, and the branch and the pull
# request that are written.


class RepositoryState(Record):
    """What kind of repository it is. `head` is the commit of the default branch, "" when there is
    none.
    """

    default_branch: str
    head: str
    fork: bool = False
    archived: bool = False


class PullRequest(Record):
    """A pull request of a branch."""

    number: int
    state: Literal["open", "closed", "merged"]


class RepositoryReader(Protocol):
    """A repository through a token that can do nothing else and ends with its use. Raises what
    `GitHub` raises.
    """

    def state(self) -> RepositoryState:
        """What kind of repository it is now."""

    def issue_open(self, number: int) -> bool:
        """Whether an issue is open."""

    def entries(self, commit: str) -> tuple[TreeEntry, ...]:
        """Everything in a commit, folders too. Raises UserError when that is too much to list."""

    def text(self, entry: TreeEntry) -> str | None:
        """The text of a file; None when it is none."""


class RepositoryWriter(RepositoryReader, Protocol):
    """A repository whose token can also write contents and pull requests."""

    def branch(self, name: str) -> str:
        """The commit of a branch, "" when there is no such branch."""

    def others(self, base: str, head: str) -> int:
        """How many commits `head` has on top of `base` that the App did not write."""

    def commit(self, base: str, files: Sequence[ProposedFile], above: str, message: str) -> str:
        """A commit with the files of `base` and these, on top of `above` where that is given.
        Returns `above` when it says the same already.
        """

    def point(self, branch: str, commit: str, *, new: bool) -> None:
        """Create a branch, or move it forward. Raises TransientError when somebody was faster."""

    def pulls(self, branch: str) -> tuple[PullRequest, ...]:
        """The pull requests of a branch, the newest first."""

    def open_pull(self, branch: str, base: str, title: str, body: str) -> int:
        """Open a draft and return its number. Raises TransientError when there is one already."""

    def edit_pull(self, number: int, title: str, body: str) -> None:
        """Replace title and body."""

    def close_pull(self, number: int) -> None:
        """Close it. Idempotent."""


# The ports of the App but for the store, which holds the truth: the queue says "look at this",
# GitHub shows the results. All of them are synchronous and safe to call from several threads.

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


class GoneError(TransientError):
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
        """The deliveries GitHub attempted since a moment, newest first: the newest 3,000, and of
        older ones those that failed.
        """

    def redeliver(self, hook: int) -> None:
        """Ask GitHub to send a delivery again."""


# The store's port. Every method is one transaction; nothing is half done when the process is
# killed.

Claim = Literal["new", "again", "known"]


class Beat(Record):
    """The store's answer to a heartbeat: whether someone asked to stop, and whether the lease was
    lost to another worker.
    """

    cancel: bool = False
    lost: bool = False


class QuotaUsage(Record):
    """Usage since a moment: runs that began or are queued, plans that were asked for (approved,
    withdrawn or neither), compute seconds, and dollars.
    """

    runs: int = 0
    plans: int = 0
    seconds: float = 0.0
    usd: float = 0.0


PULL_REQUEST = "pr"


class OurComment(Record):
    """A comment of ours. `key` is "run" for the sticky comment of an issue, else the key of a
    reply; `digest` is the SHA-256 of the body last written. Under PULL_REQUEST `comment` is the
    number of the issue's pull request and `digest` the id of the run whose patch it has.
    """

    repository: str
    number: int
    key: str
    comment: int
    digest: str = ""


class Sweep(Record):
    """A look for a second comment of ours with a key, at `due` (seconds since 1970): GitHub may
    carry out a request late whose answer never came.
    """

    installation: int
    repository: str
    number: int
    key: str
    due: float


class Settled(Record):
    """What one command of a delivery, or the event itself, has led to. `runs` are the ids of the
    runs that it queued, proposed, approved or cancelled, or of those that a pull request is made
    from; `text` and `reaction` answer whoever asked. "unshown" is a plan that no comment can show.
    """

    kind: Literal[
        "said", "unsaid", "unshown", "queued", "waiting", "approved", "cancelled", "pull_request"
    ] = "said"  # fmt: skip
    runs: tuple[str, ...] = ()
    text: str = ""
    reaction: Reaction | None = None


CREDENTIALS_ALARM = "alarm:credentials"
"""Where all processes say why GitHub refuses the App's credentials."""

ALARM_S = 1200.0
"""How long an alarm counts: longer than the time between two looks at waiting work."""


class AppStore(Protocol):
    """All that the App stores."""

    # Webhook deliveries: stored once, leased by one worker at a time.

    def claim(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        """Store deliveries, all in one transaction: "new" when never seen, "again" when it had
        failed (it is open once more), "known" when it waits, is being handled or is handled.
        Equal ids in one call: the first wins.
        """

    def take_delivery(self, guid: str, owner: str, lease_s: float) -> Delivery | None:
        """The delivery, if it waits or its lease ran out; None when there is nothing to do."""

    def renew_delivery(self, guid: str, owner: str, lease_s: float) -> bool:
        """Renew the lease of a delivery that takes long to handle. False when it was lost."""

    def finish_delivery(self, guid: str, owner: str, error: str = "") -> bool:
        """Mark as handled, or as failed with an error (a redelivery may then try again). False
        when the lease was lost.
        """

    def defer_delivery(
        self, guid: str, owner: str, after_s: float, *, refused: bool = False
    ) -> int:
        """Release the delivery, to be taken no sooner than in `after_s` seconds; `refused` when
        GitHub refused the App's credentials. Returns the turn to offer it under.
        """

    def seen(self, guids: Sequence[str]) -> frozenset[str]:
        """Those that need no redelivery: waiting, being handled or handled."""

    # Runs: requested, found, approved and cancelled.

    def add_run(self, new: NewRun) -> tuple[Run, bool]:
        """The run of this delivery and ordinal, and whether it is new: then its id is drawn, and
        with it the hash of its plan.
        """

    def run(self, run: str) -> Run | None:
        """A run by its id."""

    def runs(
        self,
        *,
        repository: str | None = None,
        number: int | None = None,
        installation: int | None = None,
        plan: str | None = None,
        states: Sequence[RunState] = (),
        limit: int = 50,
    ) -> tuple[Run, ...]:
        """Runs that match, the newest first. No states: all of them."""

    def history(
        self,
        repository: Repository,
        *,
        verdict: str | None = None,
        before: str | None = None,
        limit: int = 25,
    ) -> tuple[Run, ...]:
        """The listed runs of a repository under all the names that it had, the newest first: of
        a public one only those that were asked for while it was public. `before` is the id of a
        run: only older ones.
        """

    def verdict_counts(self, repository: Repository) -> tuple[VerdictCount, ...]:
        """The same runs counted by day and verdict, the oldest day first."""

    def unlist(self, repository: str, number: int | None, *, before: datetime) -> None:
        """List the runs of an issue, or of a whole repository, that were asked for no later than
        `before` no more: from now on each is found by its own id alone.
        """

    def ahead(self, run: str) -> int:
        """The number of older queued or running runs for the same device."""

    def approve(self, run: str, by: str) -> Run | None:
        """The waiting run, now QUEUED; None when it does not wait."""

    def cancel(
        self,
        by: str,
        *,
        run: str | None = None,
        repository: str | None = None,
        number: int | None = None,
        installation: int | None = None,
        before: datetime | None = None,
    ) -> tuple[Run, ...]:
        """Ask every live run that matches, and was asked for no later than `before`, to stop;
        returns them. WAITING and QUEUED ones become QUEUED with `cancelled_by` set, so that a
        worker answers the issue; RUNNING ones learn it with their next heartbeat.
        """

    # Leases on runs, for the worker that executes one.

    def take_run(self, run: str, owner: str, lease_s: float) -> Run | None:
        """Lease a run. QUEUED becomes RUNNING; a REPORTED one without a live lease stays
        REPORTED. None when it is in another state, is leased, is deferred, or another run of the
        same issue holds a live lease (one at a time per issue).
        """

    def beat(
        self,
        run: str,
        owner: str,
        lease_s: float,
        stage: str = "",
        progress: str = "",
        seconds: float = 0.0,
    ) -> Beat:
        """Renew a lease and report progress. `seconds` is added to the run's compute time."""

    def finish_run(self, run: str, owner: str, error: str = "") -> bool:
        """Mark as FINISHED, or as FAILED with an error; a REPORTED run has its verdict and is
        FINISHED all the same, with the error why it was not posted. False when the lease was lost.
        """

    def defer_run(
        self,
        run: str,
        owner: str,
        after_s: float,
        *,
        counted: bool = True,
        refused: bool = False,
    ) -> int:
        """Release the run (RUNNING becomes QUEUED, REPORTED stays), to be taken no sooner than in
        `after_s` seconds; `refused` when GitHub refused the App's credentials. Unless `counted`,
        it has not been taken. Returns the turn to offer it under.
        """

    # What a run records. The methods that write return False when the lease was lost.

    def append_entry(self, run: str, owner: str, kind: EntryKind[E], entry: E) -> bool:
        """Append to the run's journal; an entry with the same key goes, with all that follow it.
        What is needed `until_report` goes with the report.
        """

    def entries(
        self, run: str, kind: EntryKind[E], *, key: str | None = None, last: int | None = None
    ) -> tuple[E, ...]:
        """The journal of a run, in order: all entries of a kind, the one with a key, or the `last`
        ones.
        """

    def put_report(self, run: str, owner: str, report: RequestedReport) -> bool:
        """Store the report; RUNNING becomes REPORTED."""

    def report(self, run: str) -> RequestedReport | None:
        """The report of a run, once there is one; None for one that is too large to read, which
        only older releases stored.
        """

    def note_cost(
        self,
        run: str,
        *,
        calls: int = 0,
        input_tokens: int = 0,
        output_tokens: int = 0,
        usd: float = 0.0,
    ) -> None:
        """Add the cost of model calls, also of a run that was erased while it worked."""

    # The ids of our comments.

    def comment(self, repository: str, number: int, key: str) -> OurComment | None:
        """A comment of ours, if we wrote it."""

    def put_comment(self, comment: OurComment) -> None:
        """Store a comment, replacing one with the same repository, number and key."""

    def forget_comment(self, repository: str, number: int, key: str) -> None:
        """Delete a comment that somebody removed from GitHub."""

    # Looks for second comments of ours.

    def note_sweep(
        self, installation: int, repository: str, number: int, key: str, after_s: float
    ) -> Sweep | None:
        """Note a look in `after_s` seconds. Returns it when it is new; None when one was noted
        before, which is put off until then.
        """

    def due_sweeps(self, again_s: float) -> tuple[Sweep, ...]:
        """The looks that are due, each given to one caller; those that are not forgotten are due
        again in `again_s` seconds.
        """

    def forget_sweep(self, sweep: Sweep) -> None:
        """Forget a look, unless it was put off since."""

    # Bookings of writes to GitHub, shared by all processes.

    def reserve_write(self, installation: int, owner: str, *, notifies: bool) -> float:
        """Book one write for an owner. 0.0: booked, write now. Otherwise nothing is booked, and
        this is how many seconds to wait at least. The store's gaps and caps apply across all
        processes; gaps count from the end of a write, because nobody knows sooner that GitHub has
        it. A booking that is not ended runs out.
        """

    def end_write(self, installation: int, owner: str) -> None:
        """End the write that an owner has booked."""

    def hold_writes(self, installation: int, after_s: float) -> None:
        """Book no write of this installation for `after_s` seconds: GitHub asked to wait."""

    # Quotas, kill switches and metrics.

    def usage(
        self, since: datetime, *, repository: str | None = None, requester: str | None = None
    ) -> QuotaUsage:
        """Usage since a moment: in total, of one repository, of one person, or of both."""

    def switches(self) -> dict[str, str]:
        """The active kill switches: "all", "owner/name" or "installation:N", with reasons."""

    def set_switch(self, name: str, reason: str | None) -> None:
        """Set a kill switch, or clear it with None."""

    def counts(self) -> dict[str, int]:
        """Metrics: "deliveries.<state>", "runs.<state>", "verdicts.<kind>" and
        "pull_requests.opened".
        """

    # Deletion of what is no longer ours to keep.

    def erase(self, installation: int, repository: int | None = None, *, before: datetime) -> int:
        """Delete what belongs to the private repositories of an installation, or to the one of an
        id, under all the names that it had, and was asked for or received no later than `before`:
        runs with their results, deliveries and what they led to, and the ids of comments. Returns
        the number of runs. What they used today still counts, without a name.
        """

    # What deliveries have led to.

    def outcome(self, cause: str, ordinal: int) -> Settled | None:
        """What this part of a delivery has led to, None before it was decided."""

    def decide(self, cause: str, ordinal: int, act: Callable[[AppStore], Settled]) -> Settled:
        """The outcome. The first time `act` decides: what it does and its outcome are stored in
        one transaction, while no other process decides anything. After that nothing is done.
        `act` gets the store within that transaction, must ask nobody else, and reads no report.
        """

    # Short texts that all processes know.

    def share(self, name: str, value: str, *, once: bool = False) -> str:
        """Store a text, or with `once` leave an earlier one; returns the one that is stored."""

    def shared(self, name: str, within_s: float | None = None) -> str:
        """A text that was stored (in the last `within_s` seconds), "" when there is none."""

    def unshare(self, name: str) -> None:
        """Delete a text."""

    # Recovery after dead workers and lost messages, and deletion of old data.

    def overdue(
        self, unheard_s: float, *, refused: bool = False, leases: bool = True
    ) -> tuple[Task, ...]:
        """Tasks to offer again, marked as offered: with `leases`, deliveries and runs whose lease
        ran out (RUNNING ones become QUEUED), and those that wait although they were last offered
        more than `unheard_s` seconds ago and are not deferred; 0.0 finds all that can be taken.
        With `refused` also those that were deferred because GitHub refused the App's credentials.
        Deliveries come first, in the order in which they were received, then runs.

        A delivery that waited keeps its turn, so that a queue that still has it keeps it once, in
        its place; all others get a new one. For runs the patience doubles with each turn, to 64
        times `unheard_s` at most: a run behind a long queue is not offered over and over.
        """

    def prune(self, before: datetime) -> int:
        """Delete handled deliveries, finished runs and bookings older than a moment, and what
        erased runs used on days that are over; returns the number of runs.
        """

    def close(self) -> None:
        """Close all connections."""
