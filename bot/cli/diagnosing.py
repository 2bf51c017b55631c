"""What `reprise diagnose`, `probe` and `rules` do; each returns the exit code or a text."""

import json
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
from bot.adapters.files import write
from bot.adapters.model.cassette import Recording
from bot.adapters.model.configured import configured
from bot.adapters.run_folder import training
from bot.adapters.run_folder.folder import EXCHANGES, Folder, kept_job, kept_report
from bot.cli.error_boundary import OTHER, say
from bot.cli.progress import LiveLine, PlainLines, losses_on, shown_on
from bot.cli.runner import choose_sandbox, working_in
from bot.errors import BuildError, UserError
from bot.models.bug import Issue
from bot.models.diagnosis import DiagnosedRun, TrainingProgram
from bot.models.environment import Environment
from bot.models.job import Job, Options
from bot.pipeline import diagnosis
from bot.pipeline.diagnosis import RecordedRun, endings, of_issue, wanted
from bot.pipeline.diagnosis.opinion import second_opinion
from bot.pipeline.execution.runner import Session
from bot.pipeline.search.model_budget import ModelBudget
from bot.render.diagnosis_json import diagnosis_text
from bot.render.sections.diagnosis import document
from bot.render.terminal import print_document
from bot.rules.diagnosis import RULES
from bot.settings import Settings, load
from bot.text.sanitize import redact, rewritten

_DIAGNOSED = 0


@dataclass(frozen=True)
class _Work:
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

    def show(
        self, run: DiagnosedRun, name: str, environment: Environment | None, *, as_json: bool
    ) -> int:
        """Write the diagnosis, print it for people or as JSON, and return the exit code."""
        hide = partial(redact, secrets=self.settings.secrets)
        run, folder = rewritten(run, hide), self.folder.path
        training.keep_plot(folder, run)
        sandbox = self.session.ports.sandbox.name
        self.view.stop()
        text = diagnosis_text(
            run, program=name, environment=environment, sandbox=sandbox, hide=hide
        )
        write(folder / training.JSON, text)
        sys.stdout.write(text if as_json else _for_people(run, name, str(folder)))
        sys.stdout.flush()
        return OTHER if run.undecided else _DIAGNOSED


def diagnose(
    source: Path, arguments: tuple[str, ...], options: Options, out: Path | None, *, as_json: bool
) -> int:
    """Diagnose a program, or the program of a finished run."""
    if source.is_dir():
        return _of_run(source, options, as_json=as_json)
    program, environment = _read(source, arguments), None
    with _working(source.stem, options, out) as work:
        try:
            recorded = work.record(program)
            environment, run = recorded.environment, work.judge(program, recorded)
        except BuildError as error:
            run = DiagnosedRun(undecided=f"its environment could not be built: {error}")
        return work.show(run, source.name, environment, as_json=as_json)


def probe(source: Path, arguments: tuple[str, ...], options: Options, out: Path | None) -> int:
    """Record a program and print the path of its trace."""
    program = _read(source, arguments)
    with _working(source.stem, options, out) as work:
        try:
            recorded = work.record(program)
        except BuildError as error:
            raise UserError(str(error), "Name versions with --with or --python.") from None
        undecided = endings.undecided(recorded.result, recorded.trace)
        work.view.stop()
        sys.stdout.write(f"{work.folder.path / training.TRACE}\n")
        if undecided:
            say(f"The trace says nothing about training: {undecided}.")
        return OTHER if undecided else _DIAGNOSED


def _of_run(path: Path, options: Options, *, as_json: bool) -> int:
    """Diagnose the program of a finished run in its own environment, and update its report."""
    settings, report, job = load(), kept_report(path), kept_job(path)
    job = job.model_copy(update={"options": _limited(job.options, options)})
    sandbox = choose_sandbox(job.options)
    with working_in(path, settings) as (folder, cancel), shown_on(_errors()) as listener:
        found = bootstrap.prove(
            report, job, settings, folder, of_issue.of_report,
            listener=listener, cancel=cancel, sandbox=sandbox,
        )  # fmt: skip
        notes = [note.text for note in found.notes if note not in report.notes]
        run = found.diagnosis if not notes else None
        run = run or DiagnosedRun(undecided="; ".join(notes) or "there is nothing to train")
        ports = bootstrap.ports(job.options, settings, recorder=folder, listener=listener,
                                cancel=cancel, sandbox=sandbox)  # fmt: skip
        work = _Work(folder, Session.begin(job, ports), settings, listener)
        name = found.script.entry if found.script is not None else path.name
        return work.show(run, name, found.environment, as_json=as_json)


def _limited(kept: Options, options: Options) -> Options:
    """The options of a finished run with the limits of this command."""
    names = ("sandbox", "timeout_s", "device", "model", "max_cost", "max_tokens", "without")
    limits = {name: getattr(options, name) for name in names}
    return kept.model_copy(update={**limits, "training_timeout_s": None})


def rules(*, as_json: bool) -> str:
    """Every rule with the faults that it names, and its source."""
    fields = ("id", "severity", "faults", "sentence", "sources")
    rows = [{field: getattr(rule, field) for field in fields} for rule in RULES]
    if as_json:
        return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    return "\n".join(
        f"{row['id']} ({', '.join(row['faults'])})\n  {row['sentence']}\n  {row['sources']}\n"
        for row in rows
    )


def _read(path: Path, arguments: tuple[str, ...]) -> TrainingProgram:
    program, left_out = program_files.read(path, arguments)
    if left_out:
        most = f"{program_files.MOST_BYTES // 1_000_000} MB, {program_files.MOST_FILES} files"
        say(f"Not copied beside the program (over {most}): {', '.join(left_out[:5])}.")
    return program


@contextmanager
def _working(name: str, options: Options, out: Path | None) -> Iterator[_Work]:
    settings, sandbox = load(), choose_sandbox(options)
    job = Job(issue=Issue(title=name, body=""), options=options)
    now = datetime.now().astimezone()
    path = out or bootstrap.run_folder(job.issue, settings.runs_dir, now)
    mute = "model" in options.without
    model = None if mute else configured(settings, options.model or "")
    with working_in(path, settings) as (folder, cancel), shown_on(_errors()) as listener:
        (folder.path / EXCHANGES).unlink(missing_ok=True)
        ports = bootstrap.ports(
            options, settings,
            recorder=folder, listener=listener, cancel=cancel, sandbox=sandbox,
            model=Recording(model, folder) if model is not None else None,
        )  # fmt: skip
        bootstrap.sweep(sandbox, settings)
        yield _Work(folder, Session.begin(job, ports), settings, listener)


def _errors() -> Console:
    return Console(stderr=True)


def _for_people(run: DiagnosedRun, name: str, folder: str) -> str:
    console = Console()
    colour = console.is_terminal and not console.no_color and console.color_system is not None
    whole = document(run, name=name, folder=folder)
    return print_document(whole, console.width, sys.stdout.encoding or "utf-8", colour=colour)
