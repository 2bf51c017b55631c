"""A queue for tests and rehearsals: it keeps what is offered until it is told to hand it on."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import monotonic

from bot.app.ports import Handler, Task
from bot.app.queue.local import LocalQueue


class InlineQueue(LocalQueue):
    """The queue of one process, and a `drain` that hands on in the caller's own thread.

    Without a clock `drain` ignores delays: what is deferred follows at once, in the order of the
    times it was deferred to. With one (a `FrozenClock`) it hands on what is due by it.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        super().__init__(clock or monotonic)
        self._patient = clock is not None

    @property
    def waiting(self) -> tuple[Task, ...]:
        """What waits, in the order in which it falls due."""
        with self._changed:
            return tuple(sorted(self._waiting, key=self._waiting.__getitem__))

    def drain(self, handle: Handler, most: int = 1_000) -> int:
        """Hand on one after another, also what is offered meanwhile, until nothing is due;
        returns how many. What escapes `handle` goes to the caller. Raises RuntimeError after
        `most`: a task that offers itself for ever would never end.
        """
        for handed in range(most):
            task = self._take(None, None if self._patient else inf)
            if task is None:
                return handed
            self._handle(handle, task)
        raise RuntimeError(f"still something due after {most} tasks")
