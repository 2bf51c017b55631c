"""A worker: hands tasks to a handler, does what is due now and then, and stops the way it is asked to."""

from __future__ import annotations

import logging
import signal
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from random import uniform
from threading import Event, Lock, Thread, current_thread, main_thread
from time import monotonic

from bot.errors import RepriseError
from bot.render.sanitize import redact
from bot.service.ports import Device, Handler, Queue, Task, Tick

__all__ = ["GRACE_S", "Tick", "run"]

GRACE_S = 20.0
_log = logging.getLogger(__name__)
_LOOK_S = 0.1
_FIRST_S = 2.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(
    handle: Handler,
    queue: Queue,
    *,
    device: Device,
    slots: int,
    ticks: Sequence[Tick] = (),
    stop: Event | None = None,
    grace_s: float = GRACE_S,
    secrets: Sequence[str] = (),
) -> None:
    """Work until `stop` is set or a signal comes; what is under way then gets `grace_s` seconds to end by itself, after which
    its event is set. A second signal sets the events at once, a third ends the process.

    Signals are heard in the main thread only: inside a server they are the server's. `secrets` are kept out of the log.
    Raises what escapes `queue.work`.
    """
    stop = stop or Event()
    floor = _Floor(handle, secrets)
    periodic = [Thread(target=_tick, args=(tick, stop, secrets), name=tick.name, daemon=True) for tick in ticks]
    _log.info("worker started device=%s slots=%d", device, slots)
    with _signals() as heard, ThreadPoolExecutor(1, thread_name_prefix="worker") as threads:
        working = threads.submit(queue.work, floor.look, device=device, slots=slots, stop=stop)
        for thread in periodic:
            thread.start()
        try:
            _see_out(working, floor, stop, heard, grace_s)
        finally:
            stop.set()
            floor.abort()
    for thread in periodic:
        thread.join(_LOOK_S)  # one that waits for an answer from outside is left behind
    _log.info("worker stopped device=%s", device)
    working.result()


def _see_out(working: Future[None], floor: _Floor, stop: Event, heard: Sequence[int], grace_s: float) -> None:
    """Watch over the work from outside, so that no lock is held where a signal may come in."""
    ends_at = None
    while not working.done():
        wait([working], _LOOK_S)
        if heard:
            stop.set()
        if ends_at is None and stop.is_set():
            ends_at = monotonic() + grace_s
            _log.info("worker stopping under_way=%d grace_s=%.0f", floor.busy, grace_s)
        if ends_at is not None and (len(heard) > 1 or monotonic() >= ends_at):
            floor.abort()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that came so far. After the second they are the system's again."""
    heard: list[int] = []
    if current_thread() is not main_thread():
        yield heard
        return

    def hear(number: int, _frame: object) -> None:
        heard.append(number)
        if len(heard) > 1:
            for each in _SIGNALS:
                signal.signal(each, signal.SIG_DFL)

    before = {each: signal.signal(each, hear) for each in _SIGNALS}
    try:
        yield heard
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _Floor:
    """What is under way in this worker: told to the log, and stopped all at once."""

    def __init__(self, handle: Handler, secrets: Sequence[str]) -> None:
        self._handle, self._secrets = handle, secrets
        self._lock = Lock()
        self._events: list[Event] = []
        self._aborted = False

    @property
    def busy(self) -> int:
        """How many tasks are under way."""
        return len(self._events)

    def abort(self) -> None:
        """Set the event of every task under way, and of those that still begin."""
        with self._lock:
            self._aborted = True
            for event in self._events:
                event.set()

    def look(self, task: Task, event: Event) -> None:
        """Handle one task; an error is told and the task is over."""
        self._enter(event)
        what, began = f"kind={task.kind} id={task.id} turn={task.turn}", monotonic()
        _log.info("task taken %s", what)
        try:
            self._handle(task, event)
        except Exception as error:
            _log.error("task failed %s seconds=%.2f error=%s", what, monotonic() - began, _told(error, self._secrets))
        else:
            _log.info("task done %s seconds=%.2f", what, monotonic() - began)
        finally:
            with self._lock:
                self._events.remove(event)

    def _enter(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)
            if self._aborted:
                event.set()


def _tick(tick: Tick, stop: Event, secrets: Sequence[str]) -> None:
    """Do it soon, then every so often, not in step with other workers; an error costs this one time."""
    pause = uniform(0.0, min(tick.every_s, _FIRST_S))  # noqa: S311  # no secret
    while not stop.wait(pause):
        try:
            tick.do()
        except Exception as error:
            _log.error("tick failed name=%s error=%s", tick.name, _told(error, secrets))
        pause = tick.every_s * uniform(0.9, 1.1)  # noqa: S311


def _told(error: Exception, secrets: Sequence[str]) -> str:
    """One line for what was raised on purpose, the traceback for a defect; without secrets."""
    told = f"{type(error).__name__}: {error}" if isinstance(error, RepriseError) else "".join(traceback.format_exception(error))
    return redact(told.strip(), secrets)
