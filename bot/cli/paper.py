"""`reprise paper SOURCE`."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.diagnose import Without
from bot.cli.error_boundary import boundary
from bot.cli.options import Device, Json, MaxCost, MaxTokens, Pins, Python, Sandbox
from bot.kernel.settings import secrets

# What `reprise paper` does; it returns the exit code.


Source = Annotated[
    str,
    typer.Argument(
        help="The paper: a LaTeX folder or archive, an HTML, Markdown or PDF file, or an arXiv id."
    ),
]
Repo = Annotated[
    str | None,
    typer.Option(
        help="The paper's repository: the folder of a clone, or a URL.", metavar="PATH|URL"
    ),
]
Ref = Annotated[str | None, typer.Option(help="Branch, tag or commit of --repo.", metavar="REF")]
Claim = Annotated[
    str,
    typer.Option(
        help="Number to reproduce, such as 'Table 2, ours, digits'. Default: the main result.",
        metavar="TEXT",
        show_default=False,
    ),
]
Command = Annotated[
    str | None,
    typer.Option(
        help="Command to run in the clone. Default: the README's that fits the claim.",
        metavar="TEXT",
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        help="Data for the program: [PATH=]DIR; PATH is in the clone (default: data). Repeatable.",
        metavar="[PATH=]DIR",
    ),
]
Budget = Annotated[str, typer.Option(help="Time for all runs, such as 90m or 2h.", metavar="TIME")]
Runs = Annotated[int, typer.Option(help="Runs with different seeds, at most.", min=1, max=40)]
Model = Annotated[
    str | None,
    typer.Option(
        help="Model that reads more hyperparameters. Default: REPRISE_MODEL_READER.",
        metavar="NAME",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Run folder. Default: reprise-runs/paper-<name>-<time>.", metavar="DIR"),
]


@boundary(secrets=secrets)
def paper(
    source: Source,
    repo: Repo = None,
    ref: Ref = None,
    claim: Claim = "",
    command: Command = None,
    data: Data = None,
    budget: Budget = "1h",
    runs: Runs = 5,
    out: Out = None,
    sandbox: Sandbox = "auto",
    device: Device = "cpu",
    python: Python = None,
    pins: Pins = None,
    model: Model = None,
    max_cost: MaxCost = 1.0,
    max_tokens: MaxTokens = 200_000,
    without: Without = None,
    as_json: Json = False,
) -> None:
    """Reproduce a number of a paper with the paper's repository.

    Runs the repository's command, compares the number that it prints with the paper's, and holds
    every hyperparameter that the paper states against the code and the run. Goes on with a killed
    run if --out names the same folder.
    Exit codes: 0 reproduced, 3 every other verdict, 2 a user error, 1 a bug in Reprise.
    """
    from bot.cli import options as cli_options
    from bot.cli.paper_running import run_paper
    from bot.kernel.job import EnvironmentOptions, ModelLimits, ReproducePaper

    address = cli_options.repo(repo)
    rows = [value if "=" in value else f"data={value}" for value in data or ()]
    job = ReproducePaper(
        source=cli_options.paper_source(source),
        claim=claim,
        minutes=cli_options.duration(budget),
        runs=runs,
        model=ModelLimits(name=model, max_cost=max_cost, max_tokens=max_tokens),
        without=cli_options.parts(*without or (), choices=("model",)),
        environment=EnvironmentOptions(
            python=cli_options.python(python),
            pins=cli_options.pins(pins or ()),
            repo=address,
            ref=cli_options.ref(ref, address),
            command=cli_options.command(command, address),
            data=cli_options.data(rows, address),
            device=device,
            sandbox=sandbox,
        ),
    )
    raise typer.Exit(run_paper(job, out, as_json=as_json))
