"""`reprise bench webhook`: its options, its table and its exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bot.errors import UserError
from bot.exits import OTHER, boundary
from handlers.bench.webhook import MOST_MB, MOST_RATIO, Result, measure


def webhook(
    node: Annotated[Path, typer.Option(help="Holds probot.mjs, and its packages after npm ci.", metavar="DIR")] = Path(
        "tests/node"
    ),
    rates: Annotated[str, typer.Option(help="Deliveries a second, with commas between.", metavar="N,...")] = "100,300",
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each server at each rate.", metavar="N")] = 3,
    seconds: Annotated[float, typer.Option(min=1.0, help="Length of a turn.", metavar="N")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON alone.")] = False,
) -> None:
    """Load the server with signed deliveries beside probot, which keeps nothing, and compare the answers."""
    with boundary():
        console = Console(stderr=True)
        result = measure(node, _rates(rates), rounds, seconds, lambda line: console.print(line, highlight=False))
        if as_json:
            typer.echo(result.model_dump_json(indent=2))
        else:
            out = Console()
            out.print(table(result))
            out.print(_sentences(result), highlight=False)
        if not result.good:
            raise typer.Exit(OTHER)


def _rates(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and 1 <= int(part) <= 5_000 for part in parts):
        raise UserError(
            f"--rates {text} is not a list of rates.", "Give whole numbers from 1 to 5000, such as --rates 100,300."
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


def table(result: Result) -> Table:
    """The figures, one line a server and rate."""
    shown = Table(title="Milliseconds from due to answered")
    for column in ("rate", "server", "requests", "refused", "p50", "p90", "p99", "max", "p99 ratio"):
        shown.add_column(column, justify="left" if column == "server" else "right")
    for each in result.figures:
        ratio = f"{result.ratios[each.rate]:.2f}" if each.server == "Reprise" else ""
        times = (f"{value:.2f}" for value in (each.p50_ms, each.p90_ms, each.p99_ms, each.max_ms))
        shown.add_row(f"{each.rate}/s", each.server, str(each.requests), str(each.refused), *times, ratio)
    return shown


def _sentences(result: Result) -> str:
    late = max(each.generator_late_p99_ms for each in result.figures)
    return (
        f"Reprise's process: {result.memory_mb:.0f} MB, at most {result.memory_peak_mb:.0f} MB (target: under {MOST_MB:.0f}).\n"
        f"Deliveries sent under different ids: {result.sent}; kept: {result.kept}.\n"
        f"The load generator's own lateness is in the figures: p99 {late:.2f} ms at most.\n"
        f"Target: p99 at most {MOST_RATIO} times probot's. {'Met.' if result.good else 'NOT MET.'}"
    )
