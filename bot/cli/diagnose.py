"""`reprise diagnose`, `probe`, `repair` and `rules`: each with PROGRAM, but for the last."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.error_boundary import boundary
from bot.cli.options import Device, Json, MaxCost, MaxTokens, Pins, Python, Sandbox
from bot.kernel.job import (
    EnvironmentOptions,
    JobOptions,
    ModelLimits,
    Part,
    RunLimits,
)
from bot.kernel.settings import secrets
from bot.kernel.training_types import DIAGNOSIS_BUDGET, RepairRequest

Source = Annotated[
    Path,
    typer.Argument(
        metavar="PROGRAM.py|RUN",
        help="Training program, or the run folder of a reproduced bug report.",
    ),
]
Program = Annotated[Path, typer.Argument(metavar="PROGRAM.py", help="Training program.")]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- ARGUMENTS]", help="Arguments of the program, after --."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the results. Default: reprise-runs/<name>-<time>.", metavar="DIR"
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        help="Time limit for the program, in seconds. Reprise diagnoses what it did until then.",
        min=1,
        max=86_400,
        metavar="S",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="Model that gives a second opinion. Default: REPRISE_MODEL_WRITER.", metavar="NAME"
    ),
]
Budget = Annotated[
    str,
    typer.Option(
        help="Time for trainings that confirm or refute the findings, as a multiple of the "
        "program's own run time; 0 for none.",
        metavar="Nx",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(help="model: ask no model.", metavar="model", show_default=False),
]


@boundary(secrets=secrets)
def diagnose(
    source: Source,
    arguments: Arguments = None,
    budget: Budget = f"{DIAGNOSIS_BUDGET:g}x",
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
    """Say why a training program learns badly. Runs it once, unchanged, with a probe; then trains
    it with the changes that the findings suggest.

    Exit codes: 0 diagnosed (also when nothing is wrong), 3 no diagnosis (it did not train),
    2 a user error, 1 a bug in Reprise.
    """
    from bot.cli import options as cli_options
    from bot.cli.diagnosing import run_diagnosis

    limits = ModelLimits(name=model, max_cost=max_cost, max_tokens=max_tokens)
    skipped = cli_options.parts(*without or (), choices=("model",))
    options = training_options(sandbox, device, python, pins, timeout, limits, skipped)
    times, program_arguments = cli_options.times(budget, or_none=True), tuple(arguments or ())
    raise typer.Exit(run_diagnosis(source, program_arguments, options, out, times, as_json=as_json))


@boundary(secrets=secrets)
def probe(
    program: Program,
    arguments: Arguments = None,
    out: Out = None,
    sandbox: Sandbox = "auto",
    device: Device = "cpu",
    python: Python = None,
    pins: Pins = None,
    timeout: Timeout = 600,
) -> None:
    """Run a training program with the probe; print its trace's path.

    Exit code 3: the program did not train.
    """
    from bot.cli.diagnosing import run_probe

    options = training_options(sandbox, device, python, pins, timeout)
    raise typer.Exit(run_probe(program, tuple(arguments or ()), options, out))


@boundary()
def rules(
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the rules of the diagnosis with their sources."""
    from bot.cli.diagnosing import list_rules

    typer.echo(list_rules(as_json=as_json), nl=False)


def training_options(
    sandbox: Sandbox,
    device: Device,
    python: str | None,
    pins: list[str] | None,
    timeout: float,
    model: ModelLimits | None = None,
    without: tuple[Part, ...] = ("model",),
) -> JobOptions:
    """The options of a run that trains; no model is asked unless it has limits."""
    from bot.cli import options as cli_options

    return JobOptions(
        environment=EnvironmentOptions(
            python=cli_options.python(python),
            pins=cli_options.pins(pins or ()),
            device=device,
            sandbox=sandbox,
        ),
        limits=RunLimits(timeout_s=timeout),
        model=model or ModelLimits(),
        without=without,
    )


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
SearchBudget = Annotated[
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
    budget: SearchBudget = "10x",
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
    from bot.cli.diagnosing import run_repair

    times = cli_options.times(budget)
    limits = ModelLimits(name=model, max_cost=max_cost, max_tokens=max_tokens)
    skipped = cli_options.parts(*without or (), choices=("model",))
    options = training_options(sandbox, device, python, pins, timeout, limits, skipped)
    request = RepairRequest(metric=metric, budget=times, jobs=jobs)
    program_arguments = tuple(arguments or ())
    raise typer.Exit(run_repair(program, program_arguments, options, out, request, as_json=as_json))
