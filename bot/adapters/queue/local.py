"""The queue within one process. Nothing outlives the process; the store offers again what was
waiting.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass
from itertools import count
from threading import Condition, Event
from time import monotonic

from typing_extensions import override

from bot.adapters.queue.in_flight import Dispatcher, InFlight, Lane, lane_of
from bot.service.ports import Device, Handler, Queue, Task

_POLL_S = 0.05  # setting `stop`, or moving a test's clock, notifies nobody


@dataclass(frozen=True, order=True, slots=True)
class _Waiting:
    due: float
    number: int
    task: Task


def _key(task: Task) -> tuple[str, str, int]:
    return task.kind, task.id, task.turn


class LocalQueue(Queue):
    """Tasks in memory, in the order in which they fall due by `clock` (seconds). Any thread may
    offer; every `work` serves one device.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._changed = Condition()
        self._waiting: dict[tuple[str, str, int], _Waiting] = {}
        self._number = count()
        self._in_flight = InFlight()

    @override
    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        """Keep a task until it is due. Offered again while it waits, it is due at the earlier of
        the two times.
        """
        with self._changed:
            due, known = self._clock() + max(delay_s, 0.0), self._waiting.get(_key(task))
            if known is None or due < known.due:
                number = known.number if known is not None else next(self._number)
                self._waiting[_key(task)] = _Waiting(due, number, task)
            self._changed.notify_all()

    @override
    def abort(self, task: Task) -> None:
        self._in_flight.abort(task.kind, task.id)

    @override
    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        dispatcher = Dispatcher(device, slots, self._in_flight, self._changed)
        dispatcher.run(self._take, handle, stop=stop, poll_s=_POLL_S)

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
                waiting
                for waiting in self._waiting.values()
                if waiting.due <= by and (lanes is None or lane_of(waiting.task) in lanes)
            ]
            return self._waiting.pop(_key(min(due).task)).task if due else None
