"""What pure stages make of every input at hand: recorded, and compared after a change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.error_boundary import boundary
from bot.kernel.errors import UserError

if TYPE_CHECKING:
    from benchmarks.truth.stages import Stage

_SHARED = Path("../shared/bench")

truth = typer.Typer(
    help="Record what pure stages make of every input at hand, and compare it after a change.",
    no_args_is_help=True,
)
Folder = Annotated[
    Path, typer.Argument(help="Holds a file for each stage; not in the repository.", metavar="DIR")
]
OnlyStages = Annotated[
    str, typer.Option("--only", help="Stages, separated by commas.", metavar="STAGE,...")
]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.", metavar="N")]


@truth.command()
def record(
    folder: Folder,
    only: OnlyStages = "",
    cases: Annotated[
        str, typer.Option(help="Globs of case ids, separated by commas.", metavar="CASE,...")
    ] = "",
    bench: Annotated[
        Path | None,
        typer.Option(
            help="Contains issues/cases/*.json and faults/cases/*.json.  "
            "[default: ../shared/bench where it exists]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    traces: Annotated[
        list[Path] | None,
        typer.Option(help="Kept runs of `faults --out`; may be given twice.", metavar="DIR"),
    ] = None,
    jobs: Jobs = 2,
) -> None:
    """Record what every stage makes of its cases."""
    with boundary():
        from benchmarks.truth import record as records
        from benchmarks.truth.inputs import Inputs

        inputs = Inputs(bench or (_SHARED if _SHARED.is_dir() else None), tuple(traces or ()))
        globs, stages = _split(cases), _chosen(only)
        records.write_inputs(records.opened(folder), inputs, globs)
        for made in records.results(stages, inputs, jobs, globs):
            size = records.write(folder, made)
            raised = sum(line.startswith('{"raised":') for line in made.lines.values())
            typer.echo(
                f"{made.name}: {len(made.lines):,} cases, {raised} raise, "
                f"{made.seconds:.1f} s, {size:,} bytes"
            )


@truth.command()
def check(
    folder: Folder,
    only: OnlyStages = "",
    expect: Annotated[
        Path | None,
        typer.Option(
            help="Wanted differences, one a line: STAGE CASE PATH [BEFORE => AFTER], each a glob.",
            metavar="FILE",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every difference.")] = False,
    jobs: Jobs = 2,
) -> None:
    """Compare what the stages make now with a record. Exit code 1 where they differ."""
    with boundary():
        from benchmarks.truth import compare, record as records

        inputs, globs = records.read_inputs(folder)
        wanted, used = compare.expectations(expect), set[compare.Expectation]()
        kept = records.kept_stages(folder)
        stages = [stage for stage in _chosen(only) if only or stage.name in kept]
        gone = set(kept) - {stage.name for stage in _chosen("")}
        differ = bool(gone)
        for name in sorted(gone):
            typer.echo(f"{name}: the stage is gone")
        for made in records.results(stages, inputs, jobs, globs):
            before = records.read(folder, made.name) or {}
            found = compare.compared(made.name, before, made.lines, wanted, used)
            differ |= bool(found.cases)
            for line in compare.lines(found, every=every):
                typer.echo(line)
        for one in wanted if not only else ():
            if one not in used:
                typer.echo(f"not seen: {one.stage} {one.case} {one.path}")
    if differ:
        raise typer.Exit(1)


def _chosen(only: str) -> list[Stage]:
    """The stages of these names, all without one. Raises UserError."""
    from benchmarks.truth.stages import STAGES

    names = _split(only)
    unknown = set(names) - {stage.name for stage in STAGES}
    if unknown:
        known = ", ".join(sorted(stage.name for stage in STAGES))
        raise UserError(f"There is no stage {min(unknown)}.", f"Stages: {known}.")
    return [stage for stage in STAGES if not names or stage.name in names]


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part]
