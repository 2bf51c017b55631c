"""uvicorn in this process, on uvloop and httptools, behind a socket that is bound beforehand."""

from __future__ import annotations

import socket

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


def bound(host: str, port: int) -> socket.socket:
    """A listening socket on an address; connections wait in it until a server takes them."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        sock = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        fix = "Choose another one with --host and --port, or REPRISE_BIND and REPRISE_PORT."
        raise UserError(f"Nothing can listen on {host} port {port}: {error.strerror or error}.", fix) from None
    # Inherited by what it accepts. An event loop sets it only where the protocol was named when the socket was made; without
    # it a second small packet waits up to 40 ms for the first to be acknowledged.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def address(sock: socket.socket) -> str:
    """The address of a listening socket, as a URL."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
