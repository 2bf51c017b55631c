"""One HTTP request in a thread of its own, so that whoever waits for it can stop waiting at any moment."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import httpx

_CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Head:
    """How an answer begins."""

    status: int
    headers: httpx.Headers


@dataclass(frozen=True, slots=True)
class End:
    """No more follows; `error` says why when that is not as it should be."""

    error: str = ""


class Call:
    """A POST under way. Name resolution, connecting and TLS happen in the thread too: none of them can be interrupted."""

    def __init__(self, url: str, headers: dict[str, str], body: bytes, *, seconds: float, context: ssl.SSLContext) -> None:
        self._pieces: Queue[Head | bytes | End] = Queue(maxsize=64)
        self._closed = Event()
        self._socket: socket.socket | None = None
        timeout = httpx.Timeout(seconds + 1, connect=min(_CONNECT_S, seconds + 1))
        # A proxy must not see what is meant for this machine.
        outward = urlsplit(url).hostname not in {"localhost", "127.0.0.1", "::1"}
        client = httpx.Client(timeout=timeout, verify=context, follow_redirects=False, trust_env=outward)
        Thread(target=self._work, args=(client, url, headers, body), name="model-call", daemon=True).start()

    def next(self, seconds: float) -> Head | bytes | End | None:
        """What arrived next; None when nothing did for so long."""
        with suppress(Empty):
            return self._pieces.get(timeout=seconds)
        return None

    def close(self) -> None:
        """Let go of it, whatever it is doing: a thread that reads is woken, one that connects ends with its own time limit."""
        self._closed.set()
        held = self._socket
        if held is not None:
            with suppress(OSError):
                socket.socket.shutdown(
                    held, socket.SHUT_RDWR
                )  # not that of SSLSocket, which would pull TLS from under a reader

    def _work(self, client: httpx.Client, url: str, headers: dict[str, str], body: bytes) -> None:
        error = "the connection ended"
        try:
            extensions = {"trace": self._trace}
            with client, client.stream("POST", url, headers=headers, content=body, extensions=extensions) as response:
                self._put(Head(response.status_code, response.headers))
                for chunk in response.iter_bytes():
                    self._put(chunk)
                    if self._closed.is_set():
                        return
                error = ""
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError) as problem:
            # The text of other errors can quote what was sent.
            error = str(problem) if isinstance(problem, httpx.ConnectError) else type(problem).__name__
        finally:
            self._put(End(error))

    def _trace(self, _event: str, about: dict[str, Any]) -> None:
        """Hears of each connection as soon as it is made, so that it can be closed before it has said anything."""
        made = about.get("return_value")
        if made is not None and hasattr(made, "get_extra_info"):
            self._socket = made.get_extra_info("socket")
            if self._closed.is_set():
                self.close()

    def _put(self, piece: Head | bytes | End) -> None:
        while not self._closed.is_set():
            with suppress(Full):
                self._pieces.put(piece, timeout=0.2)
                return
