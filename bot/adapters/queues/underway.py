"""Which tasks are being handled in this process, so that they can be asked to stop."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event, Lock
from typing import Literal

from bot.service.ports import Device, Handler, Task

_log = logging.getLogger(__name__)


Lane = Literal["cpu", "gpu", "deliveries"]
_DELIVERIES = 4  # GitHub is what they wait for; more at once would only meet its limits sooner


def lane(task: Task) -> Lane:
    """In which line a task stands: that of its device, and for deliveries one of their own, so that they pass by runs."""
    return "deliveries" if task.kind == "delivery" else task.device


def lanes(device: Device, slots: int) -> dict[Lane, int]:
    """What a worker for a device serves, and how many of each at once: deliveries are no work for an accelerator."""
    return {"cpu": slots, "deliveries": _DELIVERIES} if device == "cpu" else {device: slots}


def log_escaped(task: Task, done: Future[None]) -> None:
    """Say what escaped a handler; the task is over."""
    error = None if done.cancelled() else done.exception()
    if error is not None:
        _log.error("an error escaped: kind=%s id=%s turn=%d", task.kind, task.id, task.turn, exc_info=error)


class UnderWay:
    """The events of tasks under way, by kind and id. The same one may be under way twice, under two turns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._events: dict[tuple[str, str], list[Event]] = {}

    def look(self, handle: Handler, task: Task) -> None:
        """Handle a task, reachable for `abort` meanwhile."""
        with self._entered(task) as event:
            handle(task, event)

    def abort(self, kind: str, of: str) -> None:
        """Set the events of all tasks of this kind and id; none is fine."""
        with self._lock:
            events = tuple(self._events.get((kind, of), ()))
        for event in events:
            event.set()

    @contextmanager
    def _entered(self, task: Task) -> Iterator[Event]:
        key, event = (task.kind, task.id), Event()
        with self._lock:
            self._events.setdefault(key, []).append(event)
        try:
            yield event
        finally:
            with self._lock:
                self._events[key].remove(event)
                if not self._events[key]:
                    del self._events[key]
