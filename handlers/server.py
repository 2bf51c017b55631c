"""uvicorn in this process, on uvloop and httptools; it ends when told to, after what it has begun."""

from __future__ import annotations

import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from bot.errors import UserError

GRACE_S = 10
MOST_CONNECTIONS = 512
KEEP_ALIVE_S = 30
BACKLOG = 1024


def make(app: ASGIApp) -> uvicorn.Server:
    """A server that is not running yet; `should_exit = True` ends it from another thread."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="on",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
        )
    )


def serve(app: ASGIApp, host: str, port: int, *, listening: Callable[[str], None] = lambda _address: None) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is under way and return. `listening` hears the address once connections
    are taken; with port 0 that is how the port is learnt. UserError when the address cannot be had.
    """
    with bound(host, port) as sock:
        server = make(app)
        with _ending(server):
            listening(address(sock))
            gc.collect()
            gc.freeze()  # what lives as long as the process is not walked again while a delivery waits
            server.run(sockets=[sock])


def bound(host: str, port: int) -> socket.socket:
    """A listening socket on an address; connections wait in it until a server takes them."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        fix = "Choose another one with --host and --port, or REPRISE_BIND and REPRISE_PORT."
        raise UserError(f"Nothing can listen on {host} port {port}: {error.strerror or error}.", fix) from None


def address(sock: socket.socket) -> str:
    """The address of a listening socket, as a URL."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _ending(server: uvicorn.Server) -> Iterator[None]:
    """Signals end the server and not the process, before, during and after uvicorn's own handling: the caller cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
