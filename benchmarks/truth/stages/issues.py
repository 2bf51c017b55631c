"""Bug reports: what is read from them, what counts as their failure, and the plan of a run."""

from __future__ import annotations

from typing import Any

from benchmarks.truth.inputs import SavedIssue
from benchmarks.truth.plain import chosen
from benchmarks.truth.stages.stage import Stage
from bot.cli.sources import from_text
from bot.issues.reading import issue
from bot.issues.signature import freeze
from bot.kernel.bug import Issue
from bot.kernel.job import ReproduceIssue, TrainingOptions
from bot.products.engine import plan
from bot.report import replies
from tests.golden.stages import PAGE, run


def issue_of(source: Any) -> Issue:
    """A bug report, parsed where it is a saved one."""
    if isinstance(source, SavedIssue):
        return from_text(source.text, source.name)
    assert isinstance(source, Issue)
    return source


def _saved(source: Any) -> object:
    found = issue_of(source)
    return found.model_copy(update={"body": found.body[:200]})


def _reading(source: Any) -> object:
    return issue.read_issue(issue_of(source))


def _signature(source: Any) -> object:
    return freeze.freeze(issue.read_issue(issue_of(source)))


def _plan(source: Any) -> object:
    return _planned(ReproduceIssue(issue=issue_of(source)))


def _diagnosed_plan(source: Any) -> object:
    return _planned(ReproduceIssue(issue=issue_of(source), training=TrainingOptions()))


def _planned(job: ReproduceIssue) -> object:
    """A plan without what other stages record."""
    programs = ("script", "others", "contrasts", "training")
    return chosen(plan(job), *programs, "spec", "verdict", "self_made", "hash", "runs_nothing")


def _waiting(source: Any) -> object:
    job = ReproduceIssue(issue=issue_of(source))
    asked = run()
    request = asked.request.model_copy(update={"job": job})
    waiting = asked.model_copy(update={"request": request})
    return replies.waiting(plan(job), waiting, page=PAGE)


STAGES = (
    Stage("reading", lambda inputs: inputs.issues, _reading),
    Stage("signature", lambda inputs: inputs.issues, _signature),
    Stage("plan", lambda inputs: inputs.issues, _plan),
    Stage("plan-of-diagnosis", lambda inputs: inputs.saved_issues, _diagnosed_plan),
    Stage("plan-comment", lambda inputs: inputs.saved_issues, _waiting),
    Stage("saved-issue", lambda inputs: inputs.saved_issues, _saved),
)
