"""A folder of papers with their repositories and keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.arguments import AsJson, Kept, Only, Record, SandboxName, TrainingPython
from bot.cli.error_boundary import boundary
from bot.kernel.errors import UserError
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
    code: Annotated[
        bool,
        typer.Option(
            "--code",
            help="DIR is a copy of ResearchCodeBench: a model writes each masked block, and unit "
            "tests decide. Needs --python.",
        ),
    ] = False,
    stability: Annotated[
        int,
        typer.Option(
            help="Read each paper so often, with --model or without: are the criteria the same?",
            metavar="N",
        ),
    ] = 0,
    no_repo: Annotated[
        bool,
        typer.Option("--no-repo", help="A model writes the code of each paper; see --record."),
    ] = False,
    record: Record = None,
    python: TrainingPython = None,
    model: Annotated[
        str,
        typer.Option(
            help="Model that reads papers and code or, with --no-repo and --code, writes (default: "
            "REPRISE_MODEL_WRITER).",
            metavar="NAME",
        ),
    ] = "",
    out: Kept = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            help="Earlier --out or --record: its exchanges in place of a model.",
            metavar="DIR",
        ),
    ] = None,
    sandbox: SandboxName = "auto",
    as_json: AsJson = False,
) -> None:
    """Reproduce the number of each paper, with a model or without, and compare with the keys."""
    with boundary():
        if code:
            _run_code(folder, only, python, model, out, replay, sandbox, as_json=as_json)
            return
        if stability:
            _run_stability(folder, only, stability, model, out, replay, sandbox, as_json=as_json)
            return
        from benchmarks.cassettes import Cassettes
        from benchmarks.commands.printing import print_whole, printed
        from benchmarks.papers import (
            MutantBench,
            Reader,
            cases,
            mutant_line,
            mutants_table,
            papers_table,
            run,
            run_mutants,
            run_written,
        )
        from sandbox.select import choose

        paths, world = cases(folder, only), (choose(sandbox), load(), minutes)
        if no_repo:
            bench = run_written(paths, *world, model, Cassettes(record, replay))
            print_whole(bench, papers_table, as_json=as_json)
        elif mutants:
            rows = printed(run_mutants(paths, *world, mutant, out), mutant_line)
            print_whole(MutantBench(mutants=tuple(rows)), mutants_table, as_json=as_json)
        else:
            bench = run(paths, *world, Reader(model, Cassettes(record, replay)))
            print_whole(bench, papers_table, as_json=as_json)


def _run_code(
    folder: Path,
    only: str,
    python: Path | None,
    model: str,
    out: Path | None,
    replay: Path | None,
    sandbox: SandboxName,
    *,
    as_json: bool,
) -> None:
    from benchmarks.commands.printing import print_whole
    from benchmarks.paper_code import CodeOptions, blocks_of, code_table, run_code
    from sandbox.select import choose

    if python is None:
        raise UserError("--code needs --python.", "Give one that has what the code imports.")
    options = CodeOptions(choose(sandbox), load(), python, model=model, out=out, replay=replay)
    bench = run_code(folder, blocks_of(folder, only), options)
    print_whole(bench, code_table, as_json=as_json)


def _run_stability(
    folder: Path,
    only: str,
    readings: int,
    model: str,
    out: Path | None,
    replay: Path | None,
    sandbox: SandboxName,
    *,
    as_json: bool,
) -> None:
    from benchmarks.commands.printing import print_whole
    from benchmarks.paper_stability import StabilityOptions, run_stability, stability_table
    from benchmarks.papers import cases
    from sandbox.select import choose

    options = StabilityOptions(
        readings, choose(sandbox), load(), model=model, out=out, replay=replay
    )
    bench = run_stability(cases(folder, only), options)
    print_whole(bench, stability_table, as_json=as_json)
