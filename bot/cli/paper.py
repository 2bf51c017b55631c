"""`reprise paper SOURCE`."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.diagnose import Without
from bot.cli.error_boundary import boundary
from bot.cli.options import Device, Json, MaxCost, Pins, Python, Sandbox
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
NoRepo = Annotated[
    bool,
    typer.Option(
        "--no-repo",
        help="No code exists: a model writes it from the paper. Needs --model or "
        "REPRISE_MODEL_WRITER.",
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
Works = Annotated[
    list[str] | None,
    typer.Option(
        "--cited",
        help="Repository of a cited work, by the key of its reference: looked into for what the "
        "paper leaves open. Repeatable.",
        metavar="KEY=PATH|URL",
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
PaperTokens = Annotated[
    int | None,
    typer.Option(
        help="Model budget in tokens. Default: 200000; with --no-repo 2000000.",
        min=1_000,
        metavar="N",
        show_default=False,
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
    no_repo: NoRepo = False,
    ref: Ref = None,
    claim: Claim = "",
    command: Command = None,
    data: Data = None,
    works: Works = None,
    budget: Budget = "1h",
    runs: Runs = 5,
    out: Out = None,
    sandbox: Sandbox = "auto",
    device: Device = "cpu",
    python: Python = None,
    pins: Pins = None,
    model: Model = None,
    max_cost: MaxCost = 1.0,
    max_tokens: PaperTokens = None,
    without: Without = None,
    as_json: Json = False,
) -> None:
    """Reproduce a number of a paper with the paper's repository, or with code that a model writes.

    Runs the repository's command, compares the number that it prints with the paper's, and holds
    every hyperparameter that the paper states against the code and the run. Goes on with a killed
    run if --out names the same folder.
    Exit codes: 0 reproduced, 3 every other verdict, 2 a user error, 1 a bug in Reprise.
    """
    from bot.cli import options as cli_options
    from bot.cli.paper_running import run_paper
    from bot.kernel.job import EnvironmentOptions, ReproducePaper

    address = cli_options.repo(repo)
    cli_options.check_no_repo(address, command, no_repo=no_repo)
    minutes = cli_options.duration(budget)
    rows = [value if "=" in value else f"data={value}" for value in data or ()]
    job = ReproducePaper(
        source=cli_options.paper_source(source),
        claim=claim,
        no_repo=no_repo,
        cited=cli_options.cited_works(works or ()),
        minutes=minutes,
        runs=runs,
        model=cli_options.paper_model(model, max_cost, max_tokens, minutes, writes_code=no_repo),
        without=cli_options.parts(*without or (), choices=("model",)),
        environment=EnvironmentOptions(
            python=cli_options.python(python),
            pins=cli_options.pins(pins or ()),
            repo=address,
            ref=cli_options.ref(ref, address),
            command=cli_options.command(command, address),
            data=cli_options.data(rows, address, needs_clone=not no_repo),
            device=device,
            sandbox=sandbox,
        ),
    )
    raise typer.Exit(run_paper(job, out, as_json=as_json))
