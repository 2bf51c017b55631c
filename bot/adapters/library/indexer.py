"""Builds the parts of an index with two processes that end when the one that started them does."""

from __future__ import annotations

import multiprocessing
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Event

from bot.adapters.library import shard
from bot.adapters.library.holdings import Holding
from bot.errors import Stopped, TransientError
from sandbox.cache import Cache, DiskFull

FOLDER = "index"
_SLICE = 8_000_000
_ALONE = 3_000_000
_WORKERS = 2
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Slice:
    """Files of one holding that are indexed together."""

    cache: Path
    root: Path
    paths: tuple[str, ...]
    size: int


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
            done[each] = made(each)
        return done
    return dict(_shared(sorted(work, key=lambda each: (-each.size, each.paths)), cancel))


def made(work: Slice) -> str:
    """The part of a slice, built when it is not there."""
    files = list(shard.contents(work.root, work.paths))
    name = shard.key(files)
    cache = Cache(work.cache)
    target = cache.folder(FOLDER) / f"{name}.sqlite"
    if not target.exists():
        with cache.guarded(f"index-{name}"):
            if not target.exists():
                shard.build(target, files)
    return name


def serve(pipe: Connection) -> None:
    """The life of a worker: a slice in, a name out, until the other end is closed."""
    while True:
        try:
            work: Slice = pipe.recv()
            answer: str | OSError = ""
            try:
                answer = made(work)
            except (OSError, DiskFull, sqlite3.Error) as error:
                answer = OSError(str(error))
            pipe.send(answer)
        except (EOFError, BrokenPipeError, KeyboardInterrupt):
            return


def _shared(work: list[Slice], cancel: Event | None) -> Iterator[tuple[Slice, str]]:
    context = multiprocessing.get_context("spawn")
    pipes: dict[Connection, Slice | None] = {}
    processes = []
    try:
        for _ in range(min(_WORKERS, len(work))):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True, name="reprise-index")
            process.start()
            theirs.close()
            processes.append(process)
            pipes[ours] = None
        yield from _dealt(list(reversed(work)), pipes, cancel)
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.terminate()
            process.join()


def _dealt(work: list[Slice], pipes: dict[Connection, Slice | None], cancel: Event | None) -> Iterator[tuple[Slice, str]]:
    while work or any(pipes.values()):
        for pipe, busy in pipes.items():
            if busy is None and work:
                pipes[pipe] = work.pop()
                pipe.send(pipes[pipe])
        for ready in wait(list(pipes), timeout=_POLL_S):
            assert isinstance(ready, Connection)
            current = pipes[ready]
            try:
                answer = ready.recv()
            except (EOFError, ConnectionResetError) as error:
                raise TransientError("A process that reads sources was killed.", "Try again, with more memory.") from error
            if isinstance(answer, OSError):
                raise TransientError(f"The index of sources cannot be kept: {answer}", "Make room in the cache folder.")
            pipes[ready] = None
            if current is not None:
                yield current, answer
        _check(cancel)


def _check(cancel: Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Stopped("the index was cancelled")
