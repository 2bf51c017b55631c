"""A worker: hands tasks to a handler, runs periodic tasks, and stops as it is asked to."""

from __future__ import annotations

import logging
import signal
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from random import uniform
from threading import Event, Lock, Thread, current_thread, main_thread
from time import monotonic

from bot.errors import RepriseError
from bot.service.ports import Device, Handler, PeriodicTask, Queue, Task
from bot.text.sanitize import redact

_log = logging.getLogger(__name__)
_POLL_S = 0.1
_FIRST_S = 2.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(
    handle: Handler,
    queue: Queue,
    *,
    device: Device,
    slots: int,
    ticks: Sequence[PeriodicTask] = (),
    stop: Event | None = None,
    grace_s: float = 20.0,
    secrets: Sequence[str] = (),
) -> None:
    """Work until `stop` is set or a signal comes. Tasks in progress then have `grace_s` seconds
    to end, after which their events are set. A second signal sets the events at once, a third
    ends the process.

    Only the main thread receives signals: inside a server they are the server's. `secrets` are
    kept out of the log. Raises what escapes `queue.work`.
    """
    stop = stop or Event()
    active = _ActiveTasks(handle, secrets)
    _log.info("worker started device=%s slots=%d", device, slots)
    with _signals() as received, ThreadPoolExecutor(1, thread_name_prefix="worker") as threads:
        working = threads.submit(queue.work, active.handle, device=device, slots=slots, stop=stop)
        with _periodic(ticks, stop, secrets):
            try:
                _supervise(working, active, stop, received, grace_s)
            finally:
                stop.set()
                active.abort()
    _log.info("worker stopped device=%s", device)
    working.result()


def _supervise(
    working: Future[None], active: _ActiveTasks, stop: Event, signals: Sequence[int], grace_s: float
) -> None:
    """Watch from outside, so that no lock is held where a signal may interrupt."""
    ends_at = None
    while not working.done():
        wait([working], _POLL_S)
        if signals:
            stop.set()
        if ends_at is None and stop.is_set():
            ends_at = monotonic() + grace_s
            _log.info("worker stopping under_way=%d grace_s=%.0f", len(active.events), grace_s)
        if ends_at is not None and (len(signals) > 1 or monotonic() >= ends_at):
            active.abort()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals received so far. After the second, the system handles them again."""
    received: list[int] = []
    if current_thread() is not main_thread():
        yield received
        return
    before = {number: signal.signal(number, partial(_receive, received)) for number in _SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _receive(received: list[int], number: int, _frame: object) -> None:
    received.append(number)
    if len(received) > 1:
        for again in _SIGNALS:
            signal.signal(again, signal.SIG_DFL)


class _ActiveTasks:
    """The tasks in progress: each is logged, and all can be aborted at once."""

    def __init__(self, handle: Handler, secrets: Sequence[str]) -> None:
        self._handle, self._secrets = handle, secrets
        self._lock = Lock()
        self.events: list[Event] = []
        self._aborted = False

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            for event in self.events:
                event.set()

    def handle(self, task: Task, event: Event) -> None:
        with self._lock:
            self.events.append(event)
            if self._aborted:
                event.set()
        name, began = f"kind={task.kind} id={task.id} turn={task.turn}", monotonic()
        _log.info("task taken %s", name)
        try:
            self._handle(task, event)
            _log.info("task done %s seconds=%.2f", name, monotonic() - began)
        except Exception as error:
            seconds, text = monotonic() - began, _described(error, self._secrets)
            _log.error("task failed %s seconds=%.2f error=%s", name, seconds, text)
        finally:
            with self._lock:
                self.events.remove(event)


@contextmanager
def _periodic(ticks: Sequence[PeriodicTask], stop: Event, secrets: Sequence[str]) -> Iterator[None]:
    threads = [
        Thread(target=_repeat, args=(tick, stop, secrets), name=tick.name, daemon=True)
        for tick in ticks
    ]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(_POLL_S)  # one that waits for an answer from outside is left behind


def _repeat(tick: PeriodicTask, stop: Event, secrets: Sequence[str]) -> None:
    """Run a periodic task soon, then every so often, out of step with other workers. An error
    skips this one time.
    """
    pause = uniform(0.0, min(tick.every_s, _FIRST_S))  # noqa: S311  # no secret
    while not stop.wait(pause):
        try:
            tick.do()
        except Exception as error:
            _log.error("tick failed name=%s error=%s", tick.name, _described(error, secrets))
        pause = tick.every_s * uniform(0.9, 1.1)  # noqa: S311


def _described(error: Exception, secrets: Sequence[str]) -> str:
    """One line for an expected error, the traceback for a defect; without secrets."""
    if isinstance(error, RepriseError):
        text = f"{type(error).__name__}: {error}"
    else:
        text = "".join(traceback.format_exception(error))
    return redact(text.strip(), secrets)
