"""The application's answers: what is accepted, what is refused and why, and what happens when the store or the queue is away."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from bot.errors import TransientError, UserError
from bot.settings import Settings
from handlers import receiving
from handlers.app import create
from handlers.events import read
from handlers.inbox import Full, Inbox
from tests.integration.webhook.conftest import Memory, Offers, World, call, settled, signed

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
        (b"x-hub-signature-256", b"sha256=" + b"0" * 64, 401, "The signature is not ours"),
        (b"x-hub-signature-256", b"\xff", 401, "The signature is not ours"),
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


def test_bodies_that_come_at_the_same_time_share_one_allowance(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "MOST_HELD", 1_000)
    assert asyncio.run(call(world.app, with_header(b"content-length", None), [b"x" * 1_001])).status == 503
    assert asyncio.run(world.post(opened(), "issues", GUID)).status == 202, "what was held is given back"


def test_a_body_that_trickles_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "READ_S", 0.05)
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
    answer = asyncio.run(world.post(b'{"action": "opened", "installation": {"id": "SECRET"}}', "issues", GUID))
    assert (answer.status, answer.says["reason"]) == (
        400,
        "This is not a payload of issues: installation.id is not usable (int_type).",
    )


def test_an_issue_too_long_for_the_event_loop_is_read_all_the_same(world: World) -> None:
    assert asyncio.run(world.post(opened("x" * receiving.LONG_BYTES), "issues", GUID)).status == 202


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/webhook", 405), ("POST", "/", 404), ("GET", "/healthz", 200), ("GET", "/readyz", 200)],
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


def test_pages_of_others_are_served_beside() -> None:
    async def page(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("a page")

    app = create(Settings(webhook_secret=SecretStr("s")), Memory(), Offers(), extra_routes=[Route("/runs/x", page)])
    assert asyncio.run(call(app, method="GET", path="/runs/x")).body == b"a page"


class Slow(Memory):
    """A store whose first transaction waits for a sign."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def claim(self, deliveries: Any) -> Any:
        self.go.wait(5)
        return super().claim(deliveries)


def deliveries(count: int) -> list[Any]:
    from datetime import UTC, datetime

    return [read("issues", f"{GUID}{number}", opened(), datetime(2026, 1, 1, tzinfo=UTC)) for number in range(count)]


def test_what_arrives_during_one_transaction_shares_the_next() -> None:
    store, queue = Slow(), Offers()

    async def story() -> list[Any]:
        inbox = Inbox(store, queue)
        puts = [asyncio.create_task(inbox.put(each)) for each in deliveries(20)]
        await asyncio.sleep(0.05)
        more = [asyncio.create_task(inbox.put(each)) for each in [*deliveries(21)[20:], *deliveries(1)]]
        await asyncio.sleep(0.05)
        store.go.set()
        claims = await asyncio.gather(*puts, *more)
        inbox.close()
        return claims

    claims = asyncio.run(story())
    assert claims == [("new",)] * 21 + [("known",)]
    assert store.transactions == [1, 21]


def test_too_many_waiting_are_turned_away_and_the_others_are_kept() -> None:
    store = Slow()

    async def story() -> list[Any]:
        inbox = Inbox(store, Offers(), most_waiting=3)
        first = asyncio.create_task(inbox.put(deliveries(1)[0]))
        await asyncio.sleep(0.05)
        puts = [asyncio.create_task(inbox.put(each)) for each in deliveries(6)[1:]]
        await asyncio.sleep(0.05)
        store.go.set()
        return list(await asyncio.gather(first, *puts, return_exceptions=True))

    ended = asyncio.run(story())
    assert [each for each in ended if each == ("new",)] == [("new",)] * 4
    assert [type(each) for each in ended if each != ("new",)] == [Full, Full]


def test_a_store_that_hangs_does_not_hold_the_answer() -> None:
    async def story() -> float:
        store = Slow()
        inbox = Inbox(store, Offers(), wait_s=0.1)
        begun = time.monotonic()
        with pytest.raises(Full, match="in time"):
            await inbox.put(deliveries(1)[0])
        store.go.set()
        return time.monotonic() - begun

    assert asyncio.run(story()) < 2
