"""What commands that run something share: choosing the sandbox and showing the report."""

from __future__ import annotations

import sys
from functools import partial

from rich.console import Console

from bot.adapters.run_folder.folder import Folder, defect
from bot.cli.error_boundary import say
from bot.models.job import Options
from bot.models.report import Report
from bot.render.proof_terminal import ProofRequest, proof_terminal
from bot.render.report_json import report_text
from bot.render.terminal import terminal
from bot.settings import Settings
from sandbox.port import Sandbox, SandboxUnavailable
from sandbox.select import choose


def choose_sandbox(options: Options, *, bundled: bool = False) -> Sandbox:
    """The sandbox. The bundled issue is our own code: it may run unprotected if nothing works."""
    try:
        sandbox = choose(options.sandbox)
    except SandboxUnavailable:
        if not bundled or options.sandbox != "auto":
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


def show(
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
        sys.stdout.write(_human_view(report, settings, folder, proof))
    sys.stdout.flush()
    for name in report.defects:
        details = folder.path / defect(name)
        say(f"A bug in Reprise stopped {name}. Please report it with the details in {details}.")


def _human_view(
    report: Report, settings: Settings, folder: Folder, proof: ProofRequest | None
) -> str:
    console = Console()
    colour = console.is_terminal and not console.no_color and console.color_system is not None
    if proof is None:
        view = partial(terminal, report, run=str(folder.path))
    else:
        view = partial(proof_terminal, report, proof)
    encoding = sys.stdout.encoding or "utf-8"
    return view(width=console.width, colour=colour, secrets=settings.secrets, encoding=encoding)
