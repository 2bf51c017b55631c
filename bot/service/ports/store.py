"""The store's port. Every method is one transaction; nothing is half done when the
process is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, Protocol

from bot.models.base import Record
from bot.models.journal import E, EntryKind
from bot.models.report import Report
from bot.models.run import Delivery, NewRun, Run, RunState
from bot.service.ports import Reaction, Task

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

    def put_report(self, run: str, owner: str, report: Report) -> bool:
        """Store the report; RUNNING becomes REPORTED."""

    def report(self, run: str) -> Report | None:
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

    def overdue(self, unheard_s: float, *, refused: bool = False) -> tuple[Task, ...]:
        """Tasks to offer again, marked as offered: deliveries and runs whose lease ran out
        (RUNNING ones become QUEUED), and those that wait although they were last offered more
        than `unheard_s` seconds ago and are not deferred; 0.0 finds all that can be taken. With
        `refused` also those that were deferred because GitHub refused the App's credentials.
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
