"""`reprise control RUN`, `reprise bisect RUN`, `reprise minimize SCRIPT` and `reprise pr RUN`."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.error_boundary import boundary, say
from bot.cli.options import DEFAULT_PROOF_MINUTES, Json, Minutes, Run, Sandbox
from bot.kernel.errors import UserError
from bot.kernel.settings import secrets
from bot.report.run_folder import kept_report


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
    from bot.cli import runner
    from bot.cli.proving import run_control

    command = runner.ProofCommand("control", run, minutes, sandbox)
    raise typer.Exit(run_control(command, as_json=as_json))


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
    from bot.cli import runner
    from bot.cli.proving import bisect_commits, bisect_releases, commit_range

    command = runner.ProofCommand("bisect", run, minutes, sandbox)
    if repo is None and good is None and bad is None:
        raise typer.Exit(bisect_releases(command, package, as_json=as_json))
    commits = commit_range(repo, good, bad, package)
    raise typer.Exit(bisect_commits(command, repo or "", *commits, as_json=as_json))


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
    from bot.cli import runner
    from bot.cli.proving import program, run_minimize

    reported_program = None if signature is None else program(script)
    command = runner.ProofCommand("minimize", signature or script, minutes, sandbox)
    raise typer.Exit(run_minimize(command, reported_program, script, out, as_json=as_json))


# `reprise pr RUN`: what `/reproduce pr` would propose, in a checkout on this machine.

Into = Annotated[
    Path, typer.Option(metavar="DIR", help="Checkout of the repository to write into.")
]
RepairFolder = Annotated[
    Path | None,
    typer.Option(
        "--repair",
        metavar="DIR",
        help="Folder of reprise repair. Adds its patch if it fits a file of the checkout.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the unified diff, for git apply; write nothing.")
]


@boundary(secrets=secrets)
def pr(run: Run, into: Into, repair: RepairFolder = None, dry_run: DryRun = False) -> None:
    """Turn a reproduced failure into a regression test.

    Writes it into a checkout of the project, in its own test layout, as /reproduce pr does on
    GitHub.
    """
    from bot.cli.diagnosing import kept_repair
    from bot.issues.proposal.propose import of_repair, propose
    from bot.kernel import files as kernel_files

    files, patch = kernel_files.open_checkout(into), None
    if repair is not None:
        try:
            patch = of_repair(kept_repair(repair), files)
        except UserError as error:
            say(f"{error} The patch is left out.")
    proposal = propose(kept_report(run), files, patch)
    if dry_run:
        typer.echo(proposal.diff, nl=False)
        return
    for path in kernel_files.put_files(into, proposal.files):
        say(f"Wrote {path}.")
    if (test := proposal.test) is not None:
        say(f"It is an expected failure until the bug is fixed. To run it: {test.command}")
    if proposal.left_out:
        say(f"No test: {proposal.left_out}")
