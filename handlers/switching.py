"""Kill switches from the command line: everything, one repository, or one installation stops starting anything."""

from __future__ import annotations

import re
from contextlib import closing

import typer

from bot import hosting
from bot.errors import UserError
from bot.settings import Settings

_NAME = re.compile(r"all|installation:\d{1,18}|[\w.-]{1,100}/[\w.-]{1,100}", re.ASCII)


def switch(settings: Settings, name: str | None, reason: str, *, back: bool) -> None:
    """Throw a switch, take it back, or list those that are thrown."""
    if name is not None and not _NAME.fullmatch(name):
        raise UserError(f"{name} is nothing that can be switched off.", "Give all, owner/name or installation:NUMBER.")
    with closing(hosting.store(settings)) as store:
        if name is not None:
            name = name.lower()
            if back and name not in store.switches():
                raise UserError(f"{name} is not switched off.", "reprise switch lists what is.")
            store.set_switch(name, None if back else reason or "switched off by the host")
        for each, why in sorted(store.switches().items()):
            typer.echo(f"{each}: off ({why})")
        if not store.switches():
            typer.echo("Nothing is switched off.")
