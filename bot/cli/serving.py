"""`reprise serve` and `reprise worker`: from settings to running processes, until a signal."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from bot.app import factory
from bot.app.memory import one_heap, spare_old_objects
from bot.app.ports import AppStore, Device, Queue
from bot.app.telemetry import Telemetry
from bot.cli.error_boundary import on_signal, say
from bot.kernel.errors import TransientError, UserError
from bot.kernel.settings import Settings, load
from handlers import server
from handlers.server import ListenSocket, address, bind

if TYPE_CHECKING:
    from bot.app.worker import Service

_POLL_S = 2.0
_WAITS_S = 60.0  # for its one run, which another worker may have taken meanwhile


_DEVICES: tuple[Device, ...] = ("cpu", "gpu")


_log = logging.getLogger("reprise")


@dataclass(frozen=True)
class _Parts:
    """What a process of the App is made of."""

    settings: Settings
    store: AppStore
    queue: Queue
    telemetry: Telemetry

    def service(self) -> Service:
        """What handles the tasks of a worker."""
        hub = factory.hub(self.settings)
        return factory.service(self.settings, self.store, self.queue, hub, self.telemetry)


def run_server(*, embedded: bool, host: str | None, port: int | None, slots: int) -> None:
    """Serve the App until a signal; without credentials, the setup page first."""
    one_heap()
    settings = load()
    server.to_stderr(settings.secrets, settings.log_format)
    registered = settings.registered
    if embedded:
        from sandbox.select import choose

        choose(settings.sandbox)  # raises SandboxUnavailable before anything is served
    with ExitStack() as stack:
        store = stack.enter_context(closing(factory.store(settings)))
        queue = stack.enter_context(closing(_queue(settings, embedded=embedded)))
        telemetry = stack.enter_context(closing(factory.telemetry(settings)))
        port = settings.port if port is None else port
        sock = stack.enter_context(bind(host or settings.bind, port))
        listener = ListenSocket(sock, Event())
        stack.enter_context(on_signal(listener.close))
        settings = _listening_on(settings, sock)
        if not registered:
            settings = _set_up(settings, listener)
        if not listener.stop.is_set():
            parts = _Parts(settings, store, queue, telemetry)
            _serve(parts, listener, slots if embedded else 0)


def work(device: Device, *, slots: int, once: bool) -> None:
    """Work on what the queue offers until a signal, or on one run. Unfinished runs are given
    back, and another worker continues them.
    """
    from bot.app.worker import run

    one_heap()
    settings = load()
    server.to_stderr(settings.secrets, settings.log_format)
    if not settings.registered:
        settings = _registered_later()
        server.to_stderr(settings.secrets, settings.log_format)
    if not settings.registered:
        return
    with (
        closing(factory.store(settings)) as store,
        closing(factory.queue(settings)) as queue,
        closing(factory.telemetry(settings)) as telemetry,
    ):
        service = _Parts(settings, store, queue, telemetry).service()
        _log_settings(settings, embedded=False)
        run(
            service.handle,
            queue,
            device=device,
            slots=slots,
            ticks=() if once else service.ticks(),
            grace_s=settings.grace_s,
            secrets=settings.secrets,
            once_s=_WAITS_S if once else None,
        )


def _serve(parts: _Parts, listener: ListenSocket, slots: int) -> None:
    from handlers.app import create

    settings = parts.settings
    server.to_stderr(settings.secrets, settings.log_format)
    app = create(settings, parts.store, parts.queue, parts.telemetry)
    with _workers(parts, listener, slots) if slots else nullcontext():
        _log.info("Listening on %s", address(listener.sock))
        _log.info("GitHub delivers to %s/webhook", settings.public_url)
        _log_settings(settings, embedded=bool(slots))
        spare_old_objects()
        listener.serve(app)


def _log_settings(settings: Settings, *, embedded: bool) -> None:
    slug = settings.app_slug or "(name unknown)"
    _log.info("App %s (id %s) on %s", slug, settings.app_id, settings.github_url)
    _log.info("Database %s", server.redact_url(settings.database_url.get_secret_value()))
    redis = server.redact_url(settings.redis_url.get_secret_value())
    _log.info("Queue %s", "in this process" if embedded else redis)


def _set_up(settings: Settings, listener: ListenSocket) -> Settings:
    """Serve the setup page until an App is registered; returns the settings with it."""
    from bot.app.github import registration
    from handlers.pages import GITHUB
    from handlers.setup import Setup

    if settings.github_url != GITHUB and settings.github_api_url == "https://api.github.com":
        raise UserError(
            f"REPRISE_GITHUB_URL is {settings.github_url}, but REPRISE_GITHUB_API_URL is not set.",
            f"Set it to {settings.github_url}/api/v3.",
        )
    registration.check_place(settings.app_file)
    setup = Setup(settings, lambda _files: listener.leave())
    _log.info("Listening on %s", address(listener.sock))
    page = f"{settings.public_url}/setup?key={setup.key}"  # not logged: the log hides keys
    say(f"No App is registered yet. To register one, open {page}")
    listener.serve(setup.app)
    return settings if listener.stop.is_set() else _listening_on(load(), listener.sock)


@contextmanager
def _workers(parts: _Parts, listener: ListenSocket, slots: int) -> Iterator[None]:
    """Work in threads of this process while the block serves. When one ends, all end."""
    from bot.app.worker import run

    settings, queue, service = parts.settings, parts.queue, parts.service()
    try:
        for task in parts.store.overdue(0.0):  # a queue within the process starts empty
            queue.offer(task)
    except TransientError as error:
        _log.warning("Waiting work will be offered later: %s", error)
    with ThreadPoolExecutor(len(_DEVICES), "work") as pool:
        workers = [
            pool.submit(
                run,
                service.handle,
                queue,
                device=device,
                slots=slots,
                ticks=service.ticks() if device == "cpu" else (),
                stop=listener.stop,
                grace_s=settings.grace_s,
                secrets=settings.secrets,
            )
            for device in _DEVICES
        ]
        for worker in workers:
            worker.add_done_callback(lambda _: listener.close())
        try:
            yield
        finally:
            listener.stop.set()
    for worker in workers:
        worker.result()


def _queue(settings: Settings, *, embedded: bool) -> Queue:
    if not embedded:
        return factory.queue(settings)
    from bot.app.queue.local import LocalQueue

    return LocalQueue()


def _registered_later() -> Settings:
    """The settings after another process's setup page has written the App's file, or after a
    signal.
    """
    settings, stop = load(), Event()
    with on_signal(stop.set):
        _log.info("No App is registered yet: waiting for %s", settings.app_file.absolute())
        while not settings.registered and not stop.wait(_POLL_S):
            settings = load()
    return settings


def _listening_on(settings: Settings, sock: socket.socket) -> Settings:
    """The settings with the actual port, also in the default public address."""
    port = sock.getsockname()[1]
    changes: dict[str, object] = {"port": port}
    if "public_url" not in settings.model_fields_set:
        changes["public_url"] = f"http://localhost:{port}"
    return settings.model_copy(update=changes)
