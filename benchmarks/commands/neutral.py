"""Other ground truths of a folder of training programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.arguments import Kept, Only, SandboxName, TrainingPython
from bot.cli.error_boundary import boundary
from bot.models.job import Options
from bot.settings import load


def neutral(
    folder: Annotated[
        Path, typer.Argument(help="Contains cases/*.json and keys/*.json.", metavar="DIR")
    ],
    budget: Annotated[
        float,
        typer.Option(
            help="Time for each search, as a multiple of the faulty program's.", metavar="N"
        ),
    ] = 200,
    only: Only = "",
    jobs: Annotated[int, typer.Option(min=1, help="Cases to run in parallel.", metavar="N")] = 1,
    sandbox: SandboxName = "auto",
    python: TrainingPython = None,
    timeout: Annotated[float, typer.Option(help="Seconds per training.", metavar="S")] = 600,
    out: Kept = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Find other configurations of faulty programs that learn as well as the key's repair.

    Neighbours that differ in one hyperparameter, breadth first, with paired seeds. Trials are kept:
    a stopped run goes on, and a larger budget goes further.
    """
    with boundary():
        from benchmarks.commands.printing import heard, print_whole
        from benchmarks.fault_runs import find
        from benchmarks.neutral_runs import NeutralBench, line, neutral_table, run
        from benchmarks.recorded_programs import BenchRuns
        from sandbox.select import choose

        settings = load()
        options = Options(sandbox=sandbox, timeout_s=timeout)
        kept = out or settings.runs_dir / "neutral"
        bench = BenchRuns(settings, options, choose(sandbox), kept, python, budget)
        cases = find(folder, [each for each in only.split(",") if each])
        rows = heard(run(cases, bench, jobs), line)
        whole = NeutralBench(cases=tuple(sorted(rows, key=lambda row: row.id)))
        print_whole(whole, neutral_table, as_json=as_json)
