"""A proof requested by name starts from an earlier reproduced run of the same report."""

from bot.models.job import Job
from bot.models.report import Report
from bot.models.run import Run, RunState
from bot.service.ports.store import RunHistory

_FOLLOWS = {"package", "proof_minutes", "without"}
"""Options about what follows a verdict, not about how it is reached."""


def earlier(store: RunHistory, run: Run, owner: str) -> Report | None:
    """The report of the newest earlier run with the same, unchanged issue and the same options.
    Its attempts, programs and logs are copied to this run. None when there is none.
    """
    newest = _newest_reproduced(store, run) if run.request.proof is not None else None
    report = store.report(newest.id) if newest is not None else None
    if newest is None or report is None:
        return None
    if report.reconstruction is not None and "model" in run.request.job.options.without:
        return None  # an approval is for the programs that were shown, none of which is a model's
    scripts = [store.script(newest.id, attempt.number) for attempt in report.attempts]
    for attempt, script in zip(report.attempts, scripts, strict=True):
        log = store.log(newest.id, attempt.number)
        if script is None or not store.note_attempt(run.id, owner, attempt, script, log):
            return None
    notes = tuple(note for note in report.notes if note.text != report.interrupted)
    return report.model_copy(update={"notes": notes, "interrupted": ""})


def _newest_reproduced(store: RunHistory, run: Run) -> Run | None:
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


def _same(one: Job, other: Job) -> bool:
    issue = (one.issue.title, one.issue.body) == (other.issue.title, other.issue.body)
    options = one.options.model_dump(exclude=_FOLLOWS)
    return issue and options == other.options.model_dump(exclude=_FOLLOWS)
