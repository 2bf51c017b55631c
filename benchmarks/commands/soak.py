"""The App under a steady mixture of honest and hostile reports."""

from __future__ import annotations

from typing import Annotated

import typer

from benchmarks.commands.arguments import SandboxName
from bot.cli.error_boundary import OTHER, boundary
from bot.kernel.settings import host


def soak(
    minutes: Annotated[float, typer.Option(min=0.5, help="Duration.", metavar="M")] = 30,
    rate: Annotated[float, typer.Option(min=1, help="Deliveries per minute.", metavar="R")] = 10,
    honest: Annotated[
        float, typer.Option(min=0, max=1, help="Share of honest reports.", metavar="P")
    ] = 0.5,
    sandbox: SandboxName = "auto",
    seed: Annotated[
        int, typer.Option(help="Random seed for the order of reports.", metavar="N")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Deliver honest and hostile reports at a steady rate: memory must stay flat, nothing may be
    left behind, and every honest report must get its right verdict.
    """
    with boundary():
        from rich.console import Console

        from benchmarks.soak import outcome as figures, stream

        console = Console(stderr=True)
        plan = stream.Plan(
            minutes, rate, honest, sandbox, seed, every_s=min(5.0, minutes), environ=host()
        )
        outcome = stream.soak(plan, lambda text: console.print(text))
        typer.echo(outcome.model_dump_json(indent=2) if as_json else figures.told(outcome))
        if outcome.broken:
            raise typer.Exit(OTHER)
