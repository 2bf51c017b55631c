"""The application's answers: what is accepted, what is refused and why, and what happens when
the store or the queue is away.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from bot.kernel.errors import TransientError, UserError
from bot.kernel.settings import Settings
from handlers import webhook
from handlers.app import create
from tests.integration.webhook.conftest import SECRET, Memory, Offers, World, call, settled, signed

GUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"


def opened(title: str = "NaN") -> bytes:
    return json.dumps(
        {
            "action": "opened", "installation": {"id": 1}, "sender": {"login": "ann", "type": "User"}, "repository": {"id": 1, "full_name": "o/r"},
            "issue": {"number": 1, "title": title, "body": "it fails", "user": {"login": "ann", "type": "User"}},
        }
    ).encode()  # fmt: skip


def with_header(name: bytes, value: bytes | None, body: bytes = b"") -> list[tuple[bytes, bytes]]:
    headers = [each for each in signed(body or opened(), "issues", GUID) if each[0] != name]
    return headers if value is None else [*headers, (name, value)]


def test_a_delivery_is_kept_then_answered_then_offered_and_once_only(world: World) -> None:
    async def story() -> None:
        first = await world.post(opened(), "issues", GUID)
        assert (first.status, first.says) == (202, {"status": "accepted"})
        assert list(world.store.kept) == [GUID]
        await settled(world.queue, 1)
        again = await world.post(opened("changed meanwhile"), "issues", GUID)
        assert (again.status, again.says) == (200, {"status": "known"})
        await asyncio.sleep(0.05)

    asyncio.run(story())
    assert [(task.kind, task.id) for task in world.queue.waiting] == [("delivery", GUID)]
    assert world.store.kept[GUID].issue is not None
    assert world.store.kept[GUID].issue.title == "NaN"


@pytest.mark.parametrize(
    ("name", "value", "status", "says"),
    [
        (b"x-hub-signature-256", None, 401, "X-Hub-Signature-256 is missing"),
        (b"x-hub-signature-256", b"sha256=" + b"0" * 64, 401, "The signature does not match"),
        (b"x-hub-signature-256", b"\xff", 401, "The signature does not match"),
        (b"content-type", b"application/x-www-form-urlencoded", 415, "content type to application/json in the App's settings"),
        (b"content-type", None, 415, "application/json"),
        (b"content-length", b"26214401", 413, "26214400 bytes"),
        (b"content-length", b"9" * 4_000, 413, "26214400 bytes"),
        (b"content-length", b"-1", 400, "Content-Length"),
        (b"x-github-event", None, 400, "X-GitHub-Event"),
        (b"x-github-event", b"a b", 400, "X-GitHub-Event"),
        (b"x-github-delivery", None, 400, "X-GitHub-Delivery"),
        (b"x-github-delivery", b"../../../x", 400, "X-GitHub-Delivery"),
        (b"x-github-delivery", GUID.encode() + b".2", 400, "X-GitHub-Delivery"),
    ],
)  # fmt: skip
def test_what_github_would_not_send_is_refused_with_the_reason(
    world: World, name: bytes, value: bytes | None, status: int, says: str
) -> None:
    answer = asyncio.run(call(world.app, with_header(name, value), (opened(),)))
    assert (answer.status, answer.says["status"]) == (status, "refused")
    assert says in answer.says["reason"]
    assert world.store.kept == {}


def test_a_charset_beside_the_content_type_is_fine(world: World) -> None:
    headers = with_header(b"content-type", b"Application/JSON; charset=utf-8")
    assert asyncio.run(call(world.app, headers, (opened(),))).status == 202


def test_a_body_without_a_length_is_measured_as_it_comes(world: World) -> None:
    headers = with_header(b"content-length", None)
    answer = asyncio.run(call(world.app, headers, [b"x" * (1 << 20)] * 26))
    assert answer.status == 413


def test_bodies_that_come_at_the_same_time_share_one_allowance(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "MAX_BUFFERED", 1_000)
    assert (
        asyncio.run(call(world.app, with_header(b"content-length", None), [b"x" * 1_001])).status
        == 503
    )
    assert asyncio.run(world.post(opened(), "issues", GUID)).status == 202, (
        "what was held is given back"
    )


def test_long_bodies_leave_room_for_short_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "MAX_BUFFERED", 1)
    assert asyncio.run(world.post(opened(), "issues", GUID)).status == 202
    monkeypatch.setattr(webhook, "MAX_BUFFERED_SHORT", 1)
    assert asyncio.run(world.post(opened("y"), "issues", f"{GUID}2")).status == 503


def test_a_body_has_a_least_rate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "STALL_S", 0.2)
    sent = []

    async def slowly() -> AsyncIterator[bytes]:
        for number in range(100):
            await asyncio.sleep(0.05)
            sent.append(number)
            yield b"x"

    async def receive() -> list[bytes]:
        return [piece async for piece in webhook._paced(slowly())]

    with pytest.raises(TimeoutError):
        asyncio.run(receive())
    assert 2 <= len(sent) <= 20


def test_a_body_that_trickles_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "READ_S", 0.05)
    scope_headers, sent = signed(opened(), "issues", GUID), list[Any]()

    async def never() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/webhook",
        "headers": scope_headers,
        "query_string": b"",
        "root_path": "",
    }
    asyncio.run(world.app(scope, never, send))
    assert sent[0]["status"] == 408


def test_a_signed_body_that_is_no_payload_is_refused(world: World) -> None:
    answer = asyncio.run(
        world.post(b'{"action": "opened", "installation": {"id": "SECRET"}}', "issues", GUID)
    )
    assert (answer.status, answer.says["reason"]) == (
        400,
        "This is not a payload of issues: installation.id is not usable (int_type).",
    )


def test_a_long_issue_is_read_all_the_same(world: World) -> None:
    assert asyncio.run(world.post(opened("x" * 65_536), "issues", GUID)).status == 202


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/webhook", 405),
        ("HEAD", "/webhook", 405),
        ("PUT", "/webhook", 405),
        ("POST", "/nowhere", 404),
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
    ],
)
def test_other_doors(world: World, method: str, path: str, status: int) -> None:
    assert asyncio.run(call(world.app, method=method, path=path)).status == status


def test_readiness_asks_the_store_and_liveness_does_not(world: World) -> None:
    world.store.error = TransientError("The disk is full.")
    assert asyncio.run(call(world.app, method="GET", path="/healthz")).status == 200
    answer = asyncio.run(call(world.app, method="GET", path="/readyz"))
    assert (answer.status, answer.says["status"]) == (503, "waiting")


def test_when_the_store_fails_github_is_asked_to_come_back(world: World) -> None:
    world.store.error = TransientError("The disk is full.")
    answer = asyncio.run(world.post(opened(), "issues", GUID))
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    world.store.error = None
    assert asyncio.run(world.post(opened(), "issues", GUID)).status == 202


def test_when_the_queue_is_away_the_delivery_is_accepted_all_the_same(world: World) -> None:
    world.queue.away = True
    assert asyncio.run(world.post(opened(), "issues", GUID)).status == 202
    assert GUID in world.store.kept


def test_no_secret_no_service() -> None:
    for secret in (None, SecretStr(""), SecretStr("  ")):
        with pytest.raises(UserError, match="no webhook secret"):
            create(Settings(webhook_secret=secret), Memory(), Offers())


class Slow(Memory):
    """A store whose first transaction waits for a sign."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def claim(self, deliveries: Any) -> Any:
        self.go.wait(5)
        return super().claim(deliveries)


def test_a_store_that_hangs_does_not_hold_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "WAIT_S", 0.1)
    store = Slow()
    app = create(Settings(webhook_secret=SecretStr(SECRET)), store, Offers())

    async def story() -> tuple[int, float]:
        begun = time.monotonic()
        answer = await call(app, signed(opened(), "issues", GUID), (opened(),))
        store.go.set()
        return answer.status, time.monotonic() - begun

    status, seconds = asyncio.run(story())
    assert status == 503
    assert seconds < 2


def test_deliveries_that_wait_for_each_other_are_all_kept() -> None:
    store = Slow()
    app = create(Settings(webhook_secret=SecretStr(SECRET)), store, Offers())

    async def story() -> list[int]:
        posts = [
            asyncio.create_task(call(app, signed(opened(), "issues", f"{GUID}{n}"), (opened(),)))
            for n in range(40)
        ]
        await asyncio.sleep(0.05)
        store.go.set()
        return [answer.status for answer in await asyncio.gather(*posts)]

    assert asyncio.run(story()) == [202] * 40
    assert len(store.kept) == 40
