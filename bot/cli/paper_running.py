"""What `reprise paper` does; it returns the exit code."""

import sys
from datetime import datetime
from functools import partial
from pathlib import Path

from bot.app import bootstrap
from bot.cli.runner import choose_sandbox, errors, for_people, shown_on, training_watch, working_in
from bot.kernel.errors import Stopped, TransientError, UserError
from bot.kernel.job import ReproducePaper
from bot.kernel.outside_text import rewritten
from bot.kernel.redaction import redact
from bot.kernel.report import PaperReport
from bot.kernel.settings import Settings, load
from bot.papers.sections import paper_document
from bot.papers.verdicts import PAPER_KINDS
from bot.products.engine import execute
from bot.report import run_folder
from bot.report.comment import arranged
from bot.report.html import paper_page
from bot.report.paper_json import paper_text
from bot.report.run_folder import Folder

_SET_MODEL = "Name it with --model, and set REPRISE_MODEL_URL to its endpoint."


def run_paper(job: ReproducePaper, out: Path | None, *, as_json: bool) -> int:
    """Reproduce a number of a paper into a run folder."""
    settings, sandbox = load(), choose_sandbox(job)
    now = datetime.now().astimezone()
    path = out or bootstrap.run_folder(job.name, settings.runs_dir, now)
    with working_in(path, settings) as (folder, cancel):
        folder.begin(job)
        with shown_on(errors()) as view:
            model = bootstrap.model_of(job, settings, folder)
            if job.no_repo and model is None:
                folder.discard()
                raise UserError("--no-repo needs a model, and none is set.", _SET_MODEL)
            ports = bootstrap.make_ports(
                settings,
                sandbox=sandbox, journal=folder, listener=view, cancel=cancel, model=model,
                training=training_watch(view, folder.path), data=job.environment.data,
                own_paths=True,
            )  # fmt: skip
            bootstrap.sweep(sandbox, settings, view)
            try:
                report = execute(job, ports)
            except (UserError, TransientError, Stopped):
                folder.discard()
                raise
        return _show(report, folder, settings, as_json=as_json)


def _show(report: PaperReport, folder: Folder, settings: Settings, *, as_json: bool) -> int:
    """Write the report, print it for people or as JSON, and return the exit code."""
    report = rewritten(report, partial(redact, secrets=settings.secrets))
    document = paper_document(report, str(folder.path))
    text = paper_text(report)
    environment = report.environment
    lock = {"environment.lock": environment.lock} if environment and environment.lock else {}
    code = report.result.code.files if report.result.code is not None else {}
    files = {name: text for name, text in code.items() if run_folder.inside(name)}
    run_folder.keep_plot(folder.path / run_folder.SVG, report.result.curves)
    folder.put(
        {
            **lock,
            **{f"{run_folder.CODE}/{name}": text for name, text in files.items()},
            "report.md": arranged(document, elsewhere="in the run folder"),
            "report.html": paper_page(document),
            run_folder.STATE: report.model_dump_json(),
            run_folder.REPORT: text,
        }
    )
    sys.stdout.write(text if as_json else for_people(document))
    sys.stdout.flush()
    return PAPER_KINDS[report.result.verdict.kind].exit_code
