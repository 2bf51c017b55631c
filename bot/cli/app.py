"""The command line: every command is registered here."""

from importlib import metadata
from typing import Annotated

import typer

from bot.cli.diagnose import diagnose, probe, rules
from bot.cli.hosting import receive, serve, switch, worker
from bot.cli.installation import doctor, prompts, schema
from bot.cli.proofs import bisect, control, minimize
from bot.cli.pull_request import pr
from bot.cli.repair import repair
from bot.cli.reproduce import example, replay, reproduce

# Commands import what is heavy inside their functions, all of `handlers` among it: help stays fast,
# and the web process does not load the engine.

app = typer.Typer(
    name="reprise",
    help="Reproduces deep-learning bug reports by running them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    reproduce, example, replay, control, bisect, minimize, diagnose, repair, probe, rules, pr,
    doctor, schema, prompts, serve, worker, receive, switch,
):  # fmt: skip
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"reprise {metadata.version('reprise')}")
        raise typer.Exit


@app.callback()
def _main(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Reproduce deep-learning bug reports by running them."""


def main() -> None:
    """The console script."""
    app()
