"""A folder of training programs, each diagnosis compared with its key."""

from __future__ import annotations

from pathlib import Path
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
    TrainingPython,
)
from bot.cli.error_boundary import boundary
from bot.kernel.errors import UserError
from bot.kernel.job import EnvironmentOptions, JobOptions, ModelLimits, RunLimits
from bot.kernel.settings import load


def faults(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Contains cases/*.json, keys/*.json and perhaps healthy/*.json.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    only: Only = "",
    jobs: Annotated[int, typer.Option(min=1, help="Cases to run in parallel.", metavar="N")] = 1,
    sandbox: SandboxName = "auto",
    python: TrainingPython = None,
    timeout: Annotated[float, typer.Option(help="Seconds per program.", metavar="S")] = 900,
    out: Kept = None,
    budget: Annotated[
        str, typer.Option(help="Time for trainings that confirm the findings.", metavar="Nx")
    ] = "0",
    fresh: Annotated[bool, typer.Option("--fresh", help="Run finished cases again.")] = False,
    model: Annotated[
        str | None, typer.Option(help="Model that gives a second opinion.", metavar="NAME")
    ] = None,
    max_cost: ModelCost = 1.0,
    max_tokens: ModelTokens = 200_000,
    record: Record = None,
    replay: Replay = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
    generate: Annotated[
        Path | None,
        typer.Option(help="Write a folder of mutants instead; needs --python.", metavar="DIR"),
    ] = None,
    families: Annotated[
        str, typer.Option(help="Mutate the programs of this folder; dev: the project's own.")
    ] = "dev",
    code: Annotated[
        bool, typer.Option("--code", help="Generate mutants whose fault is code.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="Maximum runs of a mutant.", min=3, metavar="N")] = 6,
    most: Annotated[int, typer.Option("--max", help="Maximum mutants; 0: all.", metavar="N")] = 0,
) -> None:
    """Diagnose a folder of training programs and compare the findings with the answer keys.

    Stored traces are judged again by the current rules. With --generate, make such a folder:
    programs with one known fault each that a statistical test distinguishes from the original,
    and the originals.
    """
    with boundary():
        if generate and python:
            _generate(generate, python, families, seeds, most, code=code)
            return
        if generate or not folder:
            raise UserError("Nothing to do.", "Name a folder of cases, or --generate and --python.")
        from benchmarks.cassettes import Cassettes
        from benchmarks.commands.printing import print_whole, printed
        from benchmarks.fault_runs import Bench, find, run
        from benchmarks.fault_tables import faults_table, line
        from benchmarks.faults import summarise
        from bot.cli.options import times
        from sandbox.select import choose

        settings = load()
        options = JobOptions(
            environment=EnvironmentOptions(sandbox=sandbox),
            limits=RunLimits(timeout_s=timeout),
            model=ModelLimits(name=model, max_cost=max_cost, max_tokens=max_tokens),
        )
        cassettes = Cassettes(record=record, replay=replay) if model or replay else None
        kept = out or settings.runs_dir / "faults"
        trials = times(budget, or_none=True)
        bench = Bench(settings, options, choose(sandbox), kept, python, fresh, cassettes, trials)
        cases = find(folder, [each for each in only.split(",") if each])
        whole = summarise(printed(run(cases, bench, jobs), line))
        print_whole(whole, faults_table, as_json=as_json)


def _generate(out: Path, python: Path, families: str, seeds: int, most: int, *, code: bool) -> None:
    from rich.console import Console

    from benchmarks.mutants.family import FOLDER, load as load_families
    from benchmarks.mutants.generate import generate
    from benchmarks.mutants.summary import table

    console = Console(stderr=True)
    where = FOLDER if families == "dev" else Path(families)
    trials = generate(
        load_families(where),
        out,
        python,
        seeds=seeds,
        most=most,
        code=code,
        say=lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True),
    )
    typer.echo(table(trials))
