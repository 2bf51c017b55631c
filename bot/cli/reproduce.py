"""`reprise reproduce SOURCE`, `reprise example`, and `reprise replay RUN`: a recorded run again,
without its model.
"""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.error_boundary import boundary
from bot.cli.options import (
    Device,
    Json,
    MaxCost,
    MaxTokens,
    Out,
    Pins,
    Python,
    Sandbox,
    SandboxName,
)
from bot.kernel.config import Defaults
from bot.kernel.job import (
    PARTS,
    EnvironmentOptions,
    IssueOptions,
    ModelLimits,
    ProofOptions,
    ReproduceIssue,
    RunLimits,
    TrainingOptions,
)
from bot.kernel.settings import load, secrets
from bot.kernel.training_types import DIAGNOSIS_BUDGET


@boundary(secrets=secrets)
def reproduce(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Issue URL, owner/repo#12, Markdown or JSON file, `-` for stdin, or the word "
            "`example`.",
        ),
    ],
    out: Out = None,
    sandbox: Sandbox = "auto",
    device: Device = "cpu",
    python: Python = None,
    pins: Pins = None,
    repo: Annotated[
        str | None, typer.Option(help="Clone of the repository under test.", metavar="PATH|URL")
    ] = None,
    ref: Annotated[
        str | None, typer.Option(help="Branch, tag or commit of that clone.", metavar="REF")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help="Command to run in that clone, such as 'python train.py --x 1'.", metavar="CMD"
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Data for that command: a path in the clone, and the folder, file or archive of "
            "this machine that it can read there. Repeatable.",
            metavar="PATH=DIR",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            help="Time limit for one run of the program, in seconds. With --diagnose, the run that "
            "is diagnosed may take at least 600 s.",
            min=1,
            max=86_400,
            metavar="S",
        ),
    ] = 120,
    max_runs: Annotated[
        int, typer.Option(help="Maximum number of confirming runs.", min=1, max=1000, metavar="N")
    ] = 40,
    seed: Annotated[
        int, typer.Option(help="First random seed.", min=0, max=2**31, metavar="N")
    ] = 0,
    model: Annotated[
        str | None,
        typer.Option(
            help="Model that writes missing programs. Default: REPRISE_MODEL_WRITER.",
            metavar="NAME",
        ),
    ] = None,
    max_cost: MaxCost = 1.0,
    max_tokens: MaxTokens = 200_000,
    max_attempts: Annotated[
        int,
        typer.Option(
            help="Maximum number of model-written programs to run.", min=1, max=50, metavar="N"
        ),
    ] = 6,
    minutes: Annotated[
        float,
        typer.Option(
            help="Time budget for the model in minutes; the run itself is not limited.",
            min=0.1,
            metavar="M",
        ),
    ] = 20,
    proof_minutes: Annotated[
        float,
        typer.Option(
            help="Minutes for control, bisection and minimal script together.", min=0, metavar="M"
        ),
    ] = 10,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Parts to skip (docs/method.md explains them): {', '.join(PARTS)}.",
            metavar="PART,...",
            show_default=False,
        ),
    ] = None,
    diagnose: Annotated[
        bool, typer.Option("--diagnose", help="Also diagnose the training of its program.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Reproduce a bug report.

    Exit codes: 0 reproduced, 3 any other verdict, 2 a user error, 1 a bug in Reprise.
    """
    from bot.cli import options as cli_options

    options = IssueOptions(
        environment=EnvironmentOptions(
            python=cli_options.python(python),
            pins=cli_options.pins(pins or ()),
            repo=cli_options.repo(repo),
            ref=cli_options.ref(ref, repo),
            command=cli_options.command(command, repo),
            data=cli_options.data(data or (), repo),
            device=device,
            sandbox=sandbox,
        ),
        limits=RunLimits(
            timeout_s=timeout,
            training_timeout_s=max(timeout, Defaults().training_timeout),
            max_runs=max_runs,
            seed=seed,
        ),
        model=ModelLimits(
            name=model,
            max_cost=max_cost,
            max_tokens=max_tokens,
            max_attempts=max_attempts,
            minutes=minutes,
        ),
        proof=ProofOptions(minutes=proof_minutes),
        training=TrainingOptions(budget=DIAGNOSIS_BUDGET) if diagnose else None,
        without=cli_options.parts(*without or ()),
    )
    raise typer.Exit(_reproduce(source, options, out, as_json=as_json))


@boundary(secrets=secrets)
def example(
    out: Out = None,
    sandbox: Annotated[
        SandboxName,
        typer.Option(
            help="Where the code runs. auto picks the strongest one that works; the bundled issue "
            "may run as process if none does."
        ),
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Reproduce the bundled issue."""
    from bot.cli import sources

    options = IssueOptions(environment=EnvironmentOptions(sandbox=sandbox))
    raise typer.Exit(_reproduce(sources.EXAMPLE, options, out, as_json=as_json))


def _reproduce(source: str, options: IssueOptions, out: Path | None, *, as_json: bool) -> int:
    from bot.cli import sources
    from bot.cli.runner import run_job

    settings = load()
    issue = sources.load(source, settings)
    if options.environment.repo is None and sources.reference(source, settings.github_url):
        clone = {"repo": issue.clone_url or f"{settings.github_url}/{issue.repository}.git"}
        environment = options.environment.model_copy(update={**clone, "for_commands": True})
        options = options.model_copy(update={"environment": environment})
    job = ReproduceIssue(issue=issue, **dict(options))
    return run_job(job, out, as_json=as_json, bundled=source == sources.EXAMPLE)


@boundary(secrets=secrets)
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run that asked a model.")],
    out: Out = None,
    sandbox: Sandbox = "auto",
    as_json: Json = False,
) -> None:
    """Repeat a run, using its recorded model answers. All other steps run again."""
    from bot.cli.runner import limited, run_job
    from bot.report.run_folder import EXCHANGE_FILE, kept_job

    job = kept_job(run)
    job = limited(job, sandbox, job.proof)
    raise typer.Exit(run_job(job, out, recording=run / EXCHANGE_FILE, as_json=as_json))
