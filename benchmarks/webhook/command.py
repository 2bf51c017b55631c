"""`python -m benchmarks webhook`: its options and its exit code."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.cli.error_boundary import OTHER, boundary
from bot.kernel.errors import UserError


def webhook(
    rates: Annotated[
        str, typer.Option(help="Deliveries per second, separated by commas.", metavar="N,...")
    ] = "100,300",
    seconds: Annotated[
        float, typer.Option(min=1.0, help="Seconds of load at each rate.", metavar="N")
    ] = 20.0,
    database: Annotated[
        str,
        typer.Option(
            help="URL of an empty database. Default: a new SQLite file.",
            metavar="URL",
            show_default=False,
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Load the server with signed deliveries and compare its response times with a bare
    synchronous disk write.
    """
    with boundary():
        # imported here: `python -m benchmarks --help` needs none of it
        from rich.console import Console

        from benchmarks.webhook.measure import measure
        from benchmarks.webhook.table import sentences, table

        progress = Console(stderr=True, highlight=False)
        result = measure(_rates(rates), seconds, progress.print, database)
        if as_json:
            typer.echo(result.model_dump_json(indent=2))
        else:
            console = Console(highlight=False)
            console.print(table(result))
            console.print(sentences(result))
        if not result.good:
            raise typer.Exit(OTHER)


def _rates(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(
        part.isascii() and part.isdigit() and 1 <= int(part) <= 5_000 for part in parts
    ):
        raise UserError(
            f"--rates {text} is not a list of rates.",
            "Give whole numbers from 1 to 5000, such as --rates 100,300.",
        )
    return tuple(dict.fromkeys(int(part) for part in parts))
