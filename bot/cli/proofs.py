"""`reprise control RUN`, `reprise bisect RUN` and `reprise minimize SCRIPT`."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.arguments import DEFAULT_PROOF_MINUTES, Json, Minutes, Run, Sandbox
from bot.cli.error_boundary import boundary
from bot.settings import secrets


@boundary(secrets=secrets)
def control(
    run: Run,
    minutes: Minutes = DEFAULT_PROOF_MINUTES,
    sandbox: Sandbox = "auto",
    as_json: Json = False,
) -> None:
    """Find a version in which the program passes. Runs both versions alternately and updates the
    run's report.

    Exit code 3: the proof ended early.
    """
    from bot.cli import proving, runner

    command = runner.ProofCommand("control", run, minutes, sandbox)
    raise typer.Exit(proving.control(command, as_json=as_json))


@boundary(secrets=secrets)
def bisect(
    run: Run,
    package: Annotated[
        str | None,
        typer.Option(help="Package to bisect. Default: the package under test.", metavar="NAME"),
    ] = None,
    repo: Annotated[
        str | None, typer.Option(help="Bisect the commits of this clone.", metavar="PATH|URL")
    ] = None,
    good: Annotated[
        str | None, typer.Option(help="With --repo: a commit that passes.", metavar="REF")
    ] = None,
    bad: Annotated[
        str | None, typer.Option(help="With --repo: a commit that fails.", metavar="REF")
    ] = None,
    minutes: Minutes = DEFAULT_PROOF_MINUTES,
    sandbox: Sandbox = "auto",
    as_json: Json = False,
) -> None:
    """Find the release or commit that introduced the failure. Also finds the one that fixed it.

    Exit code 3: the proof ended early, or no first bad or first fixed commit was found, for
    example because --good fails or --bad passes.
    """
    from bot.cli import proving, runner

    command = runner.ProofCommand("bisect", run, minutes, sandbox)
    if repo is None and good is None and bad is None:
        raise typer.Exit(proving.bisect_releases(command, package, as_json=as_json))
    commits = proving.commit_range(repo, good, bad, package)
    raise typer.Exit(proving.bisect_commits(command, repo or "", *commits, as_json=as_json))


@boundary(secrets=secrets)
def minimize(
    script: Annotated[
        Path,
        typer.Argument(
            metavar="SCRIPT", help="A program, a folder with repro.py or main.py, or a run folder."
        ),
    ],
    signature: Annotated[
        Path | None,
        typer.Option(
            help="Run folder that defines the failure and its environment.", metavar="RUN"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Result folder. Default: reprise-runs/<name>-<time>.", metavar="DIR"),
    ] = None,
    minutes: Minutes = DEFAULT_PROOF_MINUTES,
    sandbox: Sandbox = "auto",
    as_json: Json = False,
) -> None:
    """Make a failing program as small as possible. The result still fails in the same way.

    Exit code 3: the proof ended early.
    """
    from bot.cli import proving, runner

    given = None if signature is None else proving.program(script)
    command = runner.ProofCommand("minimize", signature or script, minutes, sandbox)
    raise typer.Exit(proving.minimize(command, given, script, out, as_json=as_json))
