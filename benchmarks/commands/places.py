"""Programs of several files, and where the values of their hyperparameters stand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.arguments import AsJson, SandboxName
from bot.cli.error_boundary import boundary
from bot.kernel.settings import load

Programs = Annotated[
    Path,
    typer.Argument(
        help="Contains keys.json and a folder for each program: train.py, what is beside it, and "
        "arguments.txt for its command line.",
        metavar="DIR",
    ),
]


def places(
    folder: Programs,
    python: Annotated[
        Path,
        typer.Option(help="Python of a virtual environment that has what the programs import."),
    ],
    sandbox: SandboxName = "auto",
    as_json: AsJson = False,
) -> None:
    """Change each hyperparameter of the keys, and see whether the one place that decides its value
    was changed. Each program runs once, and briefly for each literal that may decide a value.
    """
    with boundary():
        from benchmarks.commands.printing import print_whole
        from benchmarks.fault_runs import environment_of
        from benchmarks.value_places import places_table, run, sandboxed
        from sandbox.select import choose

        runner = sandboxed(choose(sandbox), environment_of(python, load()))
        print_whole(run(folder, runner), places_table, as_json=as_json)
