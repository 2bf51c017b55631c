"""The command line: every command is registered here."""

from collections.abc import Iterator
from importlib import metadata
from typing import Annotated, Any

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command
from typing_extensions import override

from bot.cli.action import action
from bot.cli.diagnose import diagnose, probe, repair, rules
from bot.cli.doctor import doctor, prompts, schema
from bot.cli.hosting import receive, serve, switch, worker
from bot.cli.paper import paper
from bot.cli.proofs import bisect, control, minimize, pr
from bot.cli.reproduce import example, replay, reproduce
from bot.kernel.settings import Settings

# Commands import what is heavy inside their functions, all of `handlers` among it: help stays fast,
# and the web process does not load the engine.


class _Program(TyperGroup):
    """All commands, with the complaints about their options as people write them."""

    @override
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # pydantic's, not ours
            raise


app = typer.Typer(
    name="reprise",
    cls=_Program,
    help="Reproduces deep-learning bug reports by running them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    reproduce, example, replay, control, bisect, minimize, diagnose, repair, paper, probe, rules,
    pr, doctor, schema, prompts, serve, worker, receive, switch, action,
):  # fmt: skip
    app.command()(command)


def _version(is_requested: bool) -> None:
    if is_requested:
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


# Help pages and the settings table as Markdown, for `docs/`.

_WIDTH = 110


def command_pages(app: typer.Typer, program: str = "reprise") -> str:
    """The help page of every command of `app`."""
    pages = _commands(get_command(app), program, None)
    return "\n".join(f"### `{path}`\n\n```text\n{text}\n```\n" for path, text in pages)


def _commands(command: object, path: str, above: typer.Context | None) -> Iterator[tuple[str, str]]:
    if not isinstance(command, TyperCommand | TyperGroup):
        return
    name = path.rpartition(" ")[2] if above else path
    context = typer.Context(command, info_name=name, parent=above, terminal_width=_WIDTH)
    if isinstance(command, TyperCommand):
        yield path, command.get_help(context).strip()
        return
    for name, below in command.commands.items():
        yield from _commands(below, f"{path} {name}", context)


def settings_table() -> str:
    """Every setting as a row of a Markdown table."""
    rows = [
        f"| `{field.validation_alias or 'REPRISE_' + name.upper()}` | {_default(field)} | "
        f"{(field.description or '').replace('<', '&lt;')} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "the user's cache folder; for root, `/var/cache/reprise`"
    value = field.default
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if value in {None, ""}:
        return ""
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
