"""An open-loop load: requests leave at a constant rate whatever the answers do, and time runs
from when each was due.

It waits for sockets and the clock in one system call that is exact to some ten microseconds, and so
takes little of the processors that the servers need; an event loop's timers are exact to a
millisecond, and the rest would have to be spent looking at the clock.
"""

from __future__ import annotations

import gc
import select
import socket
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

CONNECTIONS = 32
# a wait may end this much later than asked; the rest of it is spent looking at the clock
_COARSE_S = 0.0001
_PATIENCE_S = 15.0


@dataclass
class Sample:
    """What one stretch of load met: seconds from due to answered, answers by status (0: none),
    the generator's own lateness.
    """

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
    return ordered[
        min(len(ordered) - 1, max(0, -(-int(share * 1_000_000) * len(ordered) // 1_000_000) - 1))
    ]


class _Line:
    """One keep-alive connection that has at most one request under way."""

    def __init__(self, host: str, port: int) -> None:
        self.sock = socket.create_connection((host, port), _PATIENCE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.due = -1.0
        self.answer = b""
        self.unsent = memoryview(b"")

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, due: float, request: bytes) -> None:
        self.due, self.answer, self.unsent = due, b"", memoryview(request)
        self.go_on()

    def go_on(self) -> None:
        """Send what can be sent now. That the other end is gone shows when the answer is read."""
        try:
            self.unsent = self.unsent[self.sock.send(self.unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.unsent = memoryview(b"")

    def read(self) -> int | None:
        """The status of a whole answer; 0 when the connection ended, None while there is more to
        come.
        """
        try:
            data = self.sock.recv(65_536)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self.answer += data
        head, found, body = self.answer.partition(b"\r\n\r\n")
        if found and self.due >= 0 and _whole(head.lower(), body):
            return int(head[9:12])
        return None if data else 0

    @property
    def stays(self) -> bool:
        """Whether another request may follow on this connection."""
        return b"connection: close" not in self.answer.partition(b"\r\n\r\n")[0].lower()


def _whole(head: bytes, body: bytes) -> bool:
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    _, _, length = head.partition(b"content-length:")
    return len(body) >= int(length.split(b"\r\n", 1)[0] or b"0")


class _Pool:
    """Connections, and what waits for one. A request that finds none free is not forgotten: its
    time runs.
    """

    def __init__(self, host: str, port: int, count: int) -> None:
        self.host, self.port = host, port
        self.lines: list[_Line] = []
        self.idle: list[_Line] = []
        self.waiting: deque[tuple[float, bytes]] = deque()
        self.sample = Sample()
        self.left = count
        for _ in range(CONNECTIONS):
            self.connect()

    def connect(self) -> None:
        with suppress(OSError):
            self.lines.append(_Line(self.host, self.port))
            self.free(self.lines[-1])

    def offer(self, due: float, request: bytes) -> None:
        if self.idle:
            self.idle.pop().send(due, request)
        else:
            self.waiting.append((due, request))

    def free(self, line: _Line) -> None:
        if self.waiting:
            line.send(*self.waiting.popleft())
        else:
            self.idle.append(line)

    def look(self, wait_s: float) -> None:
        """Take the answers that come within so many seconds; return with the first of them."""
        unsent = [line for line in self.lines if line.unsent]
        readable, writable, _ = select.select(self.lines, unsent, (), max(wait_s, 0.0))
        for line in writable:
            line.go_on()
        for line in readable:
            if (status := line.read()) is not None:
                self.answered(line, status)

    def answered(self, line: _Line, status: int) -> None:
        if line.due >= 0:
            self.sample.seconds.append(perf_counter() - line.due)
            self.sample.statuses[status] += 1
            self.left -= 1
        line.due = -1.0
        if status and line.stays:
            self.free(line)
            return
        line.sock.close()
        self.lines.remove(line)
        if line in self.idle:
            self.idle.remove(line)
        if self.left:
            self.connect()

    def give_up(self) -> None:
        """What is still unanswered took all the patience there is."""
        self.sample.statuses[0] += self.left
        self.sample.seconds += [_PATIENCE_S] * self.left
        self.left = 0

    def close(self) -> None:
        for line in self.lines:
            line.sock.close()


def load(host: str, port: int, requests: Sequence[bytes], rate: float) -> Sample:
    """Send each request at its moment, `rate` a second, and wait for all answers."""
    pool = _Pool(host, port, len(requests))
    gc.disable()
    try:
        begun = perf_counter() + 0.05
        for number, request in enumerate(requests):
            due = begun + number / rate
            while (left := due - perf_counter()) > 0:
                pool.look(left - _COARSE_S)
            pool.sample.late.append(perf_counter() - due)
            pool.offer(due, request)
        until = perf_counter() + _PATIENCE_S
        while pool.left and perf_counter() < until:
            pool.look(until - perf_counter())
        if pool.left:
            pool.give_up()
    finally:
        gc.enable()
        pool.close()
    return pool.sample
