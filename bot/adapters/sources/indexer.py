"""Finds the sources of an environment, indexes what is new, and opens an index over the parts."""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import sqlite3
import zlib
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Event, Thread

from bot.adapters.sources import part, trees
from bot.adapters.sources.part import FOLDER, Part, PartReader
from bot.adapters.sources.store import SqliteStore
from bot.adapters.sources.trees import SourceTree
from bot.errors import Stopped, TransientError
from bot.models.environment import Environment
from bot.rules.code import indexing
from bot.rules.code.segment_index import SegmentIndex
from sandbox.cache import Cache
from sandbox.port import SandboxError

_PART_BYTES = 8_000_000
_IN_PROCESS_BYTES = 3_000_000
_WORKERS = 2
_POLL_S = 0.1


@dataclass
class SqliteIndexer:
    """Keeps indexes below `cache`, by content: what two environments share is read once. Safe to
    use from several threads and processes at once.
    """

    cache: Path

    def open(
        self, environment: Environment, packages: tuple[str, ...], *, cancel: Event | None = None
    ) -> SegmentIndex:
        """The index of an environment. Raises Stopped, or TransientError when it cannot be
        written.
        """
        found = trees.find(environment, packages)
        try:
            try:
                parts = [self._reader(name) for name in self._names(found, cancel)]
            except sqlite3.DatabaseError:  # the damaged part is deleted: build it again
                parts = [self._reader(name) for name in self._names(found, cancel)]
            return SegmentIndex(SqliteStore(found, parts))
        except BrokenProcessPool as error:
            raise TransientError(
                "A process that indexes sources was killed.", "Try again, with more memory."
            ) from error
        except (SandboxError, OSError, sqlite3.Error) as error:
            raise TransientError(
                f"The index of sources cannot be written: {error}",
                f"Free disk space, or empty {self.cache}.",
            ) from error

    def _names(self, found: Sequence[SourceTree], cancel: Event | None) -> list[str]:
        """Names of the parts of these trees, from the notes of earlier runs where they still
        hold.
        """
        cache = Cache(self.cache, cancel)
        names: set[str] = set()
        work: list[tuple[str, Part]] = []
        for tree in found:
            note = _note(tree)
            known = [str(name) for name in (cache.recall(note) or {}).get("parts", ())]
            if known and all((self.cache / FOLDER / f"{name}.sqlite").exists() for name in known):
                names.update(known)
            else:
                work += [(note, new) for new in split(tree)]
        built = build_all(self.cache, [new for _, new in work], cancel)
        for note in {note for note, _ in work if note}:
            made = [name for (own, _), name in zip(work, built, strict=True) if own == note]
            cache.note(note, {"parts": made})
        return sorted(names.union(built))

    def _reader(self, name: str) -> PartReader:
        path = self.cache / FOLDER / f"{name}.sqlite"
        try:
            return PartReader(path)
        except sqlite3.DatabaseError:
            path.unlink(missing_ok=True)
            raise


def _note(tree: SourceTree) -> str:
    """The name under which the parts of a tree are noted; "" when only reading its files tells
    whether they changed.
    """
    listed = "\0".join(f"{path}:{size}" for path, size in tree.files)
    digest = hashlib.sha256(f"{indexing.FORMAT}{tree.stamp}{listed}".encode())
    return f"index-{digest.hexdigest()[:40]}" if tree.stamp else ""


def split(tree: SourceTree) -> list[Part]:
    """A tree in parts of about equal size. A file's part depends on its path alone."""
    count = max(1, round(sum(size for _, size in tree.files) / _PART_BYTES))
    files: dict[int, list[tuple[str, int]]] = {}
    for path, size in tree.files:
        files.setdefault(zlib.crc32(path.encode()) % count, []).append((path, size))
    return [
        Part(tree.root, tuple(path for path, _ in own), sum(size for _, size in own))
        for own in files.values()
    ]


def build_all(cache: Path, parts: Sequence[Part], cancel: Event | None) -> list[str]:
    """The names of the parts. Large ones are built in a pool of processes, the largest first.
    Raises Stopped, BrokenProcessPool.
    """
    _check(cancel)
    if sum(new.size for new in parts) <= _IN_PROCESS_BYTES:
        return [part.build(cache, new) for new in parts]
    with ProcessPoolExecutor(_WORKERS, get_context("spawn"), _start_worker) as pool:
        futures = {
            new: pool.submit(part.build, cache, new)
            for new in sorted(parts, key=lambda new: new.size, reverse=True)
        }
        try:
            while wait(futures.values(), _POLL_S, FIRST_EXCEPTION).not_done:
                _check(cancel)
                if any(future.done() and future.exception() for future in futures.values()):
                    break
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return [futures[new].result() for new in parts]


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end when it ends, even when it is killed."""
    gc.disable()  # a quarter of the time otherwise; a worker lives for one indexing
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_after_parent, daemon=True).start()


def _exit_after_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _check(cancel: Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Stopped("the index was cancelled")
