"""Options that several benchmarks share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

SandboxName = Annotated[
    Literal["auto", "docker", "bwrap", "process"], typer.Option(help="Where the code runs.")
]
WhichSandbox = Annotated[
    Literal["each", "docker", "bwrap", "process"],
    typer.Option(help="One sandbox, or each that works."),
]
Only = Annotated[
    str, typer.Option(help="Ids or prefixes of ids, separated by commas.", metavar="ID,...")
]
Kept = Annotated[
    Path | None,
    typer.Option(help="Folder for the run folders; finished cases are skipped.", metavar="DIR"),
]
TrainingPython = Annotated[
    Path | None,
    typer.Option(
        help="Python of a virtual environment that has what the programs import; without it, "
        "each program gets an environment of its own requirements.",
        metavar="FILE",
    ),
]
ModelCost = Annotated[
    float, typer.Option(help="Model budget per case, in dollars.", min=0, metavar="USD")
]
ModelTokens = Annotated[
    int, typer.Option(help="Model budget per case, in tokens.", min=1_000, metavar="N")
]
Record = Annotated[
    Path | None, typer.Option(help="Save each case's exchanges as ID.jsonl.", metavar="DIR")
]
Replay = Annotated[
    Path | None,
    typer.Option(
        help="Use recorded exchanges instead of a model. "
        "A case without a recording runs without a model.",
        metavar="DIR",
    ),
]
FaultCases = Annotated[
    Path, typer.Argument(help="Contains cases/*.json and keys/*.json.", metavar="DIR")
]
SearchBudget = Annotated[
    float,
    typer.Option(help="Time for each search, as a multiple of the faulty program's.", metavar="N"),
]
CaseJobs = Annotated[int, typer.Option(min=1, help="Cases to run in parallel.", metavar="N")]
TrainingTimeout = Annotated[float, typer.Option(help="Seconds per training.", metavar="S")]
AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON.")]
