"""One case of the bench as the command line would run it: as of its report, with a model, a
recorded one or none.
"""

from __future__ import annotations

from pathlib import Path
from threading import Event

from benchmarks import overhead as costs
from benchmarks.cassettes import Cassettes
from benchmarks.runner import Case, Reproduce
from bot.app import bootstrap
from bot.cli import sources
from bot.kernel.bug import Issue
from bot.kernel.job import IssueOptions, ReproduceIssue
from bot.kernel.ports import Listener
from bot.kernel.report import IssueReport
from bot.kernel.settings import Settings
from bot.report.run_folder import Folder
from sandbox.port import Sandbox
from sandbox.process import ProcessSandbox


def reproducer(
    settings: Settings,
    options: IssueOptions,
    sandbox: Sandbox,
    cancel: Event,
    *,
    cassettes: Cassettes | None = None,
    overhead: bool = False,
    clones: Path | None = None,
) -> Reproduce:
    """What `run_cases` calls for each case. `clones` has a clone for each repository whose own
    programs are reported on, as `owner+name` or below it; only the last commit before the report
    is looked at.
    """
    environment = options.environment
    assert environment.repo is None, "a clone would hold what came after the report"
    assert environment.ref is None, "a place in a clone would hold what came after the report"
    cassettes = cassettes or Cassettes()

    def once(case: Case, run: Path, listener: Listener) -> tuple[IssueReport, dict[str, float]]:
        kept, cassette = Folder(run), cassettes.of(case.id)
        try:
            own = dict(cassettes.options(case.id, options))
            job = ReproduceIssue(issue=sources.load(str(case.path), settings), **own)
            clone = _clone(job.issue, clones)
            if clone is not None:
                repo = environment.model_copy(update={"repo": str(clone)})
                job = job.model_copy(update={"environment": repo})
            report = bootstrap.reproduce(
                job,
                settings,
                kept,
                listener=listener,
                cancel=cancel,
                sandbox=sandbox,
                model=cassette,
            )
        finally:
            kept.close()
        assert clone or report.spec is None or report.spec.repo is None, (
            "a model has seen what came after the report"
        )
        cassettes.keep(case.id, run)
        return report, {
            "missed": len(cassette.missed()),
            "unused": len(cassette.unused()),
        } if cassette is not None else {}

    def reproduce(case: Case, run: Path, listener: Listener) -> dict[str, float]:
        report, figures = once(case, run, listener)
        if not overhead or not report.attempts:
            return figures
        if not costs.was_warm(report):
            report, figures = once(case, run, listener)
        bare = costs.bare_seconds(report, ProcessSandbox(), cancel=cancel)
        ratio = costs.overhead(report, bare) if bare else None
        return (
            figures
            if bare is None or ratio is None
            else figures | {"bare_seconds": bare, "overhead": ratio}
        )

    return reproduce


def _clone(issue: Issue, clones: Path | None) -> Path | None:
    """The clone of an issue's repository, where there is one and the issue has a day."""
    if clones is None or not issue.repository or issue.created_at is None:
        return None
    below = clones / issue.repository.replace("/", "+")
    places = (below / "repo", below / "repo" / ".git", below, below / ".git")
    return next((place for place in places if (place / "HEAD").is_file()), None)
