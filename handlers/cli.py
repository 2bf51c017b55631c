"""The console script: the engine's commands, and those of the App that GitHub talks to."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from bot import exits
from bot.cli import app, secrets

# What serves and works is imported inside the commands: `reprise --help` and `reprise reproduce` need none of it.


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


def main() -> None:
    """The console script."""
    app()
