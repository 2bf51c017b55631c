"""The queue without the App: tasks that nobody has to do anything for."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

from benchmarks.supervised import Supervised, free_port, reachable, redis
from bot.app.ports import Task
from bot.app.queue.redis import RedisQueue
from bot.kernel.errors import TransientError
from bot.kernel.values import Record

_START_S = 30.0


class QueueFigures(Record):
    """Milliseconds for each task: to offer it, and to take it, hand it on and be done with it, one
    after the other in one slot.
    """

    tasks: int
    offer_ms: float
    take_ms: float

    @property
    def cost_ms(self) -> float:
        """What the queue takes for a task."""
        return self.offer_ms + self.take_ms


def queue_alone(tasks: int, environ: Mapping[str, str]) -> QueueFigures:
    """Offer so many tasks, then take them. Raises TransientError without a Redis."""
    port, stop, ended = free_port(), Event(), list[float]()
    with tempfile.TemporaryDirectory(prefix="reprise-queue-") as name:
        server = redis(port, Path(name), shutil.which("redis-server", path=environ.get("PATH")))
        with Supervised({"redis": server}, environ, Path(name)):
            if not reachable(port, _START_S):
                raise TransientError("Redis does not start.", "")
            with closing(RedisQueue(f"redis://127.0.0.1:{port}/0")) as queue:
                began = time.monotonic()
                for number in range(tasks):
                    queue.offer(Task(kind="run", id=f"run-{number}"))
                offered = time.monotonic()

                def handle(_task: Task, _event: Event) -> None:
                    ended.append(time.monotonic())
                    if len(ended) == tasks:
                        stop.set()

                options = {"device": "cpu", "slots": 1, "stop": stop}
                worker = Thread(target=queue.work, args=(handle,), kwargs=options)
                worker.start()
                worker.join()
    return QueueFigures(
        tasks=tasks,
        offer_ms=1000 * (offered - began) / tasks,
        take_ms=1000 * (ended[-1] - ended[0]) / max(1, tasks - 1),
    )
