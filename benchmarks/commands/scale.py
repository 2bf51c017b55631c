"""What the App itself costs a run."""

from __future__ import annotations

from typing import Annotated

import typer

from benchmarks.commands.arguments import AsJson
from bot.cli.error_boundary import boundary
from bot.kernel.settings import host


def scale(
    runs: Annotated[int, typer.Option(min=1, help="Runs for each number.", metavar="N")] = 400,
    workers: Annotated[
        str, typer.Option(help="Numbers of workers, separated by commas.", metavar="N,...")
    ] = "1,2,4,8",
    sleep: Annotated[
        float,
        typer.Option(min=0, help="Seconds that the sandbox takes for a program run.", metavar="S"),
    ] = 0.1,
    as_json: AsJson = False,
) -> None:
    """Take runs whose sandbox does nothing through the App, with arq on Redis and PostgreSQL: the
    App's own cost of a run, and how many runs more workers take.
    """
    with boundary():
        from rich.console import Console

        from benchmarks.commands.printing import print_whole
        from benchmarks.scale.measure import Plan, scale as measure, scale_table

        console = Console(stderr=True)
        numbers = tuple(int(number) for number in workers.split(","))
        plan = Plan(runs, numbers, sleep, environ=host())
        result = measure(plan, lambda text: console.print(text))
        print_whole(result, scale_table, as_json=as_json)
