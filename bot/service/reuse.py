"""A proof that is asked for by name goes on from a run of the same report that was reproduced: that is not done again."""

from __future__ import annotations

from bot.models.job import Job
from bot.models.report import Report
from bot.models.run import Run, RunState
from bot.service.ports import Store

_BESIDE = {"package", "proof_minutes", "without"}
"""Options that say what follows a verdict, not how it is come by."""


def earlier(store: Store, run: Run, me: str) -> Report | None:
    """The report to go on from: of the newest run before this one with the same report, unchanged, and the same options. The
    attempts that it begins with, their programs and logs become this run's.
    """
    if run.request.proof is None:
        return None
    where, number = run.request.repository.full_name, run.request.number
    done = store.runs(repository=where, number=number, states=(RunState.FINISHED,))
    same = (each for each in done if each.created_at < run.created_at and _alike(each.request.job, run.request.job))
    newest = next((each for each in same if each.verdict == "reproduced"), None)
    report = store.report(newest.id) if newest is not None else None
    if newest is None or report is None:
        return None
    if report.reconstruction is not None and "model" in run.request.job.options.without:
        return None  # an approval is for the programs that were shown, none of which is a model's
    scripts = [store.script(newest.id, row.number) for row in report.attempts]
    for row, script in zip(report.attempts, scripts, strict=True):
        if script is None or not store.note_attempt(run.id, me, row, script, store.log(newest.id, row.number)):
            return None
    return report


def _alike(one: Job, other: Job) -> bool:
    same = (one.issue.title, one.issue.body) == (other.issue.title, other.issue.body)
    return same and one.options.model_dump(exclude=_BESIDE) == other.options.model_dump(exclude=_BESIDE)
