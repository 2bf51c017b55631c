"""Kill switches from the command line: for everything, one repository or one installation."""

from __future__ import annotations

import re
from contextlib import closing

import typer

from bot import app_factory
from bot.errors import UserError
from bot.settings import Settings

_NAME = re.compile(r"all|installation:\d{1,18}|[\w.-]{1,100}/[\w.-]{1,100}", re.ASCII)


def switch(settings: Settings, name: str | None, reason: str, *, back: bool) -> None:
    """Set a kill switch, remove it, or list those that are set."""
    if name is not None and not _NAME.fullmatch(name):
        raise UserError(
            f"{name} cannot be paused.",
            "Give all, owner/name or installation:NUMBER.",
        )
    with closing(app_factory.store(settings)) as store:
        if name is not None:
            name = name.lower()
            if back and name not in store.switches():
                raise UserError(f"{name} is not paused.", "To list what is paused: reprise switch")
            store.set_switch(name, None if back else reason or "paused by the host")
        for switched, why in sorted(store.switches().items()):
            typer.echo(f"{switched}: paused ({why})")
        if not store.switches():
            typer.echo("Nothing is paused.")
