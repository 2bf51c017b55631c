"""One run from lease to verdict: the engine works, a progress reporter keeps the lease and updates
the issue, then the verdict is announced.
"""

import logging
from functools import partial
from importlib import metadata
from threading import Event

from bot.errors import BuildError, Stopped, TransientError, UserError
from bot.models.attempt import Attempt
from bot.models.dialogue import Usage
from bot.models.job import Note
from bot.models.journal import ATTEMPTS
from bot.models.report import AnyVerdict, BudgetReached, Cancelled, Report, SetupFailed
from bot.models.run import Run, RunState
from bot.pipeline import reporting
from bot.render import sticky
from bot.service import publish, recording
from bot.service.app_context import AppContext, heartbeat, new_owner, run_task
from bot.service.ports import CredentialsRefused, Gone, Throttled
from bot.service.publish import announce
from bot.service.pull_requests import automatic
from bot.service.recording import ProgressReporter, StoreJournal
from bot.text.sanitize import redact
from sandbox.port import SandboxError

_log = logging.getLogger(__name__)
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
    try:
        _Execution(context, run, owner).proceed(stop)
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
    def __init__(self, context: AppContext, run: Run, owner: str) -> None:
        self._context, self._run, self._owner = context, run, owner
        self._store, self._policy = context.store, context.policy

    def proceed(self, stop: Event) -> None:
        """Work and announce; every error ends in a retry or in a failed run."""
        try:
            if self._run.state is not RunState.RUNNING or self._work(stop):
                announce(self._context, self._run, self._owner, automatic)
        except Throttled as error:
            refused = isinstance(error, CredentialsRefused)
            self._defer(error.after_s, counted=False, refused=refused)
        except Gone as error:
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
        stored = self._store.put_report(run.id, self._owner, report)
        if stored:
            self._count_cost(report)
        return stored

    def _reproduce(self, stop: Event) -> Report | None:
        """The engine's report; None when another worker goes on with the run."""
        run, cancel = self._run, Event()
        earlier = recording.earlier(self._store, run, self._owner)
        journal = StoreJournal(self._store, run.id, self._owner)
        with ProgressReporter(self._context, run, self._owner, journal, cancel, stop) as progress:
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
        earlier: Report | None,
    ) -> Report:
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
                    # The run that asked the models has already counted their cost.
                    return work(earlier=earlier).model_copy(update={"cost": Usage()})
                except Stopped:
                    return self._empty_report(Cancelled(reason="stopped on request"))
                except (UserError, BuildError) as error:
                    _log.info("run %s starts over: %s", self._run.id, error)
            return work()
        except UserError as error:
            reason = " ".join(filter(None, [str(error), error.fix]))
            return self._empty_report(SetupFailed(reason=reason))

    def _log_defects(self, report: Report) -> Report:
        """Move the tracebacks of our own errors from the report to the log."""
        for proof, traceback in report.defects.items():
            hidden = redact(traceback, self._policy.secrets)
            _log.error("run %s: a defect ended %s\n%s", self._run.id, proof, hidden)
        return report.model_copy(update={"defects": {}})

    def _interrupted(self, report: Report, over_time: bool) -> Report | None:
        """The report with why it ended, as its verdict or a note; None when another goes on."""
        verdict: AnyVerdict
        if over_time:
            why = f"stopped at the limit of {self._policy.run_minutes} minutes per job"
            verdict = BudgetReached(reason=why)
        elif by := (self._store.run(self._run.id) or self._run).cancelled_by:
            why = f"stopped by {by}"
            verdict = _cancelled(by, len(report.attempts))
        else:
            return None
        if report.verdict.kind == "cancelled":
            return report.model_copy(update={"verdict": verdict})
        note = f"{why}: the verdict is final, but the proofs after it are incomplete"
        return report.model_copy(
            update={"notes": (Note(kind="run", text=note), *report.notes), "interrupted": note}
        )

    def _empty_report(self, verdict: AnyVerdict, attempts: tuple[Attempt, ...] = ()) -> Report:
        issue, version = self._run.request.job.issue, metadata.version("reprise")
        kept = reporting.within_limit(attempts)
        return Report(issue=issue, verdict=verdict, attempts=kept, version=version)

    def _count_cost(self, report: Report) -> None:
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
        reported = current.state is RunState.REPORTED
        if current.takes >= (_MOST_ANNOUNCEMENTS if reported else self._policy.takes):
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
                publish.show(context, run, sticky.failed(run, context.page(run)))
                publish.react(context, run.request, "confused")
        except (TransientError, UserError) as error:
            _log.warning("run %s: the failure is not on GitHub: %s", run.id, error)


def _cancelled(by: str, attempts: int) -> Cancelled:
    return Cancelled(reason=f"stopped by {by} after {attempts} run{'' if attempts == 1 else 's'}")
