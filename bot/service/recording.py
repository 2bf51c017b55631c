"""What a run at work tells the store: its results, its progress, and that it is alive."""

import logging
from contextlib import AbstractContextManager
from threading import Event, Thread
from time import monotonic
from typing import Self

from typing_extensions import override

from bot.errors import Stopped, TransientError, UserError
from bot.models.attempt import Attempt
from bot.models.job import PROOFS, ReproduceIssue
from bot.models.journal import ATTEMPTS, LOGS, PROGRAMS, E, EntryKind
from bot.models.report import Report
from bot.models.run import Run, RunState
from bot.ports import Journal, Progress
from bot.render import sticky
from bot.render.phrases.requests import progress_line
from bot.service import publish
from bot.service.app_context import AppContext
from bot.service.ports.store import AppStore

_FOLLOWS = {"issue", "proof", "without"}
"""All but the options that decide how a verdict is reached."""


class StoreJournal(Journal):
    """The journal of one leased run, in the store. Raises Stopped once the lease is lost to another
    worker. `count` is the number of attempts.
    """

    def __init__(self, store: AppStore, run: str, owner: str) -> None:
        self._store, self._run, self._owner = store, run, owner
        self.count = len(store.entries(run, ATTEMPTS))

    @override
    def append(self, kind: EntryKind[E], entry: E) -> None:
        if not self._store.append_entry(self._run, self._owner, kind, entry):
            raise Stopped("another worker has taken over")
        if isinstance(entry, Attempt):
            self.count = entry.number

    @override
    def read(self, kind: EntryKind[E]) -> tuple[E, ...]:
        return self._store.entries(self._run, kind)


def earlier(store: AppStore, run: Run, owner: str) -> Report | None:
    """The report of the newest earlier run with the same, unchanged issue and the same options.
    Its attempts, programs and logs are copied to this run. None when there is none.
    """
    newest = _newest_reproduced(store, run) if run.request.proof in PROOFS else None
    report = store.report(newest.id) if newest is not None else None
    if newest is None or report is None:
        return None
    if report.reconstruction is not None and "model" in run.request.job.without:
        return None  # an approval is for the programs that were shown, none of which is a model's
    programs = _copied(store, PROGRAMS, newest, run, owner)
    if not (programs and _copied(store, LOGS, newest, run, owner)):
        return None
    if not _copied(store, ATTEMPTS, newest, run, owner):
        return None
    notes = tuple(note for note in report.notes if note.text != report.interrupted)
    return report.model_copy(update={"notes": notes, "interrupted": ""})


def _copied(store: AppStore, kind: EntryKind[E], source: Run, target: Run, owner: str) -> bool:
    present = set(map(kind.key, store.entries(target.id, kind)))
    lacking = (entry for entry in store.entries(source.id, kind) if kind.key(entry) not in present)
    return all(store.append_entry(target.id, owner, kind, entry) for entry in lacking)


def _newest_reproduced(store: AppStore, run: Run) -> Run | None:
    where, number = run.request.repository.full_name, run.request.number
    finished = store.runs(repository=where, number=number, states=(RunState.FINISHED,))
    same = (
        other
        for other in finished
        if other.created_at < run.created_at
        and other.verdict == "reproduced"
        and _same(other.request.job, run.request.job)
    )
    return next(same, None)


def _same(one: ReproduceIssue, other: ReproduceIssue) -> bool:
    issue = (one.issue.title, one.issue.body) == (other.issue.title, other.issue.body)
    options = one.model_dump(exclude=_FOLLOWS)
    return issue and options == other.model_dump(exclude=_FOLLOWS)


_log = logging.getLogger(__name__)
_FIRST_S = 1.0  # a shorter run needs no progress comment


class ProgressReporter(AbstractContextManager["ProgressReporter"]):
    """The engine's Listener for one run. `lost`: another worker has taken over; `over_time`: the
    run exceeded its time limit.

    Sets `cancel` when someone cancels the run, the lease is lost, `stop` is set or the time is up.
    """

    def __init__(
        self,
        context: AppContext,
        run: Run,
        owner: str,
        journal: StoreJournal,
        cancel: Event,
        stop: Event,
    ) -> None:
        self._context, self._run, self._owner = context, run, owner
        self._journal, self._cancel, self._stop = journal, cancel, stop
        self._ended = Event()
        # An edit may wait for GitHub's pace; whoever cancels the run does not wait for it.
        self._threads = tuple(
            Thread(target=each, name=f"progress-{run.id[:8]}", daemon=True)
            for each in (self._renew, self._report)
        )
        self._now, self._shown = Progress(stage="intake", text="starting"), ""
        self._began = self._last_beat = monotonic()
        self.lost = self.over_time = False

    def __call__(self, progress: Progress) -> None:
        """Take one progress line; the next heartbeat stores it."""
        self._now = progress

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._beat()

    def _renew(self) -> None:
        while not self._ended.wait(self._context.policy.beat_s):
            self._beat()

    def _report(self) -> None:
        wait = min(_FIRST_S, self._context.policy.beat_s)
        while not self._ended.wait(wait):
            wait = self._context.policy.edit_s
            if not self._cancel.is_set():
                self._edit()

    def _beat(self) -> None:
        """Renew the lease. An unreachable store costs the lease in the end, not the thread."""
        now = monotonic()
        try:
            progress = self._now
            beat = self._context.store.beat(
                self._run.id,
                self._owner,
                self._context.policy.lease_s,
                progress.stage,
                progress_line(progress),
                now - self._last_beat,
            )
        except TransientError as error:
            _log.warning("run %s: no heartbeat: %s", self._run.id, error)
            return
        self._last_beat = now
        self.lost = self.lost or beat.lost
        self.over_time = now - self._began > self._context.policy.run_minutes * 60
        if self.lost or self.over_time or beat.cancel or self._stop.is_set():
            self._cancel.set()

    def _edit(self) -> None:
        """Update the comment. A failure does no harm: the next update says more."""
        try:
            current = self._context.store.run(self._run.id) or self._run
            body = sticky.working(
                current,
                ahead=0,
                page=self._context.page(current),
                elapsed_s=monotonic() - self._began,
                attempts=self._journal.count,
            )
            if body == self._shown:
                return
            publish.show(self._context, self._run, body, revive=False)
            self._shown = body
        except (TransientError, UserError) as error:
            _log.info("run %s: progress is not on GitHub: %s", self._run.id, error)
