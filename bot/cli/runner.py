"""Run one job, or one proof of a finished run, with progress, Ctrl-C and an exit code."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event

from rich.console import Console

from bot import bootstrap
from bot.adapters.run_folder.folder import Folder, defect, kept_job, kept_report
from bot.cli.arguments import DEFAULT_PROOF_MINUTES, SandboxName
from bot.cli.error_boundary import DEFECT, OTHER, boundary, code, opened, say, stoppable
from bot.cli.progress import shown_on
from bot.errors import Stopped, UserError
from bot.models.attempt import Script
from bot.models.job import Interruption, JobOptions, Proof, ProofOptions, ReproduceIssue
from bot.models.report import Report
from bot.ports import Model, Ports
from bot.render.proof_terminal import ProofRequest, proof_terminal
from bot.render.report_json import report_text
from bot.render.terminal import terminal
from bot.settings import Settings, load
from sandbox.port import Sandbox, SandboxUnavailable
from sandbox.select import choose

Work = Callable[[Report, ReproduceIssue, Ports], Report]


@contextmanager
def working_in(path: Path, settings: Settings) -> Iterator[tuple[Folder, Event]]:
    """A run folder, and the event that Ctrl-C sets, while something works in it."""
    folder, cancel = opened(path), Event()
    guarded = boundary(lambda: folder.path, lambda: settings.secrets)
    with closing(folder), guarded, stoppable(cancel):
        yield folder, cancel


def run_job(
    job: ReproduceIssue,
    out: Path | None,
    *,
    as_json: bool,
    bundled: bool = False,
    model: Model | None = None,
) -> int:
    """Return the exit code. `model` replaces the configured one; `bundled` marks our own issue."""
    settings = load()
    sandbox = choose_sandbox(job, bundled=bundled)
    now = datetime.now().astimezone()
    path = out or bootstrap.run_folder(job.name, settings.runs_dir, now)
    with working_in(path, settings) as (folder, cancel):
        with shown_on(Console(stderr=True)) as listener:
            report = bootstrap.reproduce(
                job, settings, folder,
                listener=listener, cancel=cancel, sandbox=sandbox, model=model,
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
    given: Script | None = None,
    package: str = "",
) -> int:
    """Return the exit code. The report goes into the run's own folder, or into `into`."""
    settings, report = load(), kept_report(command.run)
    with working_in(into or command.run, settings) as (folder, cancel):
        job, copied = command.job(), into is not None and given is None
        sandbox = choose_sandbox(job)
        try:
            with shown_on(Console(stderr=True)) as listener:
                found = bootstrap.prove(
                    report, job, settings, folder, work,
                    listener=listener, cancel=cancel, sandbox=sandbox, given=given,
                    run=command.run if copied else None,
                )  # fmt: skip
        except (UserError, Stopped):
            folder.discard()
            raise
        cut_short = found.cut_short.get(command.proof)
        longer = 2 if cut_short is Interruption.OUT_OF_TIME else 1
        telling = ProofRequest(
            proof=command.proof,
            run=str(folder.path),
            again=command.line(folder.path, command.more, longer),
            swapped=command.line(folder.path, command.swapped) if command.swapped else "",
            notes=found.notes_on(command.proof),
            before=report if given is None else None,
            package=package,
        )
        _show(found, settings, folder, as_json=as_json, proof=telling)
        if command.proof in found.defects:
            return DEFECT
        return OTHER if cut_short else code(found)


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
    report: Report,
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
