"""What the commands that run something have in common: which sandbox, and how a report is shown in the end."""

from __future__ import annotations

import sys
from functools import partial

from rich.console import Console

from bot import exits
from bot.adapters.folder import Folder, defect
from bot.models.job import Options
from bot.models.report import Report
from bot.render.found import Telling, found
from bot.render.report_json import report_text
from bot.render.terminal import terminal
from bot.settings import Settings
from sandbox.port import Sandbox, SandboxUnavailable
from sandbox.select import choose


def chosen(options: Options, *, bundled: bool = False) -> Sandbox:
    """The sandbox; the bundled issue is ours, so it may run unprotected where nothing else works."""
    try:
        found = choose(options.sandbox)
    except SandboxUnavailable:
        if not bundled or options.sandbox != "auto":
            raise
        exits.say("No isolating sandbox works here (see reprise doctor); the bundled issue runs as a plain process.")
        found = choose("process")
    if found.name == "process":
        exposed = found.check().exposes
        exits.say(
            "A plain process does not protect: " + "; ".join(exposed) + "." if exposed else "A plain process protects nothing."
        )
    return found


def show(report: Report, settings: Settings, folder: Folder, *, as_json: bool, told: Telling | None = None) -> None:
    """The report on standard output, for people or as JSON. With `told` people are shown that proof alone."""
    if as_json:
        sys.stdout.write(report_text(report, secrets=settings.secrets))
    else:
        console = Console()
        colour = console.is_terminal and not console.no_color and console.color_system is not None
        view = partial(terminal, report, run=str(folder.path)) if told is None else partial(found, report, told)
        sys.stdout.write(
            view(width=console.width, colour=colour, secrets=settings.secrets, encoding=sys.stdout.encoding or "utf-8")
        )
    sys.stdout.flush()
    for proof in report.defects:
        kept = folder.path / defect(proof)
        exits.say(f"Reprise failed in its own code ({proof}). The details are in {kept}; please report it with them.")
