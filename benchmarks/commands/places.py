"""Programs of several files, and where the values of their hyperparameters stand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.arguments import AsJson
from bot.cli.error_boundary import boundary

Programs = Annotated[
    Path,
    typer.Argument(
        help="Contains keys.json and a folder for each program: train.py, what is beside it, and "
        "arguments.txt for its command line.",
        metavar="DIR",
    ),
]


def places(folder: Programs, as_json: AsJson = False) -> None:
    """Change each hyperparameter of the keys, and see whether the one place that decides its value
    was changed. Nothing is run.
    """
    with boundary():
        from benchmarks.commands.printing import print_whole
        from benchmarks.value_places import places_table, run

        print_whole(run(folder), places_table, as_json=as_json)
