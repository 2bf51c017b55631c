"""`reprise repair PROGRAM`."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.diagnose import Arguments, Model, Out, Program, Timeout, Without, training_options
from bot.cli.error_boundary import OTHER, boundary
from bot.cli.options import Device, Json, MaxCost, MaxTokens, Pins, Python, Sandbox
from bot.cli.runner import TrainingWork, for_people, read_training, working
from bot.kernel.errors import UserError
from bot.kernel.files import write
from bot.kernel.job import JobOptions, ModelLimits, RepairProgram
from bot.kernel.outside_text import rewritten
from bot.kernel.redaction import redact
from bot.kernel.report import RepairReport
from bot.kernel.settings import secrets
from bot.kernel.training_types import Repair, RepairRequest
from bot.products import execute
from bot.report import run_folder
from bot.report.report_json import repair_text
from bot.training.sections import repair_document

# What `reprise repair` does; it returns the exit code.

_PROVEN = 0


def run_repair(
    source: Path, arguments: tuple[str, ...], options: JobOptions, out: Path | None,
    request: RepairRequest, *, as_json: bool,
) -> int:  # fmt: skip
    """Repair a program."""
    program = read_training(source, arguments)
    job = RepairProgram(program=program, repair=request, **dict(options))
    with working(job, out, resumed=True) as work:
        return _show(work, execute(job, work.ports), source.name, as_json=as_json)


def kept_repair(folder: Path) -> Repair:
    """The repair that an earlier command wrote. Raises UserError when there is none."""
    try:
        document = json.loads((folder / "repair.json").read_bytes())
        program = {"entry": document["program"], "source_sha": document.get("program_sha", "")}
        fields = {**document["repair"], **program}
        return Repair.model_validate({**fields, "undecided": fields["undecided"] or ""})
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{folder} is not the folder of a repair.", "Pass a folder that contains repair.json."
        ) from None


def _show(work: TrainingWork, report: RepairReport, name: str, *, as_json: bool) -> int:
    """Write the repair, print it for people or as JSON, and return the exit code."""
    hide = partial(redact, secrets=work.settings.secrets)
    repair_result, folder = rewritten(report.result, hide), work.folder
    text = repair_text(repair_result, program=name, hide=hide)
    write(folder / "repair.json", text)
    if repair_result.diff:
        write(folder / "repair.diff", repair_result.diff)
    run_folder.keep_plot(folder / "repair.svg", repair_result.curves)
    work.view.stop()
    whole = repair_document(repair_result, name=name, folder=str(folder))
    sys.stdout.write(text if as_json else for_people(whole))
    sys.stdout.flush()
    return _PROVEN if repair_result.proven else OTHER


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
    """Find the smallest change of hyperparameters that is proven to help.

    Trains the program many times, and writes the change as a diff. Resumes a stopped repair
    if --out names the same folder. If a model is configured, also tries what it suspects.
    Exit codes: 0 a patch is proven to help, 3 no patch is, 2 a user error, 1 a bug in Reprise.
    """
    from bot.cli import options as cli_options

    times = cli_options.times(budget)
    limits = ModelLimits(name=model, max_cost=max_cost, max_tokens=max_tokens)
    skipped = cli_options.parts(*without or (), choices=("model",))
    options = training_options(sandbox, device, python, pins, timeout, limits, skipped)
    request = RepairRequest(metric=metric, budget=times, jobs=jobs)
    program_arguments = tuple(arguments or ())
    raise typer.Exit(run_repair(program, program_arguments, options, out, request, as_json=as_json))
