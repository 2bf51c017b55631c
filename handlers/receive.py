"""Rehearses one delivery without a webhook: from a saved payload to what is, or would be, written to GitHub."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import typer
from rich.console import Console

from bot import exits, hosting
from bot.errors import UserError
from bot.models.delivery import Delivery
from bot.service.ports import GitHub, Permission, Task
from bot.service.watched import Watched, Written
from bot.settings import Settings
from bot.testing import FakeGitHub, InlineQueue, MemoryStore
from handlers.events import Ignored, Malformed, read
from handlers.policy import Us

_MOST_BYTES = 25_000_000
CONFIG = ".github/reprise.yml"


def receive(
    event: str, payload: Path, settings: Settings, *, dry_run: bool, permission: Permission, config: Path | None, as_json: bool
) -> int:
    """Take one delivery in and see it through; returns the exit code."""
    us = Us(settings.app_id, settings.app_slug)
    taken = read(event, f"rehearsal-{uuid4().hex[:12]}", _bytes(payload), datetime.now(UTC), us)
    if isinstance(taken, Malformed):
        raise UserError(f"{payload} is no {event} delivery: {taken.reason}.", "Save the payload as GitHub sent it.")
    written: list[Written] = []
    if isinstance(taken, Ignored):
        return _ended(written, f"Ignored: {taken.reason}.", as_json=as_json)
    github: GitHub = _pretended(taken[0], permission, config, us) if dry_run else hosting.hub(settings)

    def hear(each: Written) -> None:
        written.append(each)
        if not as_json:
            exits.say(f"{each.what} on {each.where}")

    _see_through(taken, settings, Watched(github, hear))
    would = "would be written" if dry_run else "was written"
    return _ended(
        written, f"{len(written)} writes: this {would} to GitHub." if written else f"Nothing {would}.", as_json=as_json
    )


def _see_through(deliveries: tuple[Delivery, ...], settings: Settings, github: GitHub) -> None:
    store, queue = MemoryStore(write_gap_s=0, notify_gap_s=0), InlineQueue()
    service = hosting.service(settings.model_copy(update={"public_url": ""}), store, queue, github)
    store.claim(deliveries)
    for delivery in deliveries:
        queue.offer(Task(kind="delivery", id=delivery.guid))
    queue.drain(service.handle)


def _pretended(delivery: Delivery, permission: Permission, config: Path | None, us: Us) -> FakeGitHub:
    """A GitHub in memory that holds what the payload speaks of."""
    github = FakeGitHub(slug=us.slug or "reprise")
    if delivery.repository is None:
        return github
    here = github.repository(delivery.repository.full_name, delivery.installation)
    here.permissions[delivery.sender] = permission
    if config is not None:
        here.files[CONFIG] = _bytes(config)
    if delivery.issue is not None and delivery.issue.number is not None:
        github.issue(delivery.repository.full_name, delivery.issue.number)
        if delivery.comment is not None:
            made = github.comment(delivery.repository.full_name, delivery.issue.number, delivery.sender, "")
            github.comments[delivery.comment] = github.comments.pop(made)
            github.comments[delivery.comment].id = delivery.comment
    return github


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", "Give the path of a saved payload.") from None
    if len(data) > _MOST_BYTES:
        raise UserError(f"{path} is larger than GitHub's limit of 25 MB.", "Give the payload alone.")
    return data


def _ended(written: list[Written], sentence: str, *, as_json: bool) -> int:
    if as_json:
        typer.echo(json.dumps({"outcome": sentence, "writes": [each.model_dump() for each in written]}, indent=2))
        return 0
    console = Console(highlight=False, markup=False)
    for each in written:
        console.rule(f"{each.what} on {each.where}", align="left")
        console.print(each.text, soft_wrap=True)
    console.print(sentence, soft_wrap=True)
    return 0
