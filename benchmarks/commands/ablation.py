"""What each part is worth, from recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from benchmarks.commands.arguments import Kept, Only, SandboxName
from bot.cli.error_boundary import OTHER, boundary, stoppable
from bot.kernel.errors import UserError
from bot.kernel.job import PARTS, EnvironmentOptions, IssueOptions, Part
from bot.kernel.settings import load


def ablation(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Contains cases/*.json and keys/*.json.", metavar="DIR", show_default=False
        ),
    ],
    replay: Annotated[
        Path,
        typer.Option(
            help="Recorded exchanges, one file per case.", metavar="CASSETTES", show_default=False
        ),
    ],
    parts: Annotated[
        str,
        typer.Option(
            help=f"Parts to skip in turn, of {', '.join(PARTS)}.",
            metavar="PART,...",
            show_default=False,
        ),
    ] = "",
    only: Only = "",
    jobs: Annotated[int, typer.Option(min=1, help="Cases to run in parallel.", metavar="N")] = 1,
    sandbox: SandboxName = "auto",
    out: Kept = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished cases again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Skip each part in turn and replay the recorded answers, to measure what each part
    contributes.
    """
    with boundary():
        from rich.console import Console

        from benchmarks import ablation as leaving
        from benchmarks.board import Board
        from benchmarks.cassettes import Cassettes
        from benchmarks.reproducing import reproducer
        from benchmarks.runner import find_cases, run_cases
        from benchmarks.summary import Row
        from bot.cli import options
        from sandbox.select import choose

        settings, cancel, cassettes, hands = (
            load(),
            Event(),
            Cassettes(replay=replay),
            choose(sandbox),
        )
        found = find_cases(folder, [each for each in only.split(",") if each])
        cases = [case for case in found if cassettes.of(case.id) is not None]
        if not cases:
            raise UserError(
                f"{replay} holds no cassette of a case of {folder}.",
                "Record some with: python -m benchmarks issues --record.",
            )

        def run(without: tuple[Part, ...], place: Path) -> list[Row]:
            rows, board = list[Row](), Board(Console(stderr=True), len(cases))
            work = reproducer(
                settings,
                IssueOptions(environment=EnvironmentOptions(sandbox=sandbox), without=without),
                hands,
                cancel,
                cassettes=cassettes,
            )
            with board:
                for row in run_cases(
                    cases, place, work, jobs=jobs, fresh=fresh, cancel=cancel, hear=board.listener
                ):
                    rows.append(row)
                    board.ended(row)
            return rows

        with stoppable(cancel):
            rows = leaving.ablate(
                run, out or settings.runs_dir / "ablation", options.parts(parts) or PARTS
            )
        if as_json:
            typer.echo(json.dumps([row.model_dump(mode="json") for row in rows], indent=2))
        else:
            Console().print(leaving.ablation_table(rows))
        if cancel.is_set():
            raise typer.Exit(OTHER)
