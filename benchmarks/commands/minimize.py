"""The minimizer compared with general reducers, and on programs of repositories."""

from __future__ import annotations

from pathlib import Path
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
    programs: Annotated[
        Path | None,
        typer.Option(
            help="Folder of NAME.json: commands that fail in repositories; needs --clones.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    clones: Annotated[
        Path | None,
        typer.Option(help="Folder of clones, OWNER+NAME each.", metavar="DIR", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Compare the minimizer with general reducers on failing training scripts, with one oracle.
    With --programs, make scripts of commands that fail in repositories.
    """
    with boundary():
        from rich.console import Console

        from benchmarks import minimise as smaller, minimise_programs
        from bot.environment.builder import UvBuilder
        from sandbox.select import choose

        chosen, console = choose(sandbox), Console(stderr=True)
        builder = UvBuilder(load().cache_dir, sandbox=choose("auto"))
        names = [each for each in only.split(",") if each]
        if programs is not None and clones is not None:
            results = []
            for name, case in minimise_programs.find_programs(programs, names).items():
                say = lambda text: console.print(text, markup=False, highlight=False)  # noqa: E731
                results.append(
                    minimise_programs.minimise_case(
                        name, case, clones, (chosen, builder), say, seconds=60 * minutes
                    )
                )
            table = minimise_programs.describe_programs(results)
            typer.echo("\n".join(row.model_dump_json() for row in results) if as_json else table)
            return
        built, rows = smaller.environment(builder), list[smaller.ToolResult]()
        for name, (script, signature) in smaller.cases(names).items():
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
