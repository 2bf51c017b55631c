"""A sandboxed run that stays open: it imports the libraries once, then takes rounds of programs."""

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from threading import Condition, Event, Thread
from time import monotonic

from bot.pipeline.execution.runner import Runner
from sandbox.cache import Inbox
from sandbox.port import RunSpec, SandboxError, Stream

_POLL_S = 0.05
_LIFE_S = 3600.0
_OUTPUT = 64 << 20  # half of it comes whole; a server that printed a third of it is replaced
_MAX_RESULT = 4 << 20
_MESSAGE = re.compile(r"@(\d{1,6}) (\d{1,6}|end) (\d{1,6}) (\S*)\n?", re.ASCII)


class BatchServer:
    """One such run. The results come from where hostile code runs: text to read with care.

    `begin` makes the run's specification for the path of its inbox. The job's time limit and cancel
    flag apply while an answer is waited for. `close` must be called.
    """

    def __init__(self, runner: Runner, begin: Callable[[str], RunSpec]) -> None:
        self._runner, self._inbox = runner, Inbox(runner.ports.cache)
        self._changed, self._cancel = Condition(), Event()
        self._rounds, self._printed, self._born = 0, 0, monotonic()
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
        """Whether the next round needs a new server."""
        old = monotonic() - self._born > _LIFE_S / 2
        return self._ended or self._printed > _OUTPUT // 3 or old

    def ask(self, plan: Mapping[str, object], wait_s: float) -> Iterator[tuple[int, bytes]]:
        """Hand in a round; the results with the ids of their programs, each as it ends. A missing
        program ended the server, or had no time left. Raises Stopped, and SandboxError when the
        sandbox failed.
        """
        number, name = self._rounds, f"{self._rounds}.json"
        self._rounds += 1
        self._inbox.put(name, json.dumps(plan).encode())
        until, over = monotonic() + wait_s, False
        while not over:
            found, over = self._results(number)
            if monotonic() > until:
                self._cancel.set()
            # every time: a candidate that prints without end must not keep the caller from asking
            self._runner.context.check()
            yield from found
        with self._changed:
            self._parts.clear()
        self._inbox.take_back(name)

    def _results(self, number: int) -> tuple[list[tuple[int, bytes]], bool]:
        """The results of a round that came in, and whether it is over."""
        with self._changed:
            if not self._whole and not self._ended:
                self._changed.wait(_POLL_S)
            if self._error is not None:
                raise self._error
            whole, self._whole = self._whole, {}
            over = self._ended or (number, "end") in whole
        mine = {name: data for (of_round, name), data in whole.items() if of_round == number}
        return [(int(name), data) for name, data in mine.items() if name.isdecimal()], over

    def close(self) -> None:
        """End the run and leave nothing behind."""
        self._cancel.set()
        self._thread.join()
        self._inbox.close()

    def _serve(self, spec: RunSpec) -> None:
        error = None
        try:
            self._runner.ports.sandbox.run(spec, cancel=self._cancel, on_output=self._read)
        except SandboxError as raised:
            error = raised
        finally:
            with self._changed:
                self._error, self._ended = error, True
                self._changed.notify_all()

    def _read(self, stream: Stream, line: str) -> None:
        self._printed += len(line)
        part = _MESSAGE.fullmatch(line)  # a candidate can print here too: all else is dropped
        if stream != "stdout" or part is None:
            return
        key = (int(part[1]), part[2])
        with self._changed:
            parts = self._parts.setdefault(key, [])
            parts.append(part[4])
            if int(part[3]) == 0:
                self._whole[key] = _decompressed("".join(parts))
                self._changed.notify_all()


def _decompressed(text: str) -> bytes:
    try:
        return zlib.decompressobj().decompress(base64.b64decode(text), _MAX_RESULT)
    except (ValueError, zlib.error):
        return b""
