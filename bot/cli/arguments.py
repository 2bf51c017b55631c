"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

SandboxName = Literal["auto", "docker", "bwrap", "process"]

Run = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="Folder of a run with the verdict reproduced."),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Run folder. Default: reprise-runs/<issue>-<time>.", metavar="DIR"),
]
Sandbox = Annotated[
    SandboxName,
    typer.Option(
        help="Where the code runs. auto picks the strongest one that works, but never process."
    ),
]
Minutes = Annotated[float, typer.Option(help="Time limit in minutes.", min=0.1, metavar="M")]
Json = Annotated[
    bool, typer.Option("--json", help="Print only the JSON report on standard output.")
]

DEFAULT_PROOF_MINUTES = 30.0
