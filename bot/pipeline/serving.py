"""A run of the sandbox that stays: libraries are imported once, then rounds of programs are handed in as they come up."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from threading import Condition, Event, Thread
from time import monotonic

from bot.pipeline.desk import Desk
from sandbox.inbox import Inbox
from sandbox.port import RunSpec, SandboxError, Stream

_LOOK_S = 0.05
_LIFE_S = 3600.0
_OUTPUT = 64 << 20  # the half of it comes whole; a server that has said as much as a third is replaced
_MOST_ROW = 4 << 20
_ROW = re.compile(r"@(\d{1,6}) (\d{1,6}|end) (\d{1,6}) (\S*)\n?", re.ASCII)


class Server:
    """One such run. `rows` that it answers come from where hostile code runs: text to be read with care.

    `begin` makes the run's specification for the folder's path; the desk's limit and cancel flag hold while an answer is waited
    for. `close` must be called.
    """

    def __init__(self, desk: Desk, begin: Callable[[str], RunSpec]) -> None:
        self._desk, self._inbox = desk, Inbox(desk.ports.cache)
        self._changed, self._over = Condition(), Event()
        self._rounds, self._said, self._born = 0, 0, monotonic()
        self._parts: dict[tuple[int, str], list[str]] = {}
        self._whole: dict[tuple[int, str], bytes] = {}
        self._error: SandboxError | None = None
        self._ended = False
        plain = begin(str(self._inbox.path))
        limits = replace(plain.limits, wall_s=_LIFE_S, output_bytes=_OUTPUT)
        spec = replace(plain, mounts=(*plain.mounts, self._inbox.mount), limits=limits)
        self._thread = Thread(target=self._serve, args=(spec,), name="server", daemon=True)
        self._thread.start()

    @property
    def worn(self) -> bool:
        """Whether the next round needs a new one."""
        return self._ended or self._said > _OUTPUT // 3 or monotonic() - self._born > _LIFE_S / 2

    def ask(self, plan: Mapping[str, object], wait_s: float) -> Iterator[tuple[int, bytes]]:
        """Hand in a round; what became of its programs with their ids, each as it ends. Those that are missing took the server
        with them, or the time. Raises Stopped, and SandboxError when the sandbox failed.
        """
        number, name = self._rounds, f"{self._rounds}.json"
        self._rounds += 1
        self._inbox.put(name, json.dumps(plan).encode())
        until = monotonic() + wait_s
        over = False
        while not over:
            with self._changed:
                if not self._whole and not self._ended:
                    self._changed.wait(_LOOK_S)
                if self._error is not None:
                    raise self._error
                over = self._ended or (number, "end") in self._whole
                found = [(int(row), data) for (each, row), data in self._whole.items() if each == number and row.isdecimal()]
                self._whole.clear()
            if monotonic() > until:
                self._over.set()
            self._desk.stop_if_asked()  # every time: what is written here without end must not keep the caller from asking
            yield from found
        with self._changed:
            self._parts.clear()
        self._inbox.take_back(name)

    def close(self) -> None:
        """End the run and leave nothing behind."""
        self._over.set()
        self._thread.join()
        self._inbox.close()

    def _serve(self, spec: RunSpec) -> None:
        error = None
        try:
            self._desk.ports.sandbox.run(spec, cancel=self._over, on_output=self._hear)
        except SandboxError as raised:
            error = raised
        finally:
            with self._changed:
                self._error, self._ended = error, True
                self._changed.notify_all()

    def _hear(self, stream: Stream, line: str) -> None:
        self._said += len(line)
        row = _ROW.fullmatch(line)  # a candidate can write here too: nothing but this form is read
        if stream != "stdout" or row is None:
            return
        key = (int(row[1]), row[2])
        with self._changed:
            parts = self._parts.setdefault(key, [])
            parts.append(row[4])
            if int(row[3]) == 0:
                self._whole[key] = _opened("".join(parts))
                self._changed.notify_all()


def _opened(text: str) -> bytes:
    try:
        return zlib.decompressobj().decompress(base64.b64decode(text), _MOST_ROW)
    except (ValueError, zlib.error):
        return b""
