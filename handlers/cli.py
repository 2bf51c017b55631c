"""The console script: the engine's commands, and those of the App that GitHub talks to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bot import exits
from bot.bench.cli import app as bench
from bot.cli import app
from bot.settings import load, secrets
from handlers.bench.command import webhook

# What serves and works is imported inside the commands: `reprise --help` and `reprise reproduce` need none of it.


bench.command()(webhook)


@app.command()
def serve(
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Queue and workers in this process too, on SQLite: no Redis needed.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default REPRISE_BIND.", metavar="ADDRESS")] = None,
    port: Annotated[int | None, typer.Option(help="Port; default REPRISE_PORT.", min=0, max=65_535, metavar="N")] = None,
    slots: Annotated[int, typer.Option(help="With --embedded: most runs at once.", min=1, max=64, metavar="N")] = 1,
) -> None:
    """Serve the App: webhooks and run pages. Without credentials it first shows a page that registers the App on GitHub."""
    with exits.boundary(secrets=secrets):
        from handlers import serving

        serving.serve(embedded=embedded, host=host, port=port, slots=slots)


@app.command()
def worker(
    queue: Annotated[Literal["cpu", "gpu"], typer.Option(help="Which runs to take.")] = "cpu",
    slots: Annotated[int, typer.Option(help="Most runs at once.", min=1, max=64, metavar="N")] = 1,
) -> None:
    """Take deliveries and runs from the Redis queue and work on them, until it is told to stop."""
    with exits.boundary(secrets=secrets):
        from handlers import serving

        serving.work(queue, slots=slots)


@app.command()
def receive(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="As in X-GitHub-Event: issues, issue_comment, ...")],
    payload: Annotated[Path, typer.Argument(metavar="PAYLOAD", help="The delivery's body, saved as JSON.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Against a GitHub in memory: nothing is written.")] = False,
    permission: Annotated[
        Literal["admin", "maintain", "write", "triage", "read", "none"],
        typer.Option(help="With --dry-run: what the sender may do on the repository."),
    ] = "write",
    config: Annotated[
        Path | None, typer.Option(help="With --dry-run: the repository's .github/reprise.yml.", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Rehearse one delivery from end to end, and print what is, or would be, written to GitHub."""
    with exits.boundary(secrets=secrets):
        from handlers import receive as rehearsal

        code = rehearsal.receive(event, payload, load(), dry_run=dry_run, permission=permission, config=config, as_json=as_json)
        raise typer.Exit(code)


@app.command()
def switch(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="all, owner/name or installation:NUMBER; none: list.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Told to whoever asks for a run.", metavar="TEXT")] = "",
    back: Annotated[bool, typer.Option("--back", help="Switch it on again.")] = False,
) -> None:
    """Stop the App from starting anything (everywhere, in one repository, for one installation), or list what is stopped."""
    with exits.boundary(secrets=secrets):
        from handlers import switching

        switching.switch(load(), name, reason, back=back)


def main() -> None:
    """The console script."""
    app()
