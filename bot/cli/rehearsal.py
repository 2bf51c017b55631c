"""Rehearses one saved delivery: prints what is, or would be, written to GitHub."""

import json
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from uuid import uuid4

import typer
from rich.console import Console

from bot.app import factory
from bot.app.github.writes import recording
from bot.app.ports import GitHub, Permission, Task, Write
from bot.app.rehearsal import DryRunGitHub, RehearsalQueue
from bot.app.store import MEMORY, SqlStore
from bot.cli import error_boundary
from bot.kernel.document import count
from bot.kernel.errors import UserError
from bot.kernel.run import Delivery
from bot.kernel.settings import Settings
from handlers.events import AppIdentity, IgnoredDelivery, InvalidPayload, parse_event

_MAX_BYTES = 25_000_000


def receive(
    event: str,
    payload: Path,
    settings: Settings,
    *,
    dry_run: bool,
    permission: Permission,
    config: Path | None,
    as_json: bool,
) -> None:
    """Handle one delivery from end to end."""
    identity = AppIdentity(settings.app_id, settings.app_slug)
    guid = f"rehearsal-{uuid4().hex[:12]}"
    deliveries = parse_event(event, guid, payload_bytes(payload), datetime.now(UTC), identity)
    if isinstance(deliveries, InvalidPayload):
        raise UserError(
            f"{payload} is not a delivery of {event}: {deliveries.reason}.",
            "Save the payload as GitHub sent it.",
        )
    if isinstance(deliveries, IgnoredDelivery):
        print_writes([], f"Ignored: {deliveries.reason}.", as_json=as_json)
        return
    text = payload_bytes(config).decode() if config else None
    github: GitHub = (
        DryRunGitHub(deliveries[0], permission, text) if dry_run else factory.hub(settings)
    )
    writes = _rehearse(deliveries, settings, github, quiet=as_json)
    would = "would be written" if dry_run else "was written"
    outcome = f"{count(len(writes), 'write')}. This {would} to GitHub."
    outcome = outcome if writes else f"Nothing {would} to GitHub."
    print_writes(writes, outcome, as_json=as_json)


def _rehearse(
    deliveries: tuple[Delivery, ...], settings: Settings, github: GitHub, *, quiet: bool
) -> list[Write]:
    """Handle deliveries on a store in memory; returns what was written to GitHub."""
    writes: list[Write] = []

    def record(write: Write) -> None:
        writes.append(write)
        if not quiet:
            error_boundary.say(f"{write.what} on {write.where}")

    store, queue = SqlStore(MEMORY, write_gap_s=0, notify_gap_s=0), RehearsalQueue()
    service = factory.service(
        settings.model_copy(update={"public_url": ""}),
        store,
        queue,
        github.hooked(recording(record)),
    )
    store.claim(deliveries)
    for delivery in deliveries:
        queue.offer(Task(kind="delivery", id=delivery.guid))
    queue.work(service.handle, device="cpu", slots=1, stop=Event())
    return writes


def payload_bytes(path: Path) -> bytes:
    """A saved payload. Raises UserError."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}.", "Pass the path of a saved payload."
        ) from None
    if len(data) > _MAX_BYTES:
        raise UserError(f"{path} is larger than GitHub's limit of 25 MB.", "Pass only the payload.")
    return data


def print_writes(github_writes: list[Write], outcome: str, *, as_json: bool) -> None:
    """Show what was, or would be, written to GitHub."""
    if as_json:
        writes = [write.model_dump(exclude={"notifies"}) for write in github_writes]
        typer.echo(json.dumps({"outcome": outcome, "writes": writes}, indent=2))
        return
    console = Console(highlight=False, markup=False)
    for write in github_writes:
        console.rule(f"{write.what} on {write.where}", align="left")
        console.print(write.text, soft_wrap=True)
    console.print(outcome, soft_wrap=True)
