"""The queue within one process: nothing of it outlives the process, the store offers again what was waiting."""

from __future__ import annotations

from collections.abc import Callable, Container
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Condition, Event
from time import monotonic

from bot.adapters.queues.underway import Lane, UnderWay, lane, lanes, log_escaped
from bot.service.ports import Device, Handler, Task

_LOOK_S = 0.05  # nobody tells a condition that `stop` was set, or that a clock of a test was moved


@dataclass(frozen=True, order=True, slots=True)
class _Waiting:
    due: float
    number: int
    task: Task


def _key(task: Task) -> tuple[str, str, int]:
    return task.kind, task.id, task.turn


class LocalQueue:
    """Tasks in memory, in the order in which they fall due by `clock` (seconds). Any thread may offer; every `work` serves one
    device.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._changed = Condition()
        self._waiting: dict[tuple[str, str, int], _Waiting] = {}
        self._number = count()
        self._under_way = UnderWay()

    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        """Keep a task until it is due. Offered again while it waits, it is due at the earlier of the two times."""
        with self._changed:
            due, known = self._clock() + max(delay_s, 0.0), self._waiting.get(_key(task))
            if known is None or due < known.due:
                number = known.number if known is not None else next(self._number)
                self._waiting[_key(task)] = _Waiting(due, number, task)
            self._changed.notify_all()

    def abort(self, task: Task) -> None:
        """Ask whoever handles it to stop; what waits keeps waiting."""
        self._under_way.abort(task.kind, task.id)

    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        """Hand on what is due, each in a thread, until `stop`; then wait for those under way."""
        free = lanes(device, slots)

        def ended(task: Task, done: Future[None]) -> None:
            log_escaped(task, done)
            with self._changed:
                free[lane(task)] += 1
                self._changed.notify_all()

        with ThreadPoolExecutor(sum(free.values()), thread_name_prefix=f"queue-{device}") as threads:
            while not stop.is_set():
                with self._changed:
                    task = self._take([each for each, places in free.items() if places])
                    if task is None:
                        self._changed.wait(_LOOK_S)
                        continue
                    free[lane(task)] -= 1
                threads.submit(self._under_way.look, handle, task).add_done_callback(partial(ended, task))

    def close(self) -> None:
        """Forget what waits."""
        with self._changed:
            self._waiting.clear()

    def _take(self, among: Container[Lane] | None, now: float | None = None) -> Task | None:
        """The next task that is due at `now`, by default by the clock, no longer waiting; of any lane for None."""
        with self._changed:
            by = self._clock() if now is None else now
            due = [each for each in self._waiting.values() if each.due <= by and (among is None or lane(each.task) in among)]
            if not due:
                return None
            return self._waiting.pop(_key(min(due).task)).task
