"""The App while something that it needs is broken."""

from __future__ import annotations

from typing import Annotated

import typer

from benchmarks.commands.arguments import SandboxName
from bot.cli.error_boundary import OTHER, boundary
from bot.kernel.errors import UserError
from bot.kernel.settings import host


def chaos(
    only: Annotated[
        str, typer.Option(help="Faults, separated by commas. Default: all.", metavar="NAME,...")
    ] = "",
    reports: Annotated[int, typer.Option(min=2, help="Reports for each fault.", metavar="N")] = 8,
    seconds: Annotated[
        float, typer.Option(min=1, help="How long a fault lasts.", metavar="S")
    ] = 20.0,
    settle: Annotated[
        float, typer.Option(min=1, help="Longest wait after a fault.", metavar="S")
    ] = 300.0,
    sandbox: SandboxName = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Break one thing after the other under a whole App: each report must end in exactly one run
    with its right verdict, and in one comment.
    """
    with boundary():
        import json

        from rich.console import Console

        from benchmarks.chaos.faults import FAULTS
        from benchmarks.chaos.measure import Plan, chaos as strike, chaos_table

        names = set(filter(None, only.split(",")))
        if unknown := names - {fault.name for fault in FAULTS}:
            raise UserError(
                f"There is no fault {', '.join(sorted(unknown))}.",
                f"Choose from {', '.join(fault.name for fault in FAULTS)}.",
            )
        console, outcomes = Console(stderr=True), []
        chosen = [fault for fault in FAULTS if not names or fault.name in names]
        plan = Plan(chosen, reports, 1.0, seconds, settle, sandbox, host())
        for outcome in strike(plan, console.print):
            outcomes.append(outcome)
            console.print(f"  {outcome.right} of {outcome.reports} right")
        if as_json:
            typer.echo(json.dumps([one.model_dump() for one in outcomes], indent=2))
        else:
            Console(width=160).print(chaos_table(outcomes))
        if not all(one.good for one in outcomes):
            raise typer.Exit(OTHER)
