"""The command line's own help and the settings as Markdown, for the README."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from bot.settings import Settings

_WIDTH = 110


def manual(app: typer.Typer) -> str:
    """Every command of a command line that does something, with its help."""
    return "\n".join(f"#### `{path}`\n\n```text\n{text}\n```\n" for path, text in _commands(get_command(app), "reprise", None))


def _commands(command: object, path: str, above: typer.Context | None) -> Iterator[tuple[str, str]]:
    if not isinstance(command, TyperCommand | TyperGroup):
        return
    context = typer.Context(command, info_name=path.rpartition(" ")[2], parent=above, terminal_width=_WIDTH)
    if isinstance(command, TyperCommand):
        yield path, command.get_help(context).strip()
        return
    for name, below in command.commands.items():
        yield from _commands(below, f"{path} {name}", context)


def variables() -> str:
    """Every setting as a row of a Markdown table, for the README."""
    rows = [
        f"| `{field.validation_alias or 'REPRISE_' + name.upper()}` | {_default(field)} | "
        f"{(field.description or '').replace('<', '&lt;')} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | default | |", "|---|---|---|", *rows]) + "\n"


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "the user's cache folder"
    value = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    return "" if value in {None, ""} else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
