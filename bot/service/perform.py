"""One run from lease to comment: the engine works, a narrator keeps the lease and tells the issue, then the verdict is told."""

from __future__ import annotations

import logging
from functools import partial
from importlib import metadata
from threading import Event

from bot.errors import BuildError, Stopped, TransientError, UserError
from bot.models.attempt import Attempt
from bot.models.delivery import Repository
from bot.models.dialogue import Usage
from bot.models.job import Job, Options
from bot.models.report import Report
from bot.models.run import NewRun, Run, RunState
from bot.models.verdict import AnyVerdict, BudgetReached, Cancelled, SetupFailed
from bot.render import links, sticky, words
from bot.render import plan as plans
from bot.render.requests import asked
from bot.render.sanitize import prose, redact
from bot.service import publish, reuse
from bot.service.lease import kept
from bot.service.narrator import Narrator
from bot.service.office import Office, owner
from bot.service.ports import Beat, CloneToken, Gone, Task, Throttled
from bot.service.recording import StoreRecorder
from sandbox.port import SandboxError

_log = logging.getLogger(__name__)
_AGAIN_S = 30.0
_MOST_TELLINGS = 20
_OFF_S = 60.0
_STANDS = "the verdict stands, what was to follow it is not complete"
_DECIDED = frozenset({"reproduced", "not_reproduced", "different_failure", "inconclusive"})


def perform(office: Office, run_id: str, stop: Event) -> None:
    """Look at a run: work on it when it is queued, tell the issue when it is only to be told."""
    me = owner()
    if _held_back(office, run_id):
        return
    run = office.store.take_run(run_id, me, office.house.lease_s)
    if run is None:
        return
    try:
        _look(office, run, me, stop)
    finally:
        _next(office, run)


def _held_back(office: Office, run_id: str) -> bool:
    """A kill switch holds what has not begun; it is looked at again in a while. Stopping and telling go on."""
    run = office.store.run(run_id)
    if run is None or run.state is not RunState.QUEUED or run.cancelled_by:
        return False
    if not office.switched_off(run.request.installation, run.request.repository):
        return False
    office.queue.offer(Task(kind="run", id=run.id, device=run.request.device, turn=run.turn), _OFF_S)
    return True


def _look(office: Office, run: Run, me: str, stop: Event) -> None:
    try:
        if run.state is RunState.RUNNING and not _worked(office, run, me, stop):
            return
        _tell(office, run, me)
    except Throttled as error:
        _later(office, run, me, error.after_s)
    except Gone as error:
        _log.info("run %s: nowhere to tell it: %s", run.id, error)
        office.store.finish_run(run.id, me)
    except (TransientError, SandboxError) as error:
        _log.warning("run %s: %s", run.id, error)
        _again(office, run, me, error)
    except UserError as error:
        _fail(office, run, me, f"{error} {error.fix}")
    except Exception as error:
        _fail(office, run, me, redact(f"{type(error).__name__}: {error}", office.house.secrets)[:500])
        raise


def _next(office: Office, run: Run) -> None:
    """One run of an issue at a time: the next one was turned away while this one was under way."""
    where, number = run.request.repository.full_name, run.request.number
    waiting = office.store.runs(repository=where, number=number, states=(RunState.QUEUED,))
    if others := [each for each in waiting if each.id != run.id]:
        oldest = others[-1]
        office.queue.offer(Task(kind="run", id=oldest.id, device=oldest.request.device, turn=oldest.turn))


def _worked(office: Office, run: Run, me: str, stop: Event) -> bool:
    """Have the engine work; True when there is a report to tell."""
    if run.takes > office.house.takes and not run.cancelled_by:
        _fail(office, run, me, f"given up after {run.takes - 1} tries that ended without a result")
        return False
    earlier = reuse.earlier(office.store, run, me) if not run.cancelled_by else None
    if earlier is not None:
        earlier = earlier.model_copy(update={"notes": tuple(note for note in earlier.notes if not note.endswith(_STANDS))})
    cancel, recorder = Event(), StoreRecorder(office.store, run.id, me)
    if run.cancelled_by:
        final = _unstarted(run.request.job, _cancelled(run.cancelled_by, recorder.count), office.store.attempts(run.id))
    else:
        with Narrator(office, run, me, recorder, cancel, stop) as narrator:
            report = _engine(office, run, recorder, narrator, cancel, earlier)
            broken_off = cancel.is_set()
        report = _without_defects(office, run, report)
        if narrator.lost:
            return False
        ended = _ended_early(office, run, narrator, report) if broken_off else report
        if ended is None:
            _spent(office, run, report)
            _later(office, run, me, 0.0)
            return False
        final = ended
    put = office.store.put_report(run.id, me, final)
    if put:  # a run that is only told once more never comes here
        _spent(office, run, final)
    return put


def _without_defects(office: Office, run: Run, report: Report) -> Report:
    """The report to be kept; the tracebacks of our own errors go to the log."""
    for proof, told in report.defects.items():
        _log.error("run %s: a defect ended %s\n%s", run.id, proof, redact(told, office.house.secrets))
    return report.model_copy(update={"defects": {}})


def _ended_early(office: Office, run: Run, narrator: Narrator, report: Report) -> Report | None:
    """The report of a run that was stopped: without a verdict it says why, with one it says so beside it. None when nobody
    wanted that but the worker, which is about to end: another goes on with it.
    """
    verdict: AnyVerdict
    if narrator.over_time:
        why = f"stopped after the {office.house.run_minutes} minutes that a run may take"
        verdict = BudgetReached(reason=why)
    elif by := (office.store.run(run.id) or run).cancelled_by:
        why = f"stopped by {by}"
        verdict = _cancelled(by, len(report.attempts))
    else:
        return None
    if report.verdict.kind == "cancelled":
        return report.model_copy(update={"verdict": verdict})
    return report.model_copy(update={"notes": (f"{why}: {_STANDS}", *report.notes)})


def _spent(office: Office, run: Run, report: Report) -> None:
    """Count what models cost; a run that is begun again asks them again, and both cost."""
    used = report.cost
    if used.calls:
        tokens = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        office.store.note_cost(run.id, calls=used.calls, usd=used.usd, **tokens)


def _engine(
    office: Office, run: Run, recorder: StoreRecorder, narrator: Narrator, cancel: Event, earlier: Report | None
) -> Report:
    job = run.request.job
    try:
        clone = _clone_token(office, run.request) if job.options.repo else None
        work = partial(office.engine, job, recorder=recorder, listener=narrator, cancel=cancel, clone=clone)
        if earlier is not None:
            try:
                # What models cost was counted with the run that asked them.
                return work(earlier=earlier).model_copy(update={"cost": Usage()})
            except Stopped:
                return _unstarted(job, Cancelled(reason="stopped on request"))
            except (UserError, BuildError) as error:
                _log.info("run %s does not go on from an earlier one: %s", run.id, error)
        return work()
    except UserError as error:
        return _unstarted(job, SetupFailed(reason=" ".join(filter(None, [str(error), error.fix]))))


def _clone_token(office: Office, request: NewRun) -> CloneToken | None:
    """Public repositories are cloned without any token."""
    return office.github.clone_token(publish.target(request)) if request.repository.private else None


def clone_of(repository: Repository, options: Options, wish: str) -> str | None:
    """Whether the repository itself is installed from a clone, and from where."""
    if wish == "never" or not repository.clone_url:
        return None
    return repository.clone_url if wish == "always" or repository.private or options.ref else None


def _cancelled(by: str, attempts: int) -> Cancelled:
    return Cancelled(reason=f"stopped by {by} after {attempts} run{'' if attempts == 1 else 's'}")


def _unstarted(job: Job, verdict: AnyVerdict, attempts: tuple[Attempt, ...] = ()) -> Report:
    return Report(issue=job.issue, verdict=verdict, attempts=attempts, version=metadata.version("reprise"))


def _tell(office: Office, run: Run, me: str) -> None:
    """The final comment, the label and the reaction; each may be done again without harm."""
    report = office.store.report(run.id)
    if report is None:
        raise TransientError(f"the report of run {run.id} is not there")
    if _renew(office, run, me).lost:
        return
    with kept(lambda: _renew(office, run, me), office.house.lease_s / 4):
        if run.request.state is RunState.WAITING and not run.approved_by:
            publish.close_plan(office, run, plans.withdrawn(run))
        else:
            _show_verdict(office, run, report)
    office.store.finish_run(run.id, me)


def _show_verdict(office: Office, run: Run, report: Report) -> None:
    """The sticky comment, the label, the reaction. A run that was stopped before it did anything takes no verdict away."""
    before = _earlier(office, run)
    if report.verdict.kind == "cancelled" and not report.attempts and before is not None:
        shown, told = before, office.store.report(before.id) or report
    else:
        shown, told = run, report
    ends = [asked(shown), *(prose(note) for note in told.notes[:1] if note.endswith(_STANDS))]
    if shown is run and before is not None:
        ends.append(links.own(f"an earlier run: {words.TITLES[before.verdict].lower()}", office.page(before)))
    body = sticky.final(told, page=office.page(shown), secrets=office.house.secrets, ends=tuple(filter(None, ends)))
    publish.show(office, run, body)
    if office.config(publish.target(run.request)).labels:
        publish.label(office, run, told.verdict.kind)
    publish.react(office, run.request, "+1")


def _earlier(office: Office, run: Run) -> Run | None:
    """The newest run of the issue that came to a verdict by running something."""
    where = run.request.repository.full_name
    done = office.store.runs(repository=where, number=run.request.number, states=(RunState.FINISHED,))
    return next((each for each in done if each.id != run.id and each.verdict in _DECIDED), None)


def _renew(office: Office, run: Run, me: str) -> Beat:
    return office.store.beat(run.id, me, office.house.lease_s, "report", "telling the issue")


def _later(office: Office, run: Run, me: str, after_s: float) -> None:
    turn = office.store.defer_run(run.id, me, after_s)
    office.queue.offer(Task(kind="run", id=run.id, device=run.request.device, turn=turn), after_s)


def _again(office: Office, run: Run, me: str, error: Exception) -> None:
    """The world did not cooperate: later again, more patiently each time."""
    current = office.store.run(run.id) or run
    most = _MOST_TELLINGS if current.state is RunState.REPORTED else office.house.takes
    if current.takes >= most:
        _fail(office, current, me, str(error))
    else:
        _later(office, run, me, _AGAIN_S * 2 ** min(current.takes - 1, 6))


def _fail(office: Office, run: Run, me: str, error: str) -> None:
    """Say on the issue that this one is on us, as far as GitHub can be reached."""
    _log.error("run %s failed: %s", run.id, error)
    try:
        with kept(lambda: _renew(office, run, me), office.house.lease_s / 4):
            publish.show(office, run, sticky.failed(run, office.page(run)))
            publish.react(office, run.request, "confused")
    except (TransientError, UserError) as untold:
        _log.warning("run %s: its failure could not be told: %s", run.id, untold)
    office.store.finish_run(run.id, me, error)
