"""The command line: `reprise reproduce SOURCE` and its neighbours."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from importlib import metadata
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bot import exits
from bot.bench.cli import app as bench
from bot.models.job import PARTS, Job, Options
from bot.promptsmith import prompts
from bot.proving import bisect, control, minimize
from bot.settings import host, secrets
from bot.settings import load as load_settings

if TYPE_CHECKING:
    from bot.ports import Model

# Everything heavy is imported inside the commands: help is at hand at once, and the web process carries none of the engine.

app = typer.Typer(
    name="reprise",
    help="Reproduces deep-learning bug reports by running them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(bench, name="bench")

_Out = Annotated[Path | None, typer.Option(help="Where the run is kept; default reprise-runs/<issue>-<time>.", metavar="DIR")]
_Sandbox = Annotated[
    Literal["auto", "docker", "bwrap", "process"],
    typer.Option(help="What runs the code; auto takes the strongest that works and never process, which isolates nothing."),
]
_Device = Annotated[Literal["cpu", "gpu"], typer.Option(help="What the code runs on.")]
_Python = Annotated[str | None, typer.Option(help="Python version, such as 3.11.", metavar="V")]
_With = Annotated[
    list[str] | None, typer.Option("--with", help="A requirement, such as 'torch==2.1.0'; repeatable.", metavar="REQ")
]
_Repo = Annotated[str | None, typer.Option(help="Clone of the repository under test.", metavar="PATH|URL")]
_Ref = Annotated[str | None, typer.Option(help="Branch, tag or commit of it.", metavar="REF")]
_Timeout = Annotated[float, typer.Option(help="Seconds one run may take.", min=1, max=86_400, metavar="S")]
_MaxRuns = Annotated[int, typer.Option(help="Most confirming runs.", min=1, max=1000, metavar="N")]
_Seed = Annotated[int, typer.Option(help="First random seed.", min=0, max=2**31, metavar="N")]
_Model = Annotated[
    str | None, typer.Option(help="Model that writes what the report leaves out; default REPRISE_MODEL_WRITER.", metavar="NAME")
]
_MaxCost = Annotated[float, typer.Option(help="Most dollars a model may cost.", min=0, metavar="USD")]
_MaxTokens = Annotated[int, typer.Option(help="Most tokens.", min=1_000, metavar="N")]
_MaxAttempts = Annotated[int, typer.Option(help="Most programs a model may write.", min=1, max=50, metavar="N")]
_Minutes = Annotated[float, typer.Option(help="A model is not asked after this many minutes.", min=0.1, metavar="M")]
_ProofMinutes = Annotated[
    float, typer.Option(help="For control, bisection and making the program smaller, together.", min=0, metavar="M")
]
_Without = Annotated[
    list[str] | None, typer.Option(help=f"Parts to leave out: {', '.join(PARTS)}.", metavar="PART,...", show_default=False)
]
_Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON, and nothing else, on standard output.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"reprise {metadata.version('reprise')}")
        raise typer.Exit


@app.callback()
def _main(
    _version: Annotated[bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Reproduces deep-learning bug reports by running them: a verdict with numbers, the script and the logs."""


@app.command()
def reproduce(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="An issue's address, owner/repo#12, a Markdown or JSON file, -, or example.")
    ],
    out: _Out = None,
    sandbox: _Sandbox = "auto",
    device: _Device = "cpu",
    python: _Python = None,
    pins: _With = None,
    repo: _Repo = None,
    ref: _Ref = None,
    timeout: _Timeout = 120,
    max_runs: _MaxRuns = 40,
    seed: _Seed = 0,
    model: _Model = None,
    max_cost: _MaxCost = 1.0,
    max_tokens: _MaxTokens = 200_000,
    max_attempts: _MaxAttempts = 6,
    minutes: _Minutes = 20,
    proof_minutes: _ProofMinutes = 10,
    without: _Without = None,
    as_json: _Json = False,
) -> None:
    """Run a bug report: exit 0 when it is reproduced, 3 for any other verdict, 2 for a mistake, 1 for a defect of ours."""
    with exits.boundary(secrets=secrets):
        from bot import choices

        options = Options(
            python=choices.python(python, _pythons),
            pins=choices.pins(pins or ()),
            repo=choices.repo(repo),
            ref=choices.ref(ref, repo),
            device=device,
            sandbox=sandbox,
            timeout_s=timeout,
            max_runs=max_runs,
            seed=seed,
            model=model,
            max_cost=max_cost,
            max_tokens=max_tokens,
            max_attempts=max_attempts,
            minutes=minutes,
            proof_minutes=proof_minutes,
            without=choices.parts(*without or ()),
        )
        raise typer.Exit(_reproduce(source, options, out, as_json=as_json))


@app.command()
def example(out: _Out = None, sandbox: _Sandbox = "auto", as_json: _Json = False) -> None:
    """Reproduce the issue that ships with Reprise."""
    with exits.boundary(secrets=secrets):
        from bot.adapters import source as sources

        raise typer.Exit(_reproduce(sources.EXAMPLE, Options(sandbox=sandbox), out, as_json=as_json))


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that asked a model.", show_default=False)],
    out: _Out = None,
    sandbox: _Sandbox = "auto",
    as_json: _Json = False,
) -> None:
    """Repeat a run from its folder: the recorded answers stand in for the model, everything else is done anew."""
    with exits.boundary(secrets=secrets):
        from bot.adapters.folder import EXCHANGES, kept_job
        from bot.adapters.model.tape import Tape

        job = kept_job(run)
        job = job.model_copy(update={"options": job.options.model_copy(update={"sandbox": sandbox})})
        raise typer.Exit(_run(job, out, model=Tape(run / EXCHANGES), as_json=as_json))


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False) -> None:
    """Say what works here (sandboxes, Python versions, package index, devices), each with the fix when it does not."""
    with exits.boundary(secrets=secrets):
        from rich.console import Console

        from bot import doctor as checkup

        findings = checkup.examine(load_settings())
        typer.echo(checkup.as_json(findings) if as_json else checkup.as_text(findings, Console().width), nl=False)
        raise typer.Exit(0 if findings.ready else exits.USER)


@app.command()
def schema(
    config: Annotated[bool, typer.Option("--config", help="Print that of .github/reprise.yml instead.")] = False,
) -> None:
    """Print the JSON Schema of report.json, or of the configuration."""
    from bot import schema as published
    from bot.schema import configuration

    typer.echo(configuration.text() if config else published.text(), nl=False)


for command in (control, bisect, minimize, prompts):
    app.command()(command)


def _pythons() -> list[str]:
    from sandbox.interpreters import discover

    return [each.minor for each in discover(host())]


def _reproduce(source: str, options: Options, out: Path | None, *, as_json: bool) -> int:
    from bot.adapters import source as sources

    issue = sources.load(source, load_settings())
    return _run(Job(issue=issue, options=options), out, as_json=as_json, bundled=source == sources.EXAMPLE)


def _run(job: Job, out: Path | None, *, as_json: bool, bundled: bool = False, model: Model | None = None) -> int:
    from rich.console import Console

    from bot import bootstrap
    from bot.progress import shown_on
    from bot.showing import chosen, show

    settings = load_settings()
    sandbox = chosen(job.options, bundled=bundled)
    folder = exits.opened(out or bootstrap.run_folder(job.issue, settings.runs_dir, datetime.now().astimezone()))
    cancel = Event()
    with closing(folder), exits.boundary(lambda: folder.path, lambda: settings.secrets), exits.stoppable(cancel):
        with shown_on(Console(stderr=True)) as listener:
            report = bootstrap.reproduce(job, settings, folder, listener=listener, cancel=cancel, sandbox=sandbox, model=model)
        show(report, settings, folder, as_json=as_json)
        return exits.code(report)


def main() -> None:
    """The console script."""
    app()
