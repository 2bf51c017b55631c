"""Run one proof of a finished run and update its report."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from rich.console import Console

from bot import bootstrap
from bot.adapters.run_folder.folder import Folder, kept_job, kept_report
from bot.cli.arguments import DEFAULT_PROOF_MINUTES
from bot.cli.error_boundary import DEFECT, OTHER, boundary, code, opened, stoppable
from bot.cli.output import choose_sandbox, show
from bot.cli.progress import shown_on
from bot.errors import Stopped, UserError
from bot.models.attempt import Script
from bot.models.job import Job, Proof
from bot.models.note import Interruption
from bot.models.report import Report
from bot.ports import Ports
from bot.render.proof_terminal import ProofRequest
from bot.settings import Settings, load

Work = Callable[[Report, Job, Ports], Report]


@dataclass(frozen=True)
class ProofCommand:
    """A proof command: its run folder, its limits, and the options that only it has. `swapped`
    are these with the two commits of a bisection swapped.
    """

    proof: Proof
    run: Path
    minutes: float
    sandbox: str
    more: tuple[str, ...] = ()
    swapped: tuple[str, ...] = ()

    def job(self) -> Job:
        """The job of the run, with this command's limits."""
        job = kept_job(self.run)
        limits = {"proof_minutes": self.minutes, "sandbox": self.sandbox}
        return job.model_copy(update={"options": job.options.model_copy(update=limits)})

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
    folder: Folder = opened(into or command.run)
    cancel = Event()
    guarded = boundary(lambda: folder.path, lambda: settings.secrets)
    with closing(folder), guarded, stoppable(cancel):
        copied = into is not None and given is None
        found = _prove(command, work, report, folder, cancel, settings, given, copied=copied)
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
        show(found, settings, folder, as_json=as_json, proof=telling)
        if command.proof in found.defects:
            return DEFECT
        return OTHER if cut_short else code(found)


def _prove(
    command: ProofCommand,
    work: Work,
    report: Report,
    folder: Folder,
    cancel: Event,
    settings: Settings,
    given: Script | None,
    *,
    copied: bool,
) -> Report:
    job = command.job()
    sandbox = choose_sandbox(job.options)
    with shown_on(Console(stderr=True)) as listener:
        try:
            return bootstrap.prove(
                report, job, settings, folder, work,
                listener=listener, cancel=cancel, sandbox=sandbox, given=given,
                run=command.run if copied else None,
            )  # fmt: skip
        except (UserError, Stopped):
            folder.discard()
            raise
