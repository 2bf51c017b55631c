"""What a killed command leaves behind."""

from __future__ import annotations

from typing import Annotated

import typer

from benchmarks.commands.arguments import WhichSandbox
from bot.cli.error_boundary import OTHER, boundary


def killing(
    times: Annotated[
        int, typer.Option(min=1, help="Number of kills per sandbox.", metavar="N")
    ] = 20,
    sandbox: WhichSandbox = "each",
    seed: Annotated[int, typer.Option(help="Random seed for the kill times.", metavar="N")] = 0,
) -> None:
    """Kill the command line at random moments; no trace may remain, and the next run must
    succeed.
    """
    with boundary():
        from rich.console import Console

        from benchmarks.containers import containers_of
        from benchmarks.killing import Kill, kill_runs
        from benchmarks.tables import kills_table

        console, kills = Console(stderr=True), list[Kill]()
        for name in _working() if sandbox == "each" else (sandbox,):
            console.print(f"{name}: warming up, then {times} kills")
            for kill in kill_runs(name, times, containers_of(name), seed=seed):
                kills.append(kill)
                console.print(
                    f"  killed after {kill.after_s:.2f} s: {'clean' if kill.clean else 'NOT CLEAN'}"
                )
        Console().print(kills_table(kills))
        if not all(kill.clean for kill in kills):
            raise typer.Exit(OTHER)


def _working() -> tuple[str, ...]:
    from sandbox.port import SandboxUnavailable
    from sandbox.select import kinds

    names = tuple(one.name for one in kinds() if one.check().works)
    if not names:
        raise SandboxUnavailable("no sandbox works here")
    return names
