"""What both queues share: lanes, the loop that hands tasks to threads, and the tasks in flight."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Condition, Event, Lock
from typing import Literal

from bot.service.ports import Device, Handler, Task

_log = logging.getLogger(__name__)

Lane = Literal["cpu", "gpu", "deliveries"]
Take = Callable[[Sequence[Lane]], Task | None]
_DELIVERIES = 4  # they wait for GitHub; more at once would only reach its rate limits sooner


def lane_of(task: Task) -> Lane:
    """The line a task waits in: that of its device, or for deliveries one of their own, so that
    they overtake runs.
    """
    return "deliveries" if task.kind == "delivery" else task.device


class InFlight:
    """Tasks that this process is handling, so that they can be aborted.

    The same task may be in flight twice, under two turns.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._events: dict[tuple[str, str], list[Event]] = {}

    def handle(self, handler: Handler, task: Task) -> None:
        """Run the handler; `abort` reaches it meanwhile. An error is logged and ends the task."""
        key, event = (task.kind, task.id), Event()
        with self._lock:
            self._events.setdefault(key, []).append(event)
        try:
            handler(task, event)
        finally:
            with self._lock:
                self._events[key].remove(event)
                if not self._events[key]:
                    del self._events[key]

    def abort(self, kind: str, of: str) -> None:
        """Set the event of every task of this kind and id; there may be none."""
        with self._lock:
            events = tuple(self._events.get((kind, of), ()))
        for event in events:
            event.set()


class Dispatcher:
    """Takes tasks while there are free slots and hands each to a thread.

    `slots` counts runs; a CPU worker also handles a few deliveries, which need no accelerator.
    `changed` is notified whenever it is worth looking for a task again.
    """

    def __init__(self, device: Device, slots: int, in_flight: InFlight, changed: Condition) -> None:
        self._device, self._in_flight, self._changed = device, in_flight, changed
        self._free: Counter[Lane] = Counter({device: slots})
        if device == "cpu":
            self._free["deliveries"] = _DELIVERIES

    def run(self, take: Take, handler: Handler, *, stop: Event, poll_s: float) -> None:
        """Hand on tasks until `stop` is set, then wait for those in flight. Looks for a task at
        least every `poll_s` seconds.
        """
        places = sum(self._free.values())
        with ThreadPoolExecutor(places, thread_name_prefix=f"queue-{self._device}") as threads:
            while not stop.is_set():
                with self._changed:
                    task = take([lane for lane, free in self._free.items() if free > 0])
                    if task is None:
                        self._changed.wait(poll_s)
                        continue
                    self._free[lane_of(task)] -= 1
                done = threads.submit(self._in_flight.handle, handler, task)
                done.add_done_callback(partial(self._ended, task))

    def _ended(self, task: Task, done: Future[None]) -> None:
        if (error := done.exception()) is not None:
            what = (task.kind, task.id, task.turn)
            _log.error("an error escaped: kind=%s id=%s turn=%d", *what, exc_info=error)
        with self._changed:
            self._free[lane_of(task)] += 1
            self._changed.notify_all()
