"""`reprise control RUN`."""

from functools import partial

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
    """
    from bot.cli.runner import ProofCommand, run_proof
    from bot.pipeline.proof import resume

    command = ProofCommand("control", run, minutes, sandbox)
    work = partial(resume.prove, proof="control")
    raise typer.Exit(run_proof(command, work, as_json=as_json))
