"""An open-loop load: requests leave at a constant rate whatever the answers do, and time runs from when each was due."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import cast

CONNECTIONS = 32
_COARSE_S = 0.002  # timers of an event loop are no finer; the rest of a wait is spent looking at the clock
_PATIENCE_S = 15.0


@dataclass
class Sample:
    """What one stretch of load met: seconds from due to answered, answers by status (0: none), the generator's own lateness."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    late: list[float] = field(default_factory=list)

    def add(self, other: Sample) -> None:
        """Pool another stretch with this one."""
        self.seconds += other.seconds
        self.statuses += other.statuses
        self.late += other.late


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1_000_000) * len(ordered) // 1_000_000) - 1))]


class _Line(asyncio.Protocol):
    """One keep-alive connection that has at most one request under way."""

    def __init__(self, pool: _Pool) -> None:
        self.pool = pool
        self.due = -1.0
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)
        self.pool.free(self)

    def send(self, due: float, request: bytes) -> None:
        self.due, self.buffer = due, b""
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found or not _whole(head.lower(), body):
            return
        due, self.due = self.due, -1.0
        self.pool.answered(due, int(head[9:12]))
        if b"connection: close" not in head.lower():
            self.pool.free(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's own signature
        self.pool.lost(self)


def _whole(head: bytes, body: bytes) -> bool:
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    _, _, length = head.partition(b"content-length:")
    return len(body) >= int(length.split(b"\r\n", 1)[0] or b"0")


class _Pool:
    """Connections, and what waits for one. A request that finds none free is not forgotten: its time runs."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.idle: list[_Line] = []
        self.waiting: deque[tuple[float, bytes]] = deque()
        self.sample = Sample()
        self.left = 0
        self.closed = False
        self.done = asyncio.Event()
        self.tasks: set[asyncio.Task[object]] = set()

    async def connect(self) -> None:
        with suppress(OSError):
            await asyncio.get_running_loop().create_connection(lambda: _Line(self), self.host, self.port)

    def offer(self, due: float, request: bytes) -> None:
        if self.idle:
            self.idle.pop().send(due, request)
        else:
            self.waiting.append((due, request))

    def free(self, line: _Line) -> None:
        if self.closed:
            line.transport.close()
        elif self.waiting:
            line.send(*self.waiting.popleft())
        else:
            self.idle.append(line)

    def answered(self, due: float, status: int) -> None:
        self.sample.seconds.append(perf_counter() - due)
        self.sample.statuses[status] += 1
        self.left -= 1
        if self.left == 0:
            self.done.set()

    def lost(self, line: _Line) -> None:
        if line in self.idle:
            self.idle.remove(line)
        if line.due >= 0:
            self.answered(line.due, 0)
        if self.left:
            task = asyncio.create_task(self.connect())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def close(self) -> None:
        self.left, self.closed = 0, True
        for line in self.idle:
            line.transport.close()
        await asyncio.gather(*self.tasks)


async def load(host: str, port: int, requests: Sequence[bytes], rate: float) -> Sample:
    """Send each request at its moment, `rate` a second, and wait for all answers."""
    pool = _Pool(host, port)
    await asyncio.gather(*(pool.connect() for _ in range(CONNECTIONS)))
    pool.left = len(requests)
    gc.disable()
    try:
        begun = perf_counter() + 0.05
        for number, request in enumerate(requests):
            due = begun + number / rate
            while (left := due - perf_counter()) > 0:
                await asyncio.sleep(left - _COARSE_S if left > _COARSE_S else 0)
            pool.sample.late.append(perf_counter() - due)
            pool.offer(due, request)
        await asyncio.wait_for(pool.done.wait(), _PATIENCE_S)
    except TimeoutError:
        pool.sample.statuses[0] += pool.left
        pool.sample.seconds += [_PATIENCE_S] * pool.left
    finally:
        gc.enable()
        await pool.close()
    return pool.sample
