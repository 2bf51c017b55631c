"""One run from lease to verdict: the engine works, the lease is kept, the issue updated, the
verdict published.
"""

import logging
from contextlib import AbstractContextManager
from functools import partial
from importlib import metadata
from threading import Event
from time import monotonic
from typing import Self

from typing_extensions import override

from bot.app import publish
from bot.app.context import AppContext, heartbeat, new_owner, run_task
from bot.app.ports import AppStore, CredentialsRefused, GoneError, Throttled
from bot.app.publish import announce
from bot.app.pull_requests import automatic
from bot.app.telemetry import WorkSpan, helper_thread, work_ids
from bot.issues import build_report
from bot.kernel.attempt import Attempt
from bot.kernel.dialogue import Exchange, Usage
from bot.kernel.errors import (
    BuildError,
    PaperUnreachable,
    Stopped,
    TransientError,
    UserError,
)
from bot.kernel.job import PROOFS, Note, ReproducePaper, RequestedJob
from bot.kernel.journal import ATTEMPTS, LOGS, PROGRAMS, USAGE, E, EntryKind
from bot.kernel.paper import PaperResult, PaperVerdict
from bot.kernel.ports import Journal, Progress
from bot.kernel.redaction import redact
from bot.kernel.report import (
    BudgetReached,
    Cancelled,
    IssueReport,
    PaperReport,
    RequestedReport,
    SetupFailed,
)
from bot.kernel.run import Run, RunState
from bot.report import comment
from bot.report.comment import progress_line
from sandbox.port import SandboxError

# What a run at work tells the store: its results, its progress, and that it is alive.

_FOLLOWS = {"issue", "proof", "without"}
"""All but the options that decide how a verdict is reached."""


class StoreJournal(Journal):
    """The journal of one leased run, in the store. Raises Stopped once the lease is lost to another
    worker. `count` is the number of attempts. Beside the exchanges with models it keeps their sum,
    which a page can read without them.
    """

    def __init__(self, store: AppStore, run: str, owner: str, span: WorkSpan | None = None) -> None:
        self._store, self._run, self._owner, self._span = store, run, owner, span
        self.count = len(store.entries(run, ATTEMPTS))
        self._usage = sum(store.entries(run, USAGE), Usage())

    @override
    def append(self, kind: EntryKind[E], entry: E) -> None:
        self._put(kind, entry)
        if isinstance(entry, Attempt):
            self.count = entry.number
        if isinstance(entry, Exchange):
            self._usage += entry.answer.usage if entry.answer is not None else entry.used
            self._put(USAGE, self._usage)
        if self._span is not None:
            self._span.recorded(entry)

    def _put(self, kind: EntryKind[E], entry: E) -> None:
        if not self._store.append_entry(self._run, self._owner, kind, entry):
            raise Stopped("another worker has taken over")

    @override
    def read(self, kind: EntryKind[E]) -> tuple[E, ...]:
        return self._store.entries(self._run, kind)


def earlier_journal(store: AppStore, run: Run, owner: str) -> IssueReport | None:
    """The report of the newest earlier run with the same, unchanged issue and the same options.
    Its attempts, programs and logs are copied to this run. None when there is none.
    """
    newest = _newest_reproduced(store, run) if run.request.proof in PROOFS else None
    report = store.report(newest.id) if newest is not None else None
    if newest is None or not isinstance(report, IssueReport):
        return None
    if report.reconstruction is not None and "model" in run.request.job.without:
        return None  # an approval is for the programs that were shown, none of which is a model's
    programs = _copied(store, PROGRAMS, newest, run, owner)
    if not (programs and _copied(store, LOGS, newest, run, owner)):
        return None
    if not _copied(store, ATTEMPTS, newest, run, owner):
        return None
    draft = report.draft()
    draft.notes = tuple(note for note in report.notes if note.text != report.interrupted)
    draft.interrupted = ""
    return draft.finish()


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


def _same(one: RequestedJob, other: RequestedJob) -> bool:
    if one.kind != other.kind or one.issue is None or other.issue is None:
        return False
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
        span: WorkSpan,
    ) -> None:
        self._context, self._run, self._owner, self._span = context, run, owner, span
        self._journal, self._cancel, self._stop = journal, cancel, stop
        self._ended = Event()
        # An edit may wait for GitHub's pace; whoever cancels the run does not wait for it.
        self._threads = tuple(
            helper_thread(target, f"progress-{run.id[:8]}")
            for target in (self._renew, self._report)
        )
        self._now, self._shown = Progress(stage="intake", text="starting"), ""
        self._began = self._last_beat = monotonic()
        self.lost = self.over_time = False

    def __call__(self, progress: Progress) -> None:
        """Take one progress line; the next heartbeat stores it."""
        self._now = progress
        self._span.progress(progress)

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
        """Update the comment. A failure does no harm: the next update says more. Where nobody
        asked, nothing is said before something has run: the run may end with nothing to say.
        """
        if self._run.request.trigger == "opened" and not self._journal.count:
            return
        try:
            current = self._context.store.run(self._run.id) or self._run
            body = comment.working(
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


# One run from lease to verdict: the engine works, a progress reporter keeps the lease and updates
# the issue, then the verdict is announced.

_RETRY_S = 30.0
_MOST_ANNOUNCEMENTS = 20
_PAUSE_S = 60.0


def execute(context: AppContext, run_id: str, stop: Event) -> None:
    """Execute a queued run, or only announce the verdict of a reported one."""
    if _paused(context, run_id):
        return
    owner = new_owner()
    run = context.store.take_run(run_id, owner, context.policy.lease_s)
    if run is None:
        return
    request = run.request
    kind, device, delivery = request.job.kind, request.device, request.delivery
    about: dict[str, str | int] = {"run": run.id, "turn": run.turn, "job": kind, "device": device}
    try:
        with (
            work_ids(delivery=delivery, run=run.id),
            context.telemetry.work("run", delivery, **about) as span,
        ):
            _Execution(context, run, owner, span).proceed(stop)
    finally:
        _offer_next(context, run)


def _paused(context: AppContext, run_id: str) -> bool:
    """Whether a kill switch keeps a run from starting; it is offered again later."""
    run = context.store.run(run_id)
    if run is None or run.state is not RunState.QUEUED or run.cancelled_by:
        return False
    if not context.switched_off(run.request.installation, run.request.repository):
        return False
    context.offer(run, _PAUSE_S)
    return True


def _offer_next(context: AppContext, run: Run) -> None:
    """Offer the issue's next run, which was refused while this one held the lease."""
    where, number = run.request.repository.full_name, run.request.number
    waiting = context.store.runs(repository=where, number=number, states=(RunState.QUEUED,))
    if others := [other for other in waiting if other.id != run.id]:
        context.offer(others[-1])


class _Execution:
    def __init__(self, context: AppContext, run: Run, owner: str, span: WorkSpan) -> None:
        self._context, self._run, self._owner, self._span = context, run, owner, span
        self._store, self._policy = context.store, context.policy

    def proceed(self, stop: Event) -> None:
        """Work and announce; every error ends in a retry or in a failed run."""
        try:
            if self._run.state is not RunState.RUNNING or self._work(stop):
                announce(self._context, self._run, self._owner, automatic)
        except Throttled as error:
            is_refusal = isinstance(error, CredentialsRefused)
            self._defer(error.after_s, counted=False, refused=is_refusal)
        except GoneError as error:
            _log.info("run %s: its issue is gone: %s", self._run.id, error)
            self._store.finish_run(self._run.id, self._owner)
        except (TransientError, SandboxError) as error:
            _log.warning("run %s: %s", self._run.id, error)
            self._retry(error)
        except UserError as error:
            self._fail(f"{error} {error.fix}")
        except Exception as error:
            self._fail(redact(f"{type(error).__name__}: {error}", self._policy.secrets)[:500])
            raise

    def _work(self, stop: Event) -> bool:
        """Store a report; True when there is one to announce."""
        run = self._run
        if run.cancelled_by:
            attempts = self._store.entries(run.id, ATTEMPTS)
            report = self._empty_report(_cancelled(run.cancelled_by, len(attempts)), attempts)
        elif run.takes > self._policy.takes:
            self._fail(f"given up after {run.takes - 1} tries without a result")
            return False
        elif (finished := self._reproduce(stop)) is not None:
            report = finished
        else:
            return False
        self._span.set("verdict", report.verdict.kind)
        stored_run = self._store.put_report(run.id, self._owner, report)
        if stored_run:
            self._count_cost(report)
        return stored_run

    def _reproduce(self, stop: Event) -> RequestedReport | None:
        """The engine's report; None when another worker goes on with the run."""
        run, cancel = self._run, Event()
        earlier = earlier_journal(self._store, run, self._owner)
        journal = StoreJournal(self._store, run.id, self._owner, self._span)
        with ProgressReporter(
            self._context, run, self._owner, journal, cancel, stop, self._span
        ) as progress:
            report = self._engine(journal, progress, cancel, earlier)
            interrupted = cancel.is_set()
        report = self._log_defects(report)
        if progress.lost:
            if self._store.run(run.id) is None:  # erased: nobody else counts what it cost
                self._count_cost(report)
            return None
        final = self._interrupted(report, progress.over_time) if interrupted else report
        if final is None:
            self._count_cost(report)
            self._defer(0.0)
        return final

    def _engine(
        self,
        journal: StoreJournal,
        progress: ProgressReporter,
        cancel: Event,
        earlier: IssueReport | None,
    ) -> RequestedReport:
        request, engine = self._run.request, self._context.engine
        private = request.job.environment.repo and request.repository.private
        try:
            token = self._context.github.clone_token(publish.target(request)) if private else None
            work = partial(
                engine,
                request.job,
                journal=journal,
                listener=progress,
                cancel=cancel,
                clone=token,
            )
            if earlier is not None:
                try:
                    report = work(earlier=earlier)
                    assert isinstance(report, IssueReport)
                    draft = report.draft()
                    draft.cost = Usage()  # the run that asked the models has counted their cost
                    return draft.finish()
                except Stopped:
                    return self._empty_report(Cancelled(reason="stopped on request"))
                except (UserError, BuildError) as error:
                    _log.info("run %s starts over: %s", self._run.id, error)
            return work()
        except PaperUnreachable as error:
            if self._run.takes < self._policy.takes:
                raise
            return self._without_paper(error)
        except UserError as error:
            reason = " ".join(filter(None, [str(error), error.fix]))
            return self._empty_report(SetupFailed(reason=reason))

    def _log_defects(self, report: RequestedReport) -> RequestedReport:
        """Move the tracebacks of our own errors from the report to the log."""
        for proof, traceback in report.defects.items():
            hidden = redact(traceback, self._policy.secrets)
            _log.error("run %s: a defect ended %s\n%s", self._run.id, proof, hidden)
        draft = report.draft()
        draft.defects = {}
        return draft.finish()

    def _interrupted(self, report: RequestedReport, over_time: bool) -> RequestedReport | None:
        """The report with why it ended, as its verdict or a note; None when another goes on."""
        verdict: Cancelled | BudgetReached
        if over_time:
            why = f"stopped at the limit of {self._policy.run_minutes} minutes per job"
            verdict = BudgetReached(reason=why)
        elif by := (self._store.run(self._run.id) or self._run).cancelled_by:
            why = f"stopped by {by}"
            verdict = _cancelled(by, len(report.attempts))
        else:
            return None
        if isinstance(report, PaperReport):
            return _interrupted_paper(report, verdict, why)
        draft = report.draft()
        if report.verdict.kind == "cancelled":
            draft.verdict = verdict
        else:
            note = f"{why}: the verdict is final, but the proofs after it are incomplete"
            draft.notes, draft.interrupted = (Note(kind="run", text=note), *draft.notes), note
        return draft.finish()

    def _empty_report(
        self, verdict: Cancelled | SetupFailed, attempts: tuple[Attempt, ...] = ()
    ) -> RequestedReport:
        job, version = self._run.request.job, metadata.version("reprise")
        attempts_within_limit = build_report.within_limit(attempts)
        if isinstance(job, ReproducePaper):
            result = PaperResult(verdict=PaperVerdict(kind=verdict.kind, reason=verdict.reason))
            return PaperReport(
                job=job, result=result, attempts=attempts_within_limit, version=version
            )
        return IssueReport(
            issue=job.issue, verdict=verdict, attempts=attempts_within_limit, version=version
        )

    def _without_paper(self, error: PaperUnreachable) -> PaperReport:
        """The report where arXiv did not answer in all tries: no defect of ours."""
        job = self._run.request.job
        assert isinstance(job, ReproducePaper)
        reason = f"the paper could not be fetched ({str(error).rstrip('.')})"
        verdict = PaperVerdict(kind="inconclusive", reason=reason, needs="source")
        version = metadata.version("reprise")
        return PaperReport(job=job, result=PaperResult(verdict=verdict), version=version)

    def _count_cost(self, report: RequestedReport) -> None:
        """Count the cost of models. A run that starts anew asks them again, and both count."""
        if report.cost.calls:
            self._store.note_cost(self._run.id, **report.cost.model_dump(exclude={"estimated"}))

    def _defer(self, after_s: float, *, counted: bool = True, refused: bool = False) -> None:
        turn = self._store.defer_run(
            self._run.id, self._owner, after_s, counted=counted, refused=refused
        )
        self._context.queue.offer(run_task(self._run, turn), after_s)

    def _retry(self, error: Exception) -> None:
        """Try again later, more patiently each time, up to a limit."""
        current = self._store.run(self._run.id) or self._run
        is_reported = current.state is RunState.REPORTED
        if current.takes >= (_MOST_ANNOUNCEMENTS if is_reported else self._policy.takes):
            self._fail(str(error))
        else:
            self._defer(_RETRY_S * 2 ** min(current.takes - 1, 6))

    def _fail(self, error: str) -> None:
        """Mark the run as failed and say so; a verdict that was not posted stays a verdict."""
        _log.error("run %s failed: %s", self._run.id, error)
        if (self._store.run(self._run.id) or self._run).state is not RunState.REPORTED:
            self._admit()
        self._store.finish_run(self._run.id, self._owner, error)

    def _admit(self) -> None:
        context, run, lease_s = self._context, self._run, self._policy.lease_s
        try:
            with heartbeat(lambda: self._store.beat(run.id, self._owner, lease_s), lease_s / 4):
                publish.show(context, run, comment.failed(run, context.page(run)))
                publish.react(context, run.request, "confused")
        except (TransientError, UserError) as error:
            _log.warning("run %s: the failure is not on GitHub: %s", run.id, error)


def _interrupted_paper(
    report: PaperReport, verdict: Cancelled | BudgetReached, why: str
) -> PaperReport:
    """The report with why it ended, as its verdict; a note where the runs had decided before."""
    draft = report.draft()
    if report.verdict.kind == "cancelled":
        stop = PaperVerdict(kind=verdict.kind, reason=verdict.reason)
        draft.result = report.result.model_copy(update={"verdict": stop})
    else:
        note = f"{why}: the verdict is final, but not every contradiction's cost was measured"
        draft.notes, draft.interrupted = (Note(kind="run", text=note), *report.notes), note
    return draft.finish()


def _cancelled(by: str, attempts: int) -> Cancelled:
    return Cancelled(reason=f"stopped by {by} after {attempts} run{'' if attempts == 1 else 's'}")
