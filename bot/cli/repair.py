"""`reprise repair PROGRAM`."""

from typing import Annotated

import typer

from bot.cli.diagnose import Arguments, Model, Out, Program, Timeout, Without, training_options
from bot.cli.error_boundary import boundary
from bot.cli.options import Device, Json, MaxCost, MaxTokens, Pins, Python, Sandbox
from bot.kernel.job import ModelLimits
from bot.kernel.settings import secrets
from bot.kernel.training_types import RepairRequest

# What `reprise repair` does; it returns the exit code.


Metric = Annotated[
    str,
    typer.Option(
        help="Metric to improve, by the name that the program prints with it; "
        "write NAME:min where lower is better and the name does not say so. "
        "Default: the metric that it prints last.",
        metavar="NAME",
        show_default=False,
    ),
]
Budget = Annotated[
    str,
    typer.Option(
        help="Time for the search, as a multiple of the program's own run time. "
        "The minimization and the proof come on top.",
        metavar="Nx",
    ),
]
Jobs = Annotated[
    int, typer.Option(help="Trainings to run in parallel.", min=1, max=64, metavar="N")
]


@boundary(secrets=secrets)
def repair(
    program: Program,
    arguments: Arguments = None,
    metric: Metric = "",
    budget: Budget = "10x",
    jobs: Jobs = 1,
    out: Out = None,
    sandbox: Sandbox = "auto",
    device: Device = "cpu",
    python: Python = None,
    pins: Pins = None,
    timeout: Timeout = 600,
    model: Model = None,
    max_cost: MaxCost = 1.0,
    max_tokens: MaxTokens = 200_000,
    without: Without = None,
    as_json: Json = False,
) -> None:
    """Find the smallest change that is proven to help a training.

    Trains the program many times, and writes the change as a diff. Resumes a stopped repair
    if --out names the same folder. If a model is configured, also tries what it suspects.
    Exit codes: 0 a patch is proven to help, 3 no patch is, 2 a user error, 1 a bug in Reprise.
    """
    from bot.cli import options as cli_options
    from bot.cli.repairing import run_repair

    times = cli_options.times(budget)
    limits = ModelLimits(name=model, max_cost=max_cost, max_tokens=max_tokens)
    skipped = cli_options.parts(*without or (), choices=("model",))
    options = training_options(sandbox, device, python, pins, timeout, limits, skipped)
    request = RepairRequest(metric=metric, budget=times, jobs=jobs)
    program_arguments = tuple(arguments or ())
    raise typer.Exit(run_repair(program, program_arguments, options, out, request, as_json=as_json))
