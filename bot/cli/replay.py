"""`reprise replay RUN`: a recorded run again, without its model."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.arguments import Json, Out, Sandbox
from bot.cli.error_boundary import boundary
from bot.settings import secrets


@boundary(secrets=secrets)
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run that asked a model.")],
    out: Out = None,
    sandbox: Sandbox = "auto",
    as_json: Json = False,
) -> None:
    """Repeat a run with its recorded model answers. Everything else runs again."""
    from bot.adapters.model.cassette import Cassette
    from bot.adapters.run_folder.folder import EXCHANGES, kept_job
    from bot.cli.runner import run_job

    job = kept_job(run)
    options = job.options.model_copy(update={"sandbox": sandbox})
    job = job.model_copy(update={"options": options})
    raise typer.Exit(run_job(job, out, model=Cassette(run / EXCHANGES), as_json=as_json))
