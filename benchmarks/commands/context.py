"""The index of installed sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.error_boundary import boundary
from bot.kernel.errors import UserError
from bot.kernel.settings import load


def context(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Contains cases/*.json and keys/*.json: ranks the file that each fix changed.",
            metavar="[DIR]",
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(help="Root of an environment to index and query.", metavar="PATH"),
    ] = None,
    packages: Annotated[
        str,
        typer.Option(help="Distributions of the tree, separated by commas.", metavar="NAME,..."),
    ] = ("torch,transformers"),
    only: Annotated[
        str,
        typer.Option(
            help="Ids or prefixes of ids, separated by commas.",
            metavar="ID,...",
            show_default=False,
        ),
    ] = "",
    answers: Annotated[
        Path | None,
        typer.Option(
            help="Maps case ids to the relevant files, for keys that name none.", metavar="FILE"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Measure the source index, and the rank that it gives to the file that each fix
    changed.
    """
    with boundary():
        from benchmarks import context as contexts  # builds environments
        from benchmarks.runner import find_cases
        from bot.cli import sources
        from bot.environment.builder import UvBuilder
        from bot.kernel.source.indexer import SqliteIndexer
        from sandbox.select import choose

        if folder is None and tree is None:
            raise UserError("There is nothing to measure.", "Name a folder of cases, or --tree.")
        if tree is not None:
            figures = contexts.indexed(tree, [each for each in packages.split(",") if each])
            typer.echo(figures.model_dump_json(indent=2) if as_json else contexts.told(figures))
        if folder is not None:
            settings = load()
            builder, library = (
                UvBuilder(settings.cache_dir, sandbox=choose("auto")),
                SqliteIndexer(settings.cache_dir),
            )
            places = [
                contexts.placed(
                    each, sources.load(str(each.path), settings), builder, library, answers
                )
                for each in find_cases(folder, [start for start in only.split(",") if start])
            ]
            shown = (
                "\n".join(each.model_dump_json() for each in places)
                if as_json
                else contexts.told_places(places)
            )
            typer.echo(shown)
