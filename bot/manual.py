"""The command line's own help as Markdown, for the README."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

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
