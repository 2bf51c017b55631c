"""A training program that is run in a folder of its own: what diagnose, probe and repair share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from rich.console import Console

from bot import bootstrap
from bot.adapters import program_files
from bot.adapters.run_folder import training
from bot.adapters.run_folder.folder import EXCHANGE_FILE
from bot.cli.error_boundary import say
from bot.cli.progress import LiveLine, PlainLines, losses_on, shown_on
from bot.cli.runner import choose_sandbox, working_in
from bot.models.diagnosis import TrainingProgram
from bot.models.job import ProgramJob
from bot.models.repair import Trial
from bot.ports import Ports, TrainingWatch
from bot.render.document import Document
from bot.render.phrases import repair as phrases
from bot.render.terminal import print_document
from bot.settings import Settings, load


@dataclass(frozen=True)
class TrainingWork:
    """Where a job on a training program runs: its folder, the world, and a view of progress."""

    folder: Path
    ports: Ports
    settings: Settings
    view: PlainLines


def read(path: Path, arguments: tuple[str, ...]) -> TrainingProgram:
    """A program with the files beside it."""
    program, left_out = program_files.read(path, arguments)
    if left_out:
        most = f"{program_files.MOST_BYTES // 1_000_000} MB, {program_files.MOST_FILES} files"
        say(f"Not copied beside the program (over {most}): {', '.join(left_out[:5])}.")
    return program


@contextmanager
def working(job: ProgramJob, out: Path | None, *, resumed: bool = False) -> Iterator[TrainingWork]:
    """A folder, ports and a view of progress for a program. `resumed`: what a model has answered
    there is not asked again.
    """
    settings, sandbox = load(), choose_sandbox(job)
    now = datetime.now().astimezone()
    path = out or bootstrap.run_folder(job.name, settings.runs_dir, now)
    with working_in(path, settings) as (folder, cancel), shown_on(errors()) as view:
        if not resumed:
            (folder.path / EXCHANGE_FILE).unlink(missing_ok=True)
        ports = bootstrap.ports(
            settings,
            sandbox=sandbox, journal=folder, listener=view, cancel=cancel,
            model=bootstrap.model_of(job, settings, folder),
            training=_watch(view, folder.path),
        )  # fmt: skip
        bootstrap.sweep(sandbox, settings)
        yield TrainingWork(folder.path, ports, settings, view)


def _watch(view: PlainLines, folder: Path) -> TrainingWatch:
    def trial(made: Trial) -> None:
        view.update(phrases.trained(made))

    return TrainingWatch(
        loss=losses_on(view) if isinstance(view, LiveLine) else None,
        recorded=partial(training.keep_run, folder),
        trial=trial,
    )


def for_people(whole: Document) -> str:
    """A document as standard output shows it."""
    console = Console()
    colour = console.is_terminal and not console.no_color and console.color_system is not None
    return print_document(whole, console.width, sys.stdout.encoding or "utf-8", colour=colour)


def errors() -> Console:
    """The console that progress is shown on."""
    return Console(stderr=True)
