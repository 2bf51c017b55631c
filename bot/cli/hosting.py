"""`reprise serve`, `reprise worker` and the other commands of the App."""

import re
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import typer

from bot.app import factory
from bot.cli import error_boundary
from bot.kernel.errors import UserError
from bot.kernel.settings import load, secrets

_SWITCH = re.compile(r"all|installation:\d{1,18}|[\w.-]{1,100}/[\w.-]{1,100}", re.ASCII)

# Servers and workers are imported inside the commands: `reprise --help` and `reprise reproduce`
# need none of them.


@error_boundary.boundary(secrets=secrets)
def serve(
    embedded: Annotated[
        bool,
        typer.Option(
            "--embedded", help="Run the queue and the workers in this process too; needs no Redis."
        ),
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on. Default: REPRISE_BIND.", metavar="ADDRESS"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="Port to listen on. Default: REPRISE_PORT.", min=0, max=65_535, metavar="N"
        ),
    ] = None,
    slots: Annotated[
        int,
        typer.Option(help="With --embedded: number of parallel runs.", min=1, max=64, metavar="N"),
    ] = 1,
) -> None:
    """Serve the App: webhooks, run pages and the JSON API. Without credentials, it first
    serves a setup page that registers the App on GitHub.
    """
    from bot.cli.serving import run_server

    run_server(embedded=embedded, host=host, port=port, slots=slots)


@error_boundary.boundary(secrets=secrets)
def worker(
    queue: Annotated[
        Literal["cpu", "gpu"], typer.Option(help="Which queue to take runs from.")
    ] = "cpu",
    slots: Annotated[
        int, typer.Option(help="Number of parallel runs.", min=1, max=64, metavar="N")
    ] = 1,
    once: Annotated[
        bool,
        typer.Option("--once", help="End after one run, as a job of a cluster does."),
    ] = False,
) -> None:
    """Process deliveries and runs from the Redis queue until stopped."""
    from bot.cli.serving import work

    work(queue, slots=1 if once else slots, once=once)


@error_boundary.boundary(secrets=secrets)
def receive(
    event: Annotated[
        str,
        typer.Argument(metavar="EVENT", help="As in X-GitHub-Event: issues, issue_comment, ..."),
    ],
    payload: Annotated[
        Path,
        typer.Argument(
            metavar="PAYLOAD", help="The delivery's body as a JSON file.", show_default=False
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Use an in-memory GitHub; write nothing.")
    ] = False,
    permission: Annotated[
        Literal["admin", "maintain", "write", "triage", "read", "none"],
        typer.Option(help="With --dry-run: the sender's permission on the repository."),
    ] = "write",
    config: Annotated[
        Path | None,
        typer.Option(help="With --dry-run: the repository's .github/reprise.yml.", metavar="FILE"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON.")
    ] = False,
) -> None:
    """Handle a saved delivery. Prints what it writes to GitHub, or would write with
    --dry-run.
    """
    from bot.cli import rehearsal

    rehearsal.receive(
        event,
        payload,
        load(),
        dry_run=dry_run,
        permission=permission,
        config=config,
        as_json=as_json,
    )


@error_boundary.boundary(secrets=secrets)
def switch(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="all, owner/name or installation:NUMBER. Omit it to list what is paused.",
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option(help="Shown to anyone who asks for a run.", metavar="TEXT")
    ] = "",
    back: Annotated[bool, typer.Option("--back", help="Resume it.")] = False,
) -> None:
    """Pause the App, or list what is paused. Pauses everything, one repository or one
    installation.
    """
    if name is not None and not _SWITCH.fullmatch(name):
        raise UserError(f"{name} cannot be paused.", "Use all, owner/name or installation:NUMBER.")
    with closing(factory.store(load())) as store:
        if name is not None:
            name = name.lower()
            if back and name not in store.switches():
                raise UserError(f"{name} is not paused.", "To list what is paused: reprise switch")
            store.set_switch(name, None if back else reason or "paused by the operator")
        for switched, why in sorted(store.switches().items()):
            typer.echo(f"{switched}: paused ({why})")
        if not store.switches():
            typer.echo("Nothing is paused.")
