"""Runs one job, or one proof of a finished run, with progress, Ctrl-C and an exit code;
reads training programs from folders.
"""

import os
import shlex
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic

from rich.console import Console
from rich.status import Status
from rich.text import Text

from bot.app import bootstrap
from bot.cli.error_boundary import DEFECT, OTHER, boundary, code, open_folder, say, stoppable
from bot.cli.options import DEFAULT_PROOF_MINUTES, SandboxName
from bot.kernel.attempt import Script
from bot.kernel.document import Document
from bot.kernel.errors import Stopped, UserError
from bot.kernel.job import Interruption, JobOptions, ProgramJob, Proof, ProofOptions, ReproduceIssue
from bot.kernel.ports import Ports, Progress, TrainingWatch
from bot.kernel.report import IssueReport
from bot.kernel.scales import scale
from bot.kernel.settings import Settings, load
from bot.kernel.training_types import TrainingProgram, Trial
from bot.report import run_folder
from bot.report.comment import progress_line
from bot.report.report_json import report_text
from bot.report.run_folder import EXCHANGE_FILE, MARK, Folder, defect, kept_job, kept_report
from bot.report.terminal import ProofRequest, print_document, proof_terminal, terminal
from bot.training import phrases
from sandbox.port import Sandbox, SandboxUnavailable
from sandbox.select import choose

# What a person sees while a job runs, on standard error: a live line on a terminal, plain lines
# anywhere else.

_SELDOM_S = 30.0
_BARS, _LEVELS = 40, "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


class PlainLines(AbstractContextManager["PlainLines"]):
    """One line for each change, with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.line, self.since = "", monotonic()
        self.told = self.since

    def __call__(self, progress: Progress) -> None:
        """Print the line unless it repeats the last one."""
        line = progress_line(progress)
        if line != self.line:
            with suppress(OSError, ValueError):
                self.show(line)
            self.line = line

    def show(self, line: str) -> None:
        """Print a new line."""
        self.console.print(Text(f"{monotonic() - self.since:6.1f} s  {line}"), soft_wrap=True)

    def update(self, text: str) -> None:
        """Say how the present step goes on, twice a minute at most."""
        if monotonic() - self.told > _SELDOM_S:
            with suppress(OSError, ValueError):
                self.show(f"{self.line}: {text}")
            self.told = monotonic()

    def stop(self) -> None:
        """End the view before anything else is printed."""

    def __exit__(self, *_: object) -> None:
        self.stop()


class LiveLine(PlainLines):
    """A spinner with the current step; finished steps are above it with their seconds."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.status = Status("", console=console, spinner="dots")
        self.status.start()

    def show(self, line: str) -> None:
        """Show the new line; the finished one scrolls up."""
        if self.line:
            elapsed = f"  {monotonic() - self.since:.1f} s"
            self.console.print(Text(self.line + elapsed, style="dim"))
        self.since = monotonic()
        self.status.update(Text(line))

    def update(self, text: str) -> None:
        """Add to the spinner's line."""
        self.status.update(Text(f"{self.line}: {text}"))

    def stop(self) -> None:
        """Leave only the finished steps."""
        with suppress(OSError, ValueError):
            if self.line:
                self.show("")
            self.line = ""
            self.status.stop()


def losses_on(view: PlainLines) -> Callable[[int, float], None]:
    """What shows the last losses of a training run as a row of bars."""
    last: deque[float] = deque(maxlen=_BARS)

    def show_step(step: int, loss: float) -> None:
        last.append(loss)
        axis = scale(last)
        bars = "".join(_LEVELS[round(axis.at(value) * 7)] for value in last)
        view.update(f"step {step}, loss {loss:.4g} {bars}")

    return show_step


def shown_on(console: Console) -> PlainLines:
    """The view that fits the console."""
    live = console.is_terminal and not console.is_dumb_terminal
    return LiveLine(console) if live else PlainLines(console)


# A training program from a folder, with the files beside it.

MOST_BYTES, MOST_FILES = 64_000_000, 500
_MOST_FILES, _DEPTH = 20_000, 4
_MARKS = ("pyvenv.cfg", MARK)  # an environment, the folder of a run
_ASIDE = {"__pycache__", "node_modules", "site-packages", "reprise-runs", "build", "dist"}


def read_program(
    path: Path, arguments: tuple[str, ...] = ()
) -> tuple[TrainingProgram, tuple[str, ...]]:
    """The program, and the names of the files beside it that did not fit. Python files come first,
    then the smallest. Raises UserError when there is no such program.
    """
    if not path.exists():
        raise UserError(f"There is no file {path}.", "Check the path.")
    if not path.is_file() or path.suffix != ".py":
        raise UserError(
            f"{path} is not a Python file.", "Pass a training program, such as train.py."
        )
    root = path.resolve().parent
    files, left_out = {path.name: _bytes(path)}, []
    room = MOST_BYTES - len(files[path.name])
    for size, name in _beside(root, path.name):
        if size <= room and len(files) < MOST_FILES:
            files[name] = _bytes(root / name)
            room -= size
        else:
            left_out.append(name)
    return TrainingProgram(files=files, entry=path.name, arguments=arguments), tuple(left_out)


def _beside(root: Path, entry: str) -> list[tuple[int, str]]:
    files = [(path.stat().st_size, path.relative_to(root).as_posix()) for path in _visible(root)]
    others = (row for row in files if row[1] != entry)
    return sorted(others, key=lambda row: (not row[1].endswith(".py"), row))


def _visible(root: Path) -> Iterator[Path]:
    """Regular files below a folder; hidden ones, environments and caches are left out."""
    count = 0
    for folder, names, files in os.walk(root):
        deep = len(Path(folder).relative_to(root).parts) >= _DEPTH
        names[:] = [] if deep else [name for name in names if _plain(Path(folder) / name)]
        for path in (Path(folder) / name for name in files if not name.startswith(".")):
            count += 1
            if count > _MOST_FILES:
                return
            if path.is_file() and not path.is_symlink():
                yield path


def _plain(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in _ASIDE
    return not hidden and not any((folder / mark).exists() for mark in _MARKS)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"Cannot read {path} ({error.strerror}).", "Check the path.") from None


# Run one job, or one proof of a finished run, with progress, Ctrl-C and an exit code.

Work = Callable[[IssueReport, ReproduceIssue, Ports], IssueReport]


@contextmanager
def working_in(path: Path, settings: Settings) -> Iterator[tuple[Folder, Event]]:
    """A run folder, and the event that Ctrl-C sets, while something works in it."""
    folder, cancel = open_folder(path), Event()
    error_boundary = boundary(lambda: folder.path, lambda: settings.secrets)
    with closing(folder), error_boundary, stoppable(cancel):
        yield folder, cancel


def run_job(
    job: ReproduceIssue,
    out: Path | None,
    *,
    as_json: bool,
    bundled: bool = False,
    recording: Path | None = None,
) -> int:
    """Return the exit code. A recording answers in place of the configured model; `bundled` marks
    our own issue.
    """
    settings = load()
    sandbox = choose_sandbox(job, bundled=bundled)
    now = datetime.now().astimezone()
    path = out or bootstrap.run_folder(job.name, settings.runs_dir, now)
    with working_in(path, settings) as (folder, cancel):
        with shown_on(Console(stderr=True)) as listener:
            report = bootstrap.reproduce(
                job, settings, folder,
                listener=listener, cancel=cancel, sandbox=sandbox,
                model=bootstrap.recorded_model(recording),
            )  # fmt: skip
        _show(report, settings, folder, as_json=as_json)
        return code(report)


@dataclass(frozen=True)
class ProofCommand:
    """A proof command: its run folder, its limits, and the options that only it has. `swapped`
    are these with the two commits of a bisection swapped.
    """

    proof: Proof
    run: Path
    minutes: float
    sandbox: SandboxName
    more: tuple[str, ...] = ()
    swapped: tuple[str, ...] = ()

    def job(self) -> ReproduceIssue:
        """The job of the run, with this command's limits."""
        job = kept_job(self.run)
        proof = ProofOptions(minutes=self.minutes, package=job.proof.package)
        return limited(job, self.sandbox, proof)

    def line(self, folder: Path, more: tuple[str, ...], factor: float = 1) -> str:
        """The command that continues in `folder`, with `factor` times the time."""
        minutes = self.minutes * factor
        limits = [] if minutes == DEFAULT_PROOF_MINUTES else ["--minutes", f"{minutes:g}"]
        limits += ["--sandbox", self.sandbox] if self.sandbox != "auto" else []
        return shlex.join(["reprise", self.proof, str(folder), *more, *limits])


def run_proof(
    command: ProofCommand,
    work: Work,
    *,
    as_json: bool,
    into: Path | None = None,
    script: Script | None = None,
    package: str = "",
) -> int:
    """Return the exit code. The report goes into the run's own folder, or into `into`."""
    settings, report = load(), kept_report(command.run)
    with working_in(into or command.run, settings) as (folder, cancel):
        job, is_copy = command.job(), into is not None and script is None
        sandbox = choose_sandbox(job)
        try:
            with shown_on(Console(stderr=True)) as listener:
                proof_report = bootstrap.prove(
                    report, job, settings, folder, work,
                    listener=listener, cancel=cancel, sandbox=sandbox, script=script,
                    run=command.run if is_copy else None,
                )  # fmt: skip
        except (UserError, Stopped):
            folder.discard()
            raise
        cut_short = proof_report.cut_short.get(command.proof)
        longer = 2 if cut_short is Interruption.OUT_OF_TIME else 1
        telling = ProofRequest(
            proof=command.proof,
            run=str(folder.path),
            again=command.line(folder.path, command.more, longer),
            swapped=command.line(folder.path, command.swapped) if command.swapped else "",
            notes=proof_report.notes_on(command.proof),
            before=report if script is None else None,
            package=package,
        )
        _show(proof_report, settings, folder, as_json=as_json, proof=telling)
        if command.proof in proof_report.defects:
            return DEFECT
        return OTHER if cut_short else code(proof_report)


def limited(job: ReproduceIssue, sandbox: SandboxName, proof: ProofOptions) -> ReproduceIssue:
    """The job of a finished run with the limits of another command."""
    environment = job.environment.model_copy(update={"sandbox": sandbox})
    return job.model_copy(update={"environment": environment, "proof": proof})


def choose_sandbox(job: JobOptions, *, bundled: bool = False) -> Sandbox:
    """The sandbox. The bundled issue is our own code: it may run unprotected if nothing works."""
    try:
        sandbox = choose(job.environment.sandbox)
    except SandboxUnavailable:
        if not bundled or job.environment.sandbox != "auto":
            raise
        say(
            "No isolating sandbox works here (see reprise doctor). "
            "The bundled issue runs as a plain process."
        )
        sandbox = choose("process")
    if sandbox.name == "process":
        exposed = "; ".join(sandbox.check().exposes) or "anything"
        say(f"A plain process does not protect: {exposed}.")
    return sandbox


def _show(
    report: IssueReport,
    settings: Settings,
    folder: Folder,
    *,
    as_json: bool,
    proof: ProofRequest | None = None,
) -> None:
    """Print the report, for people or as JSON. With `proof` people see only that proof."""
    if as_json:
        sys.stdout.write(report_text(report, secrets=settings.secrets))
    else:
        console = Console()
        colour = console.is_terminal and not console.no_color and console.color_system is not None
        view = (
            partial(terminal, report, run=str(folder.path))
            if proof is None
            else partial(proof_terminal, report, proof)
        )
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(
            view(width=console.width, colour=colour, secrets=settings.secrets, encoding=encoding)
        )
    sys.stdout.flush()
    for name in report.defects:
        details = folder.path / defect(name)
        say(f"A bug in Reprise stopped {name}. Please report it with the details in {details}.")


# A training program that is run in a folder of its own: what diagnose, probe and repair share.


@dataclass(frozen=True)
class TrainingWork:
    """Where a job on a training program runs: its folder, the world, and a view of progress."""

    folder: Path
    ports: Ports
    settings: Settings
    view: PlainLines


def read_training(path: Path, arguments: tuple[str, ...]) -> TrainingProgram:
    """A program with the files beside it."""
    program, left_out = read_program(path, arguments)
    if left_out:
        most = f"{MOST_BYTES // 1_000_000} MB, {MOST_FILES} files"
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
        ports = bootstrap.make_ports(
            settings,
            sandbox=sandbox, journal=folder, listener=view, cancel=cancel,
            model=bootstrap.model_of(job, settings, folder),
            training=training_watch(view, folder.path),
        )  # fmt: skip
        bootstrap.sweep(sandbox, settings, view)
        yield TrainingWork(folder.path, ports, settings, view)


def training_watch(view: PlainLines, folder: Path) -> TrainingWatch:
    """What a view and a run folder keep of the trainings of a job."""

    def trial(trial_record: Trial) -> None:
        view.update(phrases.trained(trial_record))

    return TrainingWatch(
        loss=losses_on(view) if isinstance(view, LiveLine) else None,
        recorded=partial(run_folder.keep_run, folder),
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
