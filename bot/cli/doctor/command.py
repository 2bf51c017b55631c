"""`reprise doctor`."""

from typing import Annotated

import typer

from bot.cli.error_boundary import USER, boundary
from bot.settings import load, secrets
from bot.text.sanitize import redact


@boundary(secrets=secrets)
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check what works on this machine. Prints how to fix the rest."""
    from rich.console import Console

    from bot.cli.doctor import checkup

    findings = checkup.examine(load())
    if as_json:
        typer.echo(redact(findings.model_dump_json(indent=2)))
    else:
        typer.echo(checkup.as_text(findings, Console().width), nl=False)
    raise typer.Exit(0 if findings.ready else USER)
