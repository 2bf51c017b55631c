"""A training program that is run in a folder of its own: what diagnose, probe and repair share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console

from bot import bootstrap
from bot.adapters import program_files
from bot.adapters.model.cassette import Recording
from bot.adapters.model.configured import configured
from bot.adapters.run_folder import training
from bot.adapters.run_folder.folder import EXCHANGE_FILE, Folder
from bot.cli.error_boundary import say
from bot.cli.progress import LiveLine, PlainLines, losses_on, shown_on
from bot.cli.runner import choose_sandbox, working_in
from bot.models.bug import Issue
from bot.models.diagnosis import DiagnosedRun, TrainingProgram
from bot.models.job import Job, Options
from bot.pipeline import diagnosis
from bot.pipeline.diagnosis import RecordedRun, wanted
from bot.pipeline.diagnosis.opinion import second_opinion
from bot.pipeline.execution.runner import Session
from bot.pipeline.search.model_budget import ModelBudget
from bot.render.document import Document
from bot.render.terminal import print_document
from bot.settings import Settings, load


@dataclass(frozen=True)
class TrainingWork:
    """A training program that is run in a folder of its own."""

    folder: Folder
    session: Session
    settings: Settings
    view: PlainLines

    def record(self, program: TrainingProgram) -> RecordedRun:
        """Run the program with the probe, and keep what that leaves."""
        job = self.session.job
        spec = wanted.spec(program, job.options, job.issue.title)
        on_loss = losses_on(self.view) if isinstance(self.view, LiveLine) else None
        recorded = diagnosis.record_run(program, spec, self.session, on_loss)
        training.keep_run(self.folder.path, recorded.result)
        return recorded

    def judge(self, program: TrainingProgram, recorded: RecordedRun) -> DiagnosedRun:
        """What the rules say of a run, and a model where one is configured."""
        session, run = self.session, diagnosis.diagnosed(recorded)
        budget = ModelBudget(session.ports, session.job.options, session.ports.clock())
        return second_opinion(run, recorded.trace, program, session, budget)


def read(path: Path, arguments: tuple[str, ...]) -> TrainingProgram:
    """A program with the files beside it."""
    program, left_out = program_files.read(path, arguments)
    if left_out:
        most = f"{program_files.MOST_BYTES // 1_000_000} MB, {program_files.MOST_FILES} files"
        say(f"Not copied beside the program (over {most}): {', '.join(left_out[:5])}.")
    return program


@contextmanager
def working(
    name: str, options: Options, out: Path | None, *, resumed: bool = False
) -> Iterator[TrainingWork]:
    """A folder, ports and a view of progress for a program. `resumed`: what a model has answered
    there is not asked again.
    """
    settings, sandbox = load(), choose_sandbox(options)
    job = Job(issue=Issue(title=name, body=""), options=options)
    now = datetime.now().astimezone()
    path = out or bootstrap.run_folder(job.issue, settings.runs_dir, now)
    mute = "model" in options.without
    model = None if mute else configured(settings, options.model or "")
    with working_in(path, settings) as (folder, cancel), shown_on(errors()) as listener:
        if not resumed:
            (folder.path / EXCHANGE_FILE).unlink(missing_ok=True)
        ports = bootstrap.ports(
            options, settings,
            journal=folder, listener=listener, cancel=cancel, sandbox=sandbox,
            model=Recording(model, folder) if model is not None else None,
        )  # fmt: skip
        bootstrap.sweep(sandbox, settings)
        yield TrainingWork(folder, Session.begin(job, ports), settings, listener)


def for_people(whole: Document) -> str:
    """A document as standard output shows it."""
    console = Console()
    colour = console.is_terminal and not console.no_color and console.color_system is not None
    return print_document(whole, console.width, sys.stdout.encoding or "utf-8", colour=colour)


def errors() -> Console:
    """The console that progress is shown on."""
    return Console(stderr=True)
