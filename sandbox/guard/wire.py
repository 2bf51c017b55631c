"""How the guard and its caller talk: a header line and file contents in, length-prefixed frames
out.
"""

from __future__ import annotations

import os
import struct

HEAD = struct.Struct(">cI")
LIVE_BUDGET = 262_144

# Frame kinds. A file that a run left comes as ARTIFACT, or as REFUSED with why. Output beyond the
# kept head travels as LIVE (shown, not kept) within a budget; its last part comes as TAIL.
STARTED, RESULT, FAILED, ARTIFACT, REFUSED = b"S", b"R", b"F", b"A", b"N"
STREAM_KINDS = {"stdout": b"O", "stderr": b"E"}
LIVE = {"stdout": b"o", "stderr": b"e"}
TAIL = {"stdout": b"T", "stderr": b"t"}
# What the caller sends after the first job: a further one (of a workspace), or a request to stop.
JOB, CANCEL = b"j", b"c"


def write_all(fd: int, data: bytes) -> None:
    """Write everything, however many calls it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_exactly(fd: int, size: int) -> bytes:
    """Read so many bytes or raise EOFError."""
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError("the caller disconnected")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(fd: int, kind: bytes, payload: bytes = b"") -> None:
    """Send one frame."""
    write_all(fd, HEAD.pack(kind, len(payload)) + payload)


def as_json(value: object) -> str:
    """JSON of numbers, truth values, None and dictionaries of these, without the module that
    would cost each run its import.
    """
    if isinstance(value, dict):
        return "{" + ",".join(f'"{key}":{as_json(inner)}' for key, inner in value.items()) + "}"
    return (
        {True: "true", False: "false", None: "null"}[value]
        if value is None or isinstance(value, bool)
        else repr(value)
    )


class Capped:
    """One output stream of the program: sends the head as it comes, keeps the tail, counts the
    rest.
    """

    def __init__(self, name: str, out: int, limit: int, tail: int) -> None:
        self.name, self.out = name, out
        self.head_left, self.tail_size = limit - tail, tail
        self.tail = bytearray()
        self.beyond = 0
        self.live_left = LIVE_BUDGET

    def feed(self, data: bytes) -> None:
        """Take what the program wrote."""
        head, rest = data[: self.head_left], data[self.head_left :]
        if head:
            self.head_left -= len(head)
            send(self.out, STREAM_KINDS[self.name], head)
        if rest:
            self._hold(rest)

    def _hold(self, rest: bytes) -> None:
        self.beyond += len(rest)
        if self.live_left >= len(rest):
            self.live_left -= len(rest)
            send(self.out, LIVE[self.name], rest)
        self.tail += rest
        if len(self.tail) > 2 * self.tail_size + 65536:
            del self.tail[: len(self.tail) - self.tail_size]

    def refill(self) -> None:
        """Allow more live output; called about once a second."""
        self.live_left = LIVE_BUDGET

    def finish(self) -> int:
        """Send the kept tail; returns how many bytes between head and tail were dropped."""
        tail = bytes(self.tail[-self.tail_size :]) if self.tail_size else b""
        if tail:
            send(self.out, TAIL[self.name], tail)
        return self.beyond - len(tail)
