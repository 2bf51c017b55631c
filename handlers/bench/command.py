"""`reprise bench webhook`: its options and its exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.errors import UserError
from bot.exits import OTHER, boundary


def webhook(
    node: Annotated[Path, typer.Option(help="Holds probot.mjs, and its packages after npm ci.", metavar="DIR")] = Path(
        "tests/node"
    ),
    rates: Annotated[
        str, typer.Option(help="Deliveries a second, with commas between; the target holds at the first.", metavar="N,...")
    ] = "100,300",
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each server at each rate.", metavar="N")] = 3,
    seconds: Annotated[float, typer.Option(min=1.0, help="Length of a turn.", metavar="N")] = 10.0,
    database: Annotated[
        str, typer.Option(help="Address of an empty database; default a new SQLite file.", metavar="URL", show_default=False)
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Load the server with signed deliveries beside probot, which keeps nothing, and compare the answers."""
    with boundary():
        from rich.console import Console

        from handlers.bench.table import sentences, table  # the command line starts without what only this needs
        from handlers.bench.webhook import measure

        console = Console(stderr=True)
        result = measure(node, _rates(rates), rounds, seconds, lambda line: console.print(line, highlight=False), database)
        if as_json:
            typer.echo(result.model_dump_json(indent=2))
        else:
            out = Console()
            out.print(table(result))
            out.print(sentences(result), highlight=False)
        if not result.good:
            raise typer.Exit(OTHER)


def _rates(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and 1 <= int(part) <= 5_000 for part in parts):
        raise UserError(
            f"--rates {text} is not a list of rates.", "Give whole numbers from 1 to 5000, such as --rates 100,300."
        )
    return tuple(dict.fromkeys(int(part) for part in parts))
