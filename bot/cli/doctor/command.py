"""`reprise doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.cli.error_boundary import USER, boundary
from bot.settings import load, secrets


@boundary(secrets=secrets)
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check what works on this machine. Prints how to fix the rest."""
    from rich.console import Console

    from bot.cli.doctor import checkup

    findings = checkup.examine(load())
    shown = checkup.as_json(findings) if as_json else checkup.as_text(findings, Console().width)
    typer.echo(shown, nl=False)
    raise typer.Exit(0 if findings.ready else USER)
