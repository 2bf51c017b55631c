"""The queue's port: tasks, who handles them, and what a worker does periodically."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Literal, Protocol

from bot.models.base import Record

Device = Literal["cpu", "gpu"]


class Task(Record):
    """Something to look at: a delivery or a run. `turn` grows each time the same thing is
    offered again.
    """

    kind: Literal["delivery", "run"]
    id: str
    device: Device = "cpu"
    turn: int = 0


Handler = Callable[[Task, Event], None]
"""Handles one task. The event is set when the task is aborted or the worker stops."""


class Queue(Protocol):
    """Delivers tasks at least once, soon. It may forget and repeat: the store holds the truth."""

    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        """Offer a task. The same kind, id and turn offered twice while it waits count once.

        Raises TransientError when the queue is unreachable.
        """

    def abort(self, task: Task) -> None:
        """Ask whoever handles this kind and id (any turn) to stop. Does nothing if nobody does."""

    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        """Hand runs for one device to `handle`, at most `slots` at once, until `stop`; then wait
        for those in flight. A "cpu" worker also gets deliveries, a few at once and in the order
        in which they fell due: they are short, and one may ask a run to stop. An error that
        escapes `handle` is logged and the task is over; the store offers it again.
        """

    def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """Something a worker does every `every_s` seconds; several workers may do it at once."""

    name: str
    every_s: float
    do: Callable[[], object]
