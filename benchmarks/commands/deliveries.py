"""The App under kill -9."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.arguments import SandboxName
from bot.cli.error_boundary import OTHER, boundary
from bot.kernel.settings import host, load


def deliveries(
    count: Annotated[
        int, typer.Option(min=1, help="Total number of deliveries.", metavar="N")
    ] = 200,
    duplicates: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of duplicates.", metavar="P")
    ] = 0.3,
    kills: Annotated[
        int, typer.Option(min=0, help="Number of kills of web and worker processes.", metavar="N")
    ] = 50,
    rate: Annotated[float, typer.Option(min=0.1, help="Deliveries per second.", metavar="R")] = 2.0,
    sandbox: SandboxName = "auto",
    database: Annotated[
        str, typer.Option(help="Database URL. Default: a new SQLite file.", metavar="URL")
    ] = "",
    openapi: Annotated[
        Path | None,
        typer.Option(
            help="GitHub's api.github.com.json, to validate every request.", metavar="FILE"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Random seed for kill times and victims.", metavar="N")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Kill the App's processes while deliveries stream in: each issue must end in exactly one run
    and one verdict comment.
    """
    with boundary():
        from rich.console import Console

        from benchmarks import (
            deliveries as storms,  # a web server and a database, which no other bench needs
        )

        console, settings = Console(stderr=True), load()
        plan = storms.Plan(
            deliveries=count,
            duplicates=duplicates,
            kills=kills,
            rate=rate,
            sandbox=sandbox,
            database=database,
            seed=seed,
            openapi=openapi,
            cache=settings.cache_dir,
            environ=host(),
        )
        outcome = storms.storm(plan, lambda text: console.print(text))
        typer.echo(outcome.model_dump_json(indent=2) if as_json else storms.told(outcome))
        if not outcome.right:
            raise typer.Exit(OTHER)
