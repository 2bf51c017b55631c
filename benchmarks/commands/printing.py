"""What a bench of training programs prints: a line per row as it ends, then the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import typer
from pydantic import BaseModel
from rich.console import Console, RenderableType

R = TypeVar("R")
B = TypeVar("B", bound=BaseModel)


def printed(rows: Iterable[R], line: Callable[[R], str]) -> list[R]:
    """The rows; each is printed on standard error when it comes."""
    console, all_rows = Console(stderr=True), []
    for row in rows:
        all_rows.append(row)
        console.print(line(row), markup=False, highlight=False, soft_wrap=True)
    return all_rows


def print_whole(whole: B, table: Callable[[B], RenderableType], *, as_json: bool) -> None:
    """Print a bench on standard output, as a table or as JSON."""
    if as_json:
        typer.echo(whole.model_dump_json(indent=2))
        return
    shown = Console()
    Console(width=None if shown.is_terminal else 140).print(table(whole))
