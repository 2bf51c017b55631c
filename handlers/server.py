"""uvicorn in this process, behind a socket that is bound beforehand; whoever holds a
connection silently leaves first.
"""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
from asyncio import TimerHandle, Transport
from collections.abc import Collection, Iterable
from threading import Event
from typing import cast
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bot.app.telemetry import current_ids
from bot.kernel.errors import UserError
from bot.kernel.redaction import redact
from handlers.app import with_private_headers

# One connection of the web server: whoever holds the door open without saying anything leaves
# first, so that GitHub's deliveries find a place.
#
# uvicorn's own limits do not keep that: it has no deadline for headers, none for a body after the
# answer, and `limit_concurrency` answers everybody 503 as soon as enough connections say nothing.

PER_ADDRESS = 128
HEADERS_S = 10.0
BODY_S = 15.0
MAX_HEADER_BYTES = 65_536
RESERVE = 32  # places below uvicorn's own limit, at which it refuses everybody


class LimitedConnection(HttpToolsProtocol):
    """Headers and bodies must arrive in time, headers are limited in size, and so are connections
    in number: for each address and in all. Beyond that the one that has been idle longest is
    closed; idle is one without a whole request.
    """

    since = 0.0
    _timer: TimerHandle | None = None
    _header_bytes = 0

    @override
    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        self._arm(HEADERS_S)
        everybody = cast("set[LimitedConnection]", self.connections)
        mine = [connection for connection in everybody if connection.host == self.host]
        if len(mine) > PER_ADDRESS:
            _close_idle(mine)
        if len(everybody) > (self.limit_concurrency or RESERVE) - RESERVE:
            _close_idle(everybody)

    @property
    def host(self) -> str:
        """The address at the other end, without its port."""
        return self.client[0] if self.client else ""

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def end(self) -> None:
        """Close without an answer."""
        self._disarm()
        self.connections.discard(self)
        self.transport.close()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        if self.idle:
            self._header_bytes += len(data)
        super().data_received(data)
        if self.idle and self._header_bytes > MAX_HEADER_BYTES:
            self.end()
        elif self.idle and self._timer is None and not self.transport.is_closing():
            self._arm(HEADERS_S)

    @override
    def on_headers_complete(self) -> None:
        self._header_bytes = 0
        self._arm(BODY_S)
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._disarm()
        self.since = self.loop.time()
        super().on_message_complete()

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self.end)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _close_idle(connections: Collection[LimitedConnection]) -> None:
    """Close the one that has been idle longest; when all are busy, the one that came last."""
    idle = [connection for connection in connections if connection.idle]
    if idle:
        min(idle, key=lambda connection: connection.since).end()
    else:
        max(connections, key=lambda connection: connection.since).end()


# The log of a server on standard error: one line an event, without secrets.

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_QUIET = (
    "httpx",
    "httpcore",
    "hishel",
    "githubkit",
    "docker",
    "urllib3",
    "alembic",
    "sqlalchemy",
    "uvicorn.access",
)


class Redacting(logging.Formatter):
    """Formats a record, tracebacks included, and takes secrets and control characters out of the
    text.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z")
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """The line, and a traceback below it."""
        return self._hidden(super().format(record))

    def _hidden(self, text: str) -> str:
        return _CONTROL.sub(" ", redact(text, self._secrets))


class JsonLines(Redacting):
    """Formats a record as one JSON object, with the ids of the work in hand."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. Newlines in it are escaped."""
        level, message = record.levelname.lower(), self._hidden(record.getMessage())
        line: dict[str, str | int] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": level,
            "logger": record.name,
            "message": message,
            **current_ids(),
        }
        if record.exc_info:
            line["exception"] = self._hidden(self.formatException(record.exc_info))
        return json.dumps(line)


def to_stderr(secrets: Iterable[str], log_format: str = "text") -> None:
    """Send the log of this process to standard error, as text or as json; libraries log only
    warnings.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(secrets) if log_format == "json" else Redacting(secrets))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def redact_url(url: str) -> str:
    """An address of a database or queue without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username}@{host}" if parts.username else host).geturl()


# uvicorn in this process, on uvloop and httptools, behind a socket that is bound beforehand.

BACKLOG = 1024
_OPTIONS = {
    "loop": "uvloop",
    "http": LimitedConnection,
    "ws": "none",
    "lifespan": "on",
    "access_log": False,
    "log_level": "warning",
    "server_header": False,
    "proxy_headers": False,
    "backlog": BACKLOG,
    "limit_concurrency": 512,
    "timeout_keep_alive": 30,
    "timeout_graceful_shutdown": 10,
}


class ListenSocket:
    """A listening socket that several servers use one after the other. Callers wait in it; none
    is refused in between.
    """

    def __init__(self, sock: socket.socket, stop: Event) -> None:
        self.sock = sock
        self.stop = stop
        self._server: uvicorn.Server | None = None

    def serve(self, app: ASGIApp) -> None:
        """Serve an application until `close`, or until `leave`."""
        self._server = make(app)
        if not self.stop.is_set():
            self._server.run(sockets=[self.sock.dup()])

    def close(self) -> None:
        """End the server, and start none after it."""
        self.stop.set()
        self.leave()

    def leave(self) -> None:
        """End the current server after the requests in progress."""
        if self._server is not None:
            self._server.should_exit = True


def make(app: ASGIApp) -> uvicorn.Server:
    """A server that is not running yet; `should_exit = True` ends it from another thread."""
    private = with_private_headers(app)
    return uvicorn.Server(uvicorn.Config(private, **_OPTIONS))  # type: ignore[arg-type]


def bind(host: str, port: int) -> socket.socket:
    """A listening socket on an address; connections wait in it until a server takes them."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        sock = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        fix = "Choose another one with --host and --port, or REPRISE_BIND and REPRISE_PORT."
        raise UserError(
            f"Nothing can listen on {host} port {port}: {error.strerror or error}.", fix
        ) from None
    # Accepted connections inherit this. Event loops set it only on sockets made with a protocol
    # number; without it a small second packet waits up to 40 ms for an acknowledgement.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def address(sock: socket.socket) -> str:
    """The address of a listening socket, as a URL."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
