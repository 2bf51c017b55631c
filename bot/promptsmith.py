"""`reprise prompts`: what a model is told, by stage and version."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import prompts as room
from bot.errors import UserError
from bot.exits import boundary


def prompts(
    stage: Annotated[str, typer.Argument(metavar="[STAGE]", help="Print the prompt of this stage.", show_default=False)] = "",
    version: Annotated[str | None, typer.Option(help="Not the live version but this one, such as v1.", metavar="V")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the prompts with their versions, or print one: what a model is told, word for word."""
    with boundary():
        typer.echo(_one(stage, version, as_json=as_json) if stage else _all(as_json=as_json))


def _all(*, as_json: bool) -> str:
    entries = room.listed()
    if as_json:
        keys = ("id", "stage", "version", "live", "prompt_sha256", "schema_sha256")
        return json.dumps([{key: getattr(entry, key) for key in keys} for entry in entries], indent=2)
    widest = max((len(entry.id) for entry in entries), default=0)
    return "\n".join(f"{entry.id:{widest}}  {'live' if entry.live else ''}".rstrip() for entry in entries)


def _one(stage: str, version: str | None, *, as_json: bool) -> str:
    known = {entry.stage for entry in room.listed() if version in {None, entry.version}}
    if stage not in known:
        named = f"{stage} {version}" if version else stage
        raise UserError(f"There is no prompt {named}.", f"Stages: {', '.join(sorted({each.stage for each in room.listed()}))}.")
    prompt = room.load(stage, version)
    if as_json:
        told = {"id": prompt.id, "system": prompt.system, "user": prompt.user, "schema": prompt.schema}
        return json.dumps(told, indent=2, ensure_ascii=False)
    parts = {"system": prompt.system, "user": prompt.user or "(nothing)", "answer": json.dumps(prompt.schema, indent=2)}
    return "\n\n".join([prompt.id, *(f"## {name}\n\n{text}" for name, text in parts.items())])
