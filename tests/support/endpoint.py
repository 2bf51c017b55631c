"""An OpenAI-compatible endpoint on this machine that answers as it is told, faults included:
real HTTP, no model.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

Act = Callable[["Exchanged"], None]
"""What is done with a request."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A request and the connection that it came by. `ended` is set when the endpoint closes."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    handler: BaseHTTPRequestHandler
    ended: Event

    def head(self, status: int, headers: dict[str, str]) -> None:
        """Begin the answer; it ends with the connection."""
        self.handler.send_response(status)
        for name, value in {"Connection": "close", **headers}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.flush()

    def send(self, data: bytes) -> None:
        """More of it, at once."""
        self.handler.wfile.write(data)
        self.handler.wfile.flush()


def says(
    text: str,
    *,
    finish: str = "stop",
    usage: tuple[int, int] | None = (100, 20),
    thoughts: str = "",
) -> Act:
    """An answer in words, streamed when that is asked for. `usage` is what is counted, None when
    nothing is said of it.
    """

    def act(asked: Exchanged) -> None:
        counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
        if not asked.body.get("stream"):
            message = {"role": "assistant", "content": text, "reasoning_content": thoughts}
            whole = {
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": counted,
            }
            return status(200, json.dumps(whole).encode(), {"Content-Type": "application/json"})(
                asked
            )
        asked.head(200, {"Content-Type": "text/event-stream"})
        deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": thoughts}] if thoughts else []
        deltas += [{"content": text[start : start + 7]} for start in range(0, len(text), 7)]
        for delta in deltas:
            asked.send(event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
        asked.send(event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
        if counted and (asked.body.get("stream_options") or {}).get("include_usage"):
            asked.send(event({"choices": [], "usage": counted}))
        asked.send(b"data: [DONE]\n\n")
        return None

    return act


def event(data: object) -> bytes:
    """One event of a stream."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def status(code: int, body: bytes = b"", headers: dict[str, str] | None = None) -> Act:
    """A whole answer, byte for byte."""

    def act(asked: Exchanged) -> None:
        asked.head(code, {"Content-Length": str(len(body)), **(headers or {})})
        asked.send(body)

    return act


def error(code: int, message: str, headers: dict[str, str] | None = None) -> Act:
    """An error as OpenAI words one."""
    body = json.dumps({"error": {"message": message, "type": "error"}}).encode()
    return status(code, body, {"Content-Type": "application/json", **(headers or {})})


def begins(text: str, then: Act) -> Act:
    """A stream that begins with some words; then something else happens."""

    def act(asked: Exchanged) -> None:
        asked.head(200, {"Content-Type": "text/event-stream"})
        asked.send(
            event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]})
        )
        then(asked)

    return act


def silent(asked: Exchanged) -> None:
    """Nothing, until the endpoint closes."""
    asked.ended.wait()


def resets(asked: Exchanged) -> None:
    """The connection is reset."""
    asked.handler.connection.setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    asked.handler.connection.shutdown(socket.SHUT_RD)
    asked.handler.connection.close()


def after(seconds: float, then: Act) -> Act:
    """The same, late."""

    def act(asked: Exchanged) -> None:
        asked.ended.wait(seconds)
        then(asked)

    return act


class FakeEndpoint:
    """Serves from a thread while it is open (`with FakeEndpoint(...) as endpoint`). `acts` is
    what is done with the requests in their order, the last one for all that follow; or a
    function of the request. `asked` keeps the requests; `url` is the base.
    """

    def __init__(self, acts: Sequence[Act] | Callable[[dict[str, Any]], Act]) -> None:
        self._acts = acts
        self._ended = Event()
        self.asked: list[Exchanged] = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def _act(self, asked: Exchanged) -> Act:
        self.asked.append(asked)
        if callable(self._acts):
            return self._acts(asked.body)
        return self._acts[min(len(self.asked), len(self._acts)) - 1]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
                pass

            def do_POST(self) -> None:
                self.close_connection = True
                body = json.loads(
                    self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"
                )
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Exchanged(self.path, headers, body, self, endpoint._ended)
                try:
                    endpoint._act(asked)(asked)
                except OSError:
                    return  # the other side has gone, or was meant to

            def do_GET(self) -> None:
                self.send_error(404)

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that end early are part of the play."""
