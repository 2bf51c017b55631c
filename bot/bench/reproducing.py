"""One case of the bench as the command line would run it: as of its report, with a model, a recorded one or none."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from bot import bootstrap
from bot.adapters import source
from bot.adapters.folder import Folder
from bot.bench import overhead as costs
from bot.bench.cassettes import Cassettes
from bot.bench.runner import Case, Reproduce
from bot.models.job import Job, Options
from bot.models.report import Report
from bot.ports import Listener
from bot.settings import Settings
from sandbox.port import Sandbox
from sandbox.process import ProcessSandbox


def reproducer(
    settings: Settings,
    options: Options,
    sandbox: Sandbox,
    cancel: Event,
    *,
    cassettes: Cassettes | None = None,
    overhead: bool = False,
) -> Reproduce:
    """What `run_cases` calls for each case."""
    assert options.repo is None, "a clone would hold what came after the report"
    assert options.ref is None, "a place in a clone would hold what came after the report"
    tapes = cassettes or Cassettes()

    def once(case: Case, run: Path, listener: Listener) -> tuple[Report, dict[str, float]]:
        kept, tape = Folder(run), tapes.tape(case.id)
        try:
            job = Job(issue=source.load(str(case.path), settings), options=tapes.options(case.id, options))
            report = bootstrap.reproduce(job, settings, kept, listener=listener, cancel=cancel, sandbox=sandbox, model=tape)
        finally:
            kept.close()
        assert report.spec is None or report.spec.repo is None, "a model has seen what came after the report"
        tapes.keep(case.id, run)
        return report, {"missed": len(tape.missed()), "unused": len(tape.unused())} if tape is not None else {}

    def reproduce(case: Case, run: Path, listener: Listener) -> dict[str, float]:
        report, figures = once(case, run, listener)
        if not overhead or not report.attempts:
            return figures
        if not costs.was_warm(report):
            report, figures = once(case, run, listener)
        bare = costs.bare_seconds(report, ProcessSandbox(), cancel=cancel)
        ratio = costs.overhead(report, bare) if bare else None
        return figures if bare is None or ratio is None else figures | {"bare_seconds": bare, "overhead": ratio}

    return reproduce
