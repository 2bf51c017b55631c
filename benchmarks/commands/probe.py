"""What the training probe changes and costs."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.cli.error_boundary import OTHER, boundary
from bot.cli.options import Device


def probe(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Idioms by name, or files; all that the device can run by default.", metavar="NAME"
        ),
    ] = None,
    python: Annotated[
        str, typer.Option(help="Python with the frameworks installed.", metavar="PATH")
    ] = "python3",
    device: Device = "cpu",
    turns: Annotated[int, typer.Option(min=1, help="Runs of each kind.", metavar="N")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run training programs with and without the probe: the same end, the same losses, the CPU time
    that it adds, and how much later the diagnosis ends than the program alone.
    """
    with boundary():
        import json

        from benchmarks import probing

        rows = []
        paths = probing.programs(tuple(names or ()), device)
        for found in probing.compared(paths, python, turns, device):
            rows.append(probing.row(found))
            if not as_json:
                typer.echo("  ".join(f"{key} {value}" for key, value in rows[-1].items()))
        if as_json:
            typer.echo(json.dumps({"cases": rows}, indent=2))
        if any(row["failed"] or row["crashed"] or not row["identical"] for row in rows):
            raise typer.Exit(OTHER)
