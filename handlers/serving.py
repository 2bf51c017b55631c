"""`reprise serve` and `reprise worker`: settings → running processes, from the first start to a signal."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from threading import Event
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from bot import hosting
from bot.errors import TransientError, UserError
from bot.exits import AT_ONCE, say
from bot.service.ports import Device, Queue, Store
from bot.settings import Settings, load
from handlers import logs
from handlers.server import address, bound, make

_LOOK_S = 2.0
_DEVICES: tuple[Device, ...] = ("cpu", "gpu")
_log = logging.getLogger("reprise")


class Door:
    """A listening socket, behind which one server after the other stands: callers wait in it, none is turned away between."""

    def __init__(self, sock: socket.socket, stop: Event) -> None:
        self.sock = sock
        self.stop = stop
        self._server: uvicorn.Server | None = None

    def serve(self, app: ASGIApp) -> None:
        """Serve an application until a signal, or until `leave`."""
        self._server = make(app)
        if not self.stop.is_set():
            self._server.run(sockets=[self.sock.dup()])

    def close(self) -> None:
        """End it, and let nothing stand here after it."""
        self.stop.set()
        self.leave()

    def leave(self) -> None:
        """End the server that stands here now, after what it has begun."""
        if self._server is not None:
            self._server.should_exit = True


def serve(*, embedded: bool, host: str | None, port: int | None, slots: int) -> None:
    """Serve the App until a signal; without credentials, the setup page first."""
    settings = load()
    logs.to_stderr(settings.secrets)
    known = settings.registered
    if embedded:
        hosting.check_sandbox(settings)
    with ExitStack() as stack:
        store = stack.enter_context(closing(hosting.store(settings)))
        queue = stack.enter_context(closing(_queue(settings, embedded=embedded)))
        sock = stack.enter_context(bound(host or settings.bind, settings.port if port is None else port))
        stop = Event()
        door = Door(sock, stop)
        stack.enter_context(heard(door.close))
        settings = _at(settings, sock)
        if not known:
            settings = _set_up(settings, door)
        if not stop.is_set():
            _serve(settings, store, queue, door, slots if embedded else 0)


def work(device: Device, *, slots: int) -> None:
    """Work on what the queue offers until a signal; what is under way is given back, and goes on elsewhere."""
    settings = load()
    logs.to_stderr(settings.secrets)
    if not settings.registered:
        _log.info("No App is registered yet: waiting for %s", settings.app_file.absolute())
        settings = _awaited()
    if not settings.registered:
        return
    from bot.worker import run

    logs.to_stderr(settings.secrets)
    with closing(hosting.store(settings)) as store, closing(hosting.queue(settings)) as queue:
        service = hosting.service(settings, store, queue, hosting.hub(settings))
        _say_where(settings, "the queue between processes")
        run(service.handle, queue, device=device, slots=slots, ticks=service.ticks(), **_manners(settings))


def _serve(settings: Settings, store: Store, queue: Queue, door: Door, slots: int) -> None:
    from handlers.app import create
    from handlers.pages import routes

    logs.to_stderr(settings.secrets)
    app = create(settings, store, queue, extra_routes=routes(store, settings))
    with _beside(settings, store, queue, door, slots) if slots else nullcontext():
        _log.info("Listening on %s", address(door.sock))
        _log.info("GitHub delivers to %s/webhook", settings.public_url)
        _say_where(settings, "" if slots else "the queue between processes")
        door.serve(app)


def _say_where(settings: Settings, queue: str) -> None:
    _log.info("App %s (id %s) on %s", settings.app_slug or "of an unknown name", settings.app_id, settings.github_url)
    _log.info("Database %s", logs.shown(settings.database_url.get_secret_value()))
    _log.info("Queue %s", logs.shown(settings.redis_url.get_secret_value()) if queue else "in this process")


def _set_up(settings: Settings, door: Door) -> Settings:
    """Serve the setup page until an App is registered; the settings with it."""
    from bot.adapters import registration
    from handlers.setup import Setup

    if settings.github_url != "https://github.com" and settings.github_api_url == "https://api.github.com":
        raise UserError(
            f"REPRISE_GITHUB_URL is {settings.github_url}, but REPRISE_GITHUB_API_URL is not set.",
            f"Set it to {settings.github_url}/api/v3.",
        )
    registration.check_place(settings.app_file)
    setup = Setup(settings, lambda _kept: door.leave())
    here = address(door.sock)
    _log.info("Listening on %s", here)
    say(f"No App is registered yet. To register one, open {settings.public_url}/setup?key={setup.key}")  # the log hides keys
    door.serve(setup.app)
    return settings if door.stop.is_set() else _at(load(), door.sock)


@contextmanager
def _beside(settings: Settings, store: Store, queue: Queue, door: Door, slots: int) -> Iterator[None]:
    """Work in threads of this process while the block serves. When one of them ends, so do all."""
    from bot.worker import run

    service = hosting.service(settings, store, queue, hosting.hub(settings))
    ticks = service.ticks()
    _offer_all(store, queue)
    with ThreadPoolExecutor(2, "work") as pool:
        working: list[Future[None]] = []
        for device in _DEVICES:
            each = partial(run, service.handle, queue, device=device, slots=slots, stop=door.stop, **_manners(settings))
            working.append(pool.submit(each, ticks=ticks))
            working[-1].add_done_callback(lambda _: door.close())
            ticks = ()  # one of them is enough
        try:
            yield
        finally:
            door.stop.set()
    for done in working:
        done.result()


def _offer_all(store: Store, queue: Queue) -> None:
    """Offer what waits in the store: a queue within the process is empty at its start."""
    try:
        for task in store.overdue(0.0):
            queue.offer(task)
    except TransientError as error:
        _log.warning("What waits is offered later: %s", error)


@contextmanager
def heard(then: Callable[[], object]) -> Iterator[None]:
    """SIGINT and SIGTERM call `then` once; the second one leaves at once."""
    asked = Event()

    def hear(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            os._exit(AT_ONCE)
        asked.set()
        then()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _queue(settings: Settings, *, embedded: bool) -> Queue:
    if not embedded:
        return hosting.queue(settings)
    from bot.adapters.queues.local import LocalQueue

    return LocalQueue()


def _manners(settings: Settings) -> dict[str, Any]:
    return {"grace_s": settings.grace_s, "secrets": settings.secrets}


def _awaited() -> Settings:
    """The settings once the setup page of another process has written the App's file, or a signal has come."""
    settings, stop = load(), Event()
    with heard(stop.set):
        while not settings.registered and not stop.wait(_LOOK_S):
            settings = load()
    return settings


def _at(settings: Settings, sock: socket.socket) -> Settings:
    """The settings with the port that is really listened on, also in the default public address."""
    port = sock.getsockname()[1]
    changed: dict[str, object] = {"port": port}
    if "public_url" not in settings.model_fields_set:
        changed["public_url"] = f"http://localhost:{port}"
    return settings.model_copy(update=changed)
