"""Connections that say nothing, or little: they are closed, and a delivery always finds a place."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
import uvicorn
from pydantic import SecretStr

from bot.kernel.settings import Settings
from handlers import server, webhook
from handlers.app import create
from handlers.server import bind, make
from handlers.webhook import sign
from tests.integration.webhook.test_app import GUID, opened
from tests.support.fakes import InlineQueue, MemoryStore

HALF = b"POST /webhook HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: iss"


@pytest.fixture
def port() -> Iterator[int]:
    app = create(Settings(webhook_secret=SecretStr("s")), MemoryStore(), InlineQueue())
    with bind("127.0.0.1", 0) as sock:
        server = make(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        yield int(sock.getsockname()[1])
        server.should_exit = True
        thread.join(20)


def held(port: int, sent: bytes, host: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(host, 0))
    made.sendall(sent)
    return made


def deliver(port: int, number: int) -> int:
    body = opened(f"body {number}")
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": f"{GUID}{number}",
        "X-Hub-Signature-256": sign("s", body),
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", "/webhook", body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def ended(sock: socket.socket, within_s: float = 5.0) -> bool:
    sock.settimeout(within_s)
    with suppress(ConnectionError):
        try:
            while sock.recv(65_536):
                pass
        except TimeoutError:
            return False
    return True


def test_half_sent_headers_close_no_door(port: int) -> None:
    with ExitStack() as stack:
        held_open = [
            stack.enter_context(held(port, HALF, f"127.0.0.{2 + number % 5}"))
            for number in range(600)
        ]
        assert [deliver(port, number) for number in range(5)] == [202] * 5
        assert ended(held_open[0], 1)


@pytest.mark.parametrize("http", ["httptools", "h11"])
def test_the_limits_of_uvicorn_alone_close_the_door(http: str) -> None:
    """Why `handlers/server.py` is there: when this fails, it may go."""
    app = create(Settings(webhook_secret=SecretStr("s")), MemoryStore(), InlineQueue())
    config = uvicorn.Config(app, http=http, ws="none", log_level="error", limit_concurrency=100)
    server = uvicorn.Server(config)
    with bind("127.0.0.1", 0) as sock, ExitStack() as stack:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        silent = [stack.enter_context(held(sock.getsockname()[1], HALF)) for _ in range(110)]
        time.sleep(0.5)
        assert deliver(sock.getsockname()[1], 1) == 503
        assert not ended(silent[0], 0.5)
        server.should_exit = True
        thread.join(20)


def test_one_address_holds_so_many_connections(port: int) -> None:
    with ExitStack() as stack:
        made = [
            stack.enter_context(held(port, HALF, "127.0.0.9"))
            for _ in range(server.PER_ADDRESS + 20)
        ]
        assert deliver(port, 1) == 202
        assert sum(ended(sock, 0.05) for sock in made) == 20


def test_headers_and_bodies_have_a_deadline(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.5)
    monkeypatch.setattr(server, "BODY_S", 0.5)
    body = b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"
    with ExitStack() as stack:
        silent, half, slow, drip = (
            stack.enter_context(held(port, sent)) for sent in (b"", HALF, body, HALF)
        )
        for _ in range(8):
            time.sleep(0.1)
            with suppress(OSError):
                drip.sendall(b"x")
                slow.sendall(b"x")
        assert all(ended(sock, 1) for sock in (silent, half, slow, drip))


def test_blank_lines_keep_nothing_open(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.5)
    with held(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") as sock:
        sock.recv(4096)
        for _ in range(8):
            time.sleep(0.1)
            with suppress(OSError):
                sock.sendall(b"\r\n")
        assert ended(sock, 1)


def test_endless_headers_are_cut_off(port: int) -> None:
    with held(port, HALF) as sock, suppress(OSError):
        for _ in range(100):
            sock.sendall(b"X-More: " + b"x" * 2000 + b"\r\n")
        assert ended(sock, 2)


def test_two_long_slow_bodies_keep_nobody_out(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "STALL_S", 1.0)
    size = webhook.MAX_BYTES
    head = (
        "POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"X-GitHub-Event: issues\r\nX-GitHub-Delivery: {GUID}\r\n"
        f"X-Hub-Signature-256: sha256=0\r\nContent-Length: {size}\r\n\r\n"
    ).encode()
    with ExitStack() as stack:
        slow = [stack.enter_context(held(port, head)) for _ in range(2)]
        for sock in slow:
            sock.sendall(b"x" * (size - 10))
        assert [deliver(port, number) for number in range(5)] == [202] * 5
        assert all(ended(sock, 5) for sock in slow)


def test_a_connection_serves_many_requests(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    for _ in range(300):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"
    connection.close()
