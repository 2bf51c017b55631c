"""The real application, driven as a server would drive it, over a store and a queue that only
remember.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from bot.app.ports import Claim, Task
from bot.kernel.errors import TransientError
from bot.kernel.run import Delivery
from bot.kernel.settings import Settings
from handlers.app import create
from tests.support.fakes import InlineQueue, MemoryStore

SECRET = "a secret of this test"
EXAMPLES = (
    Path(__file__).parents[2]
    / "node/node_modules/@octokit/webhooks-examples/api.github.com/index.json"
)


class Memory(MemoryStore):
    """The store in memory, which remembers its transactions and can fail."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Delivery] = {}
        self.transactions: list[int] = []
        self.error: Exception | None = None

    def claim(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        if self.error is not None:
            raise self.error
        self.transactions.append(len(deliveries))
        claims = super().claim(deliveries)
        for delivery, claim in zip(deliveries, claims, strict=True):
            if claim == "new":
                self.kept[delivery.guid] = Delivery.model_validate_json(
                    delivery.model_dump_json().encode()
                )
        return claims

    def shared(self, name: str, within_s: float | None = None) -> str:
        if self.error is not None:
            raise self.error
        return super().shared(name, within_s)


class Offers(InlineQueue):
    """The queue of one process, which can be away."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False

    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        if self.away:
            raise TransientError("The queue is away.")
        super().offer(task, delay_s)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def says(self) -> dict[str, str]:
        return cast("dict[str, str]", json.loads(self.body))


Headers = Sequence[tuple[bytes, bytes]]
Call = Callable[..., Awaitable[Answer]]


async def call(
    app: FastAPI,
    headers: Headers = (),
    chunks: Sequence[bytes] = (b"",),
    *,
    method: str = "POST",
    path: str = "/webhook",
) -> Answer:
    """One request, as an ASGI server passes it on."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": list(headers), "scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip
    waiting = [
        {"type": "http.request", "body": chunk, "more_body": at < len(chunks) - 1}
        for at, chunk in enumerate(chunks)
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        if waiting:
            return waiting.pop(0)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    names = {name.decode("latin-1"): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(
        start["status"], names, b"".join(message.get("body", b"") for message in sent[1:])
    )


def signed(body: bytes, event: str, guid: str, secret: str = SECRET) -> list[tuple[bytes, bytes]]:
    """The headers that GitHub sends."""
    return [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"user-agent", b"GitHub-Hookshot/044aadd"),
        (b"x-github-event", event.encode()),
        (b"x-github-delivery", guid.encode()),
        (
            b"x-hub-signature-256",
            b"sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode(),
        ),
    ]


class World(NamedTuple):
    app: FastAPI
    store: Memory
    queue: Offers

    async def post(self, body: bytes, event: str, guid: str) -> Answer:
        return await call(self.app, signed(body, event, guid), (body,))


@pytest.fixture
def world() -> World:
    store, queue = Memory(), Offers()
    settings = Settings(webhook_secret=SecretStr(SECRET), app_id=7, app_slug="reprise")
    return World(create(settings, store, queue), store, queue)


def examples(*events: str) -> list[tuple[str, dict[str, Any]]]:
    """GitHub's own example payloads; all of them when no event is named."""
    every = json.loads(EXAMPLES.read_text())
    return [
        (each["name"], payload)
        for each in every
        if not events or each["name"] in events
        for payload in each["examples"]
    ]


async def settled(queue: Offers, count: int) -> None:
    """Wait until so many offers were made: they are made after the answer."""
    async with asyncio.timeout(5):
        while len(queue.waiting) < count:
            await asyncio.sleep(0.001)
