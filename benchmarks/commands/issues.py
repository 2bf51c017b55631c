"""A folder of issues, each verdict compared with its key."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from benchmarks.commands.arguments import (
    Kept,
    ModelCost,
    ModelTokens,
    Only,
    Record,
    Replay,
    SandboxName,
)
from bot.cli.error_boundary import OTHER, boundary, stoppable
from bot.kernel.job import PARTS, EnvironmentOptions, IssueOptions, ModelLimits
from bot.kernel.settings import load


def issues(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Contains cases/*.json and keys/*.json.", metavar="DIR", show_default=False
        ),
    ],
    only: Only = "",
    jobs: Annotated[int, typer.Option(min=1, help="Cases to run in parallel.", metavar="N")] = 1,
    sandbox: SandboxName = "auto",
    out: Kept = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished cases again.")] = False,
    overhead: Annotated[
        bool, typer.Option("--overhead", help="Also run each final script bare, and compare.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(help="Model that writes missing programs.", metavar="NAME"),
    ] = None,
    max_cost: ModelCost = 1.0,
    max_tokens: ModelTokens = 200_000,
    max_calls: Annotated[
        int, typer.Option(help="Maximum model calls per case.", min=1, metavar="N")
    ] = 16,
    max_attempts: Annotated[
        int, typer.Option(help="Maximum programs per case.", min=1, max=50, metavar="N")
    ] = 6,
    minutes: Annotated[
        float,
        typer.Option(help="Stop asking the model after this many minutes.", min=0.1, metavar="M"),
    ] = 20,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Parts to skip: {', '.join(PARTS)}.", metavar="PART,...", show_default=False
        ),
    ] = None,
    clones: Annotated[
        Path | None,
        typer.Option(
            help="Folder of clones, OWNER+NAME each, for issues about their own programs.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    record: Record = None,
    replay: Replay = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Run a folder of issues and compare each verdict with its answer key."""
    with boundary():
        from rich.console import Console

        from benchmarks.board import Board
        from benchmarks.cassettes import Cassettes
        from benchmarks.reproducing import reproducer
        from benchmarks.runner import find_cases, run_cases
        from benchmarks.summary import Row, summarise
        from benchmarks.tables import issues_table
        from bot.cli import options as cli_options
        from sandbox.select import choose

        settings, cancel = load(), Event()
        cases = find_cases(folder, [each for each in only.split(",") if each])
        kept = out or settings.runs_dir / "bench"
        cassettes = Cassettes(record=record, replay=replay)
        options = IssueOptions(
            environment=EnvironmentOptions(sandbox=sandbox),
            model=ModelLimits(
                name=model,
                max_cost=max_cost,
                max_tokens=max_tokens,
                max_calls=max_calls,
                max_attempts=max_attempts,
                minutes=minutes,
            ),
            without=cli_options.parts(*without or ()),
        )
        rows: list[Row] = []
        board = Board(Console(stderr=True), len(cases))
        with stoppable(cancel), board:
            work = reproducer(
                settings,
                options,
                choose(sandbox),
                cancel,
                cassettes=cassettes,
                overhead=overhead,
                clones=clones,
            )
            for row in run_cases(
                cases, kept, work, jobs=jobs, fresh=fresh, cancel=cancel, hear=board.listener
            ):
                rows.append(row)
                board.ended(row)
        bench = summarise(rows)
        if as_json:
            typer.echo(bench.model_dump_json(indent=2))
        else:
            console = Console()
            Console(width=None if console.is_terminal else 160).print(issues_table(bench))
        if cancel.is_set():
            raise typer.Exit(OTHER)
