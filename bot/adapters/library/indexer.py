"""Cuts holdings into slices and deals them to two worker processes."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

from bot.adapters.library.holdings import Holding
from bot.adapters.library.worker import START, Slice, made
from bot.errors import Stopped, TransientError

_SLICE = 8_000_000
_ALONE = 3_000_000
_WORKERS = 2
_POLL_S = 0.1

Worker = subprocess.Popen[bytes]


def slices(holding: Holding, cache: Path) -> tuple[Slice, ...]:
    """A holding in parts of about equal size; which file is in which part depends on its path alone."""
    count = max(1, round(sum(size for _, size in holding.files) / _SLICE))
    parts: list[list[tuple[str, int]]] = [[] for _ in range(count)]
    for path, size in holding.files:
        parts[zlib.crc32(path.encode()) % count].append((path, size))
    return tuple(
        Slice(cache, holding.root, tuple(path for path, _ in part), sum(size for _, size in part)) for part in parts if part
    )


def index(work: list[Slice], cancel: Event | None) -> dict[Slice, str]:
    """The name of the part for each slice; parts that are there already are not built again. Raises Stopped."""
    if sum(each.size for each in work) <= _ALONE:
        done = {}
        for each in work:
            _check(cancel)
            done[each] = made(each.cache, each.root, each.paths)
        return done
    workers = [_start() for _ in range(min(_WORKERS, len(work)))]
    try:
        return dict(_dealt(sorted(work, key=lambda each: (each.size, each.paths)), workers, cancel))
    finally:
        for worker in workers:
            _end(worker)


def _start() -> Worker:
    path = json.dumps([str(Path(each).absolute()) for each in sys.path if each])
    return subprocess.Popen(
        [sys.executable, "-I", "-c", START, path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}, start_new_session=True, bufsize=0,
    )  # fmt: skip


def _end(worker: Worker) -> None:
    worker.terminate()
    for stream in (worker.stdin, worker.stdout):
        with suppress(OSError):
            if stream is not None:
                stream.close()
    worker.wait()


def _dealt(work: list[Slice], workers: list[Worker], cancel: Event | None) -> Iterator[tuple[Slice, str]]:
    """Largest first, a slice at a time to whoever is free."""
    busy: dict[int, Slice] = {}
    with selectors.DefaultSelector() as selector:
        for at, worker in enumerate(workers):
            assert worker.stdout is not None
            selector.register(worker.stdout, selectors.EVENT_READ, at)
            _tell(worker, work, busy, at)
        while busy:
            for key, _ in selector.select(_POLL_S):
                at = key.data
                done = busy.pop(at, None)
                name = _answer(workers[at])
                _tell(workers[at], work, busy, at)
                if done is not None:
                    yield done, name
            _check(cancel)


def _tell(worker: Worker, work: list[Slice], busy: dict[int, Slice], at: int) -> None:
    if not work:
        return
    assert worker.stdin is not None
    busy[at] = work.pop()
    data = memoryview(busy[at].line())
    try:
        while data:
            data = data[worker.stdin.write(data) or 0 :]
    except BrokenPipeError as error:
        raise _killed() from error


def _answer(worker: Worker) -> str:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line.endswith(b"\n"):
        raise _killed()
    answer = json.loads(line)
    if "error" in answer:
        raise TransientError(f"The index of sources cannot be kept: {answer['error']}", "Make room in the cache folder.")
    return str(answer["name"])


def _killed() -> TransientError:
    return TransientError("A process that reads sources was killed.", "Try again, with more memory.")


def _check(cancel: Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Stopped("the index was cancelled")
