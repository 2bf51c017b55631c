"""Run one job into a run folder, with progress, Ctrl-C and an exit code."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from pathlib import Path
from threading import Event

from rich.console import Console

from bot import bootstrap
from bot.cli.error_boundary import boundary, code, opened, stoppable
from bot.cli.output import choose_sandbox, show
from bot.cli.progress import shown_on
from bot.models.job import Job
from bot.ports import Model
from bot.settings import load


def run_job(
    job: Job,
    out: Path | None,
    *,
    as_json: bool,
    bundled: bool = False,
    model: Model | None = None,
) -> int:
    """Return the exit code. `model` replaces the configured one; `bundled` marks our own issue."""
    settings = load()
    sandbox = choose_sandbox(job.options, bundled=bundled)
    now = datetime.now().astimezone()
    folder = opened(out or bootstrap.run_folder(job.issue, settings.runs_dir, now))
    cancel = Event()
    guarded = boundary(lambda: folder.path, lambda: settings.secrets)
    with closing(folder), guarded, stoppable(cancel):
        with shown_on(Console(stderr=True)) as listener:
            report = bootstrap.reproduce(
                job, settings, folder,
                listener=listener, cancel=cancel, sandbox=sandbox, model=model,
            )  # fmt: skip
        show(report, settings, folder, as_json=as_json)
        return code(report)
