"""The minimizer compared with general reducers."""

from __future__ import annotations

from typing import Annotated

import typer

from benchmarks.commands.arguments import SandboxName
from bot.cli.error_boundary import boundary
from bot.kernel.settings import load


def minimize(
    only: Annotated[
        str,
        typer.Option(help="Names, separated by commas.", metavar="NAME,...", show_default=False),
    ] = "",
    tools: Annotated[
        str,
        typer.Option(
            help="Which tools, separated by commas: reprise, lithium, shrinkray.",
            metavar="NAME,...",
        ),
    ] = "reprise,lithium",
    minutes: Annotated[
        float,
        typer.Option(help="Time limit for shrinkray per case.", min=0.1, metavar="M"),
    ] = 15,
    sandbox: SandboxName = "process",
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Compare the minimizer with general reducers on failing training scripts, with one oracle."""
    with boundary():
        from rich.console import Console

        from benchmarks import minimise as smaller
        from bot.environment.builder import UvBuilder
        from sandbox.select import choose

        chosen, console = choose(sandbox), Console(stderr=True)
        builder = UvBuilder(load().cache_dir)
        built, rows = smaller.environment(builder), list[smaller.ToolResult]()
        for name, (script, signature) in smaller.cases(
            [each for each in only.split(",") if each]
        ).items():
            say = lambda text: console.print(text, markup=False, highlight=False)  # noqa: E731
            rows += smaller.reduced(
                name,
                script,
                signature,
                (chosen, builder),
                built,
                say,
                smaller.known(tools),
                most_s=60 * minutes,
            )
        typer.echo(
            "\n".join(row.model_dump_json() for row in rows) if as_json else smaller.told(rows)
        )
