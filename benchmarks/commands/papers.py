"""A folder of papers with their repositories and keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.arguments import AsJson, Only, SandboxName
from bot.cli.error_boundary import boundary
from bot.kernel.settings import load

Papers = Annotated[
    Path,
    typer.Argument(
        help="Contains a folder for each paper: paper/, repo/ and expected.json with claim, "
        "verdict, criteria and contradictions.",
        metavar="DIR",
    ),
]


def papers(
    folder: Papers,
    only: Only = "",
    minutes: Annotated[
        float, typer.Option(help="Time for the runs of each paper.", metavar="M")
    ] = 30.0,
    mutants: Annotated[
        bool,
        typer.Option("--mutants", help="Change each implementation: is every change found?"),
    ] = False,
    mutant: Annotated[
        str, typer.Option(help="Only these mutants, such as digits-3.", metavar="IDS")
    ] = "",
    sandbox: SandboxName = "auto",
    as_json: AsJson = False,
) -> None:
    """Reproduce the number of each paper without a model, and compare with the keys."""
    with boundary():
        from benchmarks.commands.printing import print_whole
        from benchmarks.papers import cases, mutants_table, papers_table, run, run_mutants
        from sandbox.select import choose

        paths, world = cases(folder, only), (choose(sandbox), load(), minutes)
        if mutants:
            print_whole(run_mutants(paths, *world, mutant), mutants_table, as_json=as_json)
        else:
            print_whole(run(paths, *world), papers_table, as_json=as_json)
