"""The queue within one process. Nothing outlives the process; the store offers again what was
waiting.
"""

import logging
from collections.abc import Callable, Container
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from threading import Condition, Event
from time import monotonic

from typing_extensions import override

from bot.app.ports import Device, Handler, Lane, Queue, Task
from bot.app.queue import places

_POLL_S = 0.05  # setting `stop`, or moving a test's clock, notifies nobody
_log = logging.getLogger(__name__)


class LocalQueue(Queue):
    """Tasks in memory, in the order in which they fall due by `clock` (seconds). Any thread may
    offer; every `work` serves one device.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._changed = Condition()
        self._waiting: dict[Task, tuple[float, int]] = {}  # when it is due, and its number
        self._number = count()
        self._active: list[tuple[Task, Event]] = []  # the same task may be handled twice

    @override
    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        """Keep a task until it is due. Offered again while it waits, it is due at the earlier of
        the two times.
        """
        with self._changed:
            due, number = self._clock() + max(delay_s, 0.0), next(self._number)
            before, number = self._waiting.get(task, (due, number))
            self._waiting[task] = (min(due, before), number)
            self._changed.notify_all()

    @override
    def abort(self, task: Task) -> None:
        with self._changed:
            for active, event in self._active:
                if active == task:
                    event.set()

    @override
    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        free = places(device, slots)
        with ThreadPoolExecutor(
            sum(free.values()), thread_name_prefix=f"queue-{device}"
        ) as threads:
            while not stop.is_set():
                with self._changed:
                    task = self._take([lane for lane in free if free[lane] > 0])
                    if task is None:
                        self._changed.wait(_POLL_S)
                        continue
                    free[task.lane] -= 1
                job = threads.submit(self._handle, handle, task)
                job.add_done_callback(partial(self._release, free, task))

    @override
    def close(self) -> None:
        with self._changed:
            self._waiting.clear()

    def _take(self, lanes: Container[Lane] | None, now: float | None = None) -> Task | None:
        """Remove and return the next task that is due at `now` (default: by the clock). `lanes`
        None means all of them.
        """
        with self._changed:
            by = self._clock() if now is None else now
            due = [
                (when, task)
                for task, when in self._waiting.items()
                if when[0] <= by and (lanes is None or task.lane in lanes)
            ]
            if not due:
                return None
            _, task = min(due, key=lambda entry: entry[0])
            del self._waiting[task]
            return task

    def _handle(self, handle: Handler, task: Task) -> None:
        """Run the handler; `abort` reaches it meanwhile."""
        active = (task, Event())
        with self._changed:
            self._active.append(active)
        try:
            handle(*active)
        finally:
            with self._changed:
                self._active.remove(active)

    def _release(self, free: dict[Lane, int], task: Task, job: Future[None]) -> None:
        if (error := job.exception()) is not None:
            name = (task.kind, task.id, task.turn)
            _log.error("an error escaped: kind=%s id=%s turn=%d", *name, exc_info=error)
        with self._changed:
            free[task.lane] += 1
            self._changed.notify_all()
