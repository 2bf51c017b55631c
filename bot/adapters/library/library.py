"""The library of this machine: finds the sources of an environment, indexes what is new, and opens a shelf over the parts."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from bot.adapters.library import holdings, indexer, shard
from bot.adapters.library.holdings import Holding
from bot.adapters.library.worker import FOLDER, Slice
from bot.errors import TransientError
from bot.models.environment import Environment
from bot.rules.code import indexing
from bot.rules.code.outline import Piece
from bot.rules.code.shelved import Source, StoreShelf
from bot.rules.code.symbols import Place
from sandbox.cache import Cache
from sandbox.port import SandboxError

_TEXTS = 64
_POSTINGS = (6_000, 2_500)
_TELLING = 2


@dataclass
class SqliteLibrary:
    """Indexes are kept below `cache`, by content: what two environments share is read once. Safe to use from several threads
    and processes at once.
    """

    cache: Path

    def shelf(self, environment: Environment, packages: tuple[str, ...], *, cancel: Event | None = None) -> StoreShelf:
        """The shelf of an environment. Raises Stopped, or TransientError when the index cannot be kept."""
        held = holdings.find(environment, packages)
        try:
            try:
                shards = [self._opened(name) for name in self._names(held, cancel)]
            except sqlite3.DatabaseError:
                shards = [self._opened(name) for name in self._names(held, cancel)]
            return StoreShelf(_Shards(held, shards))
        except (SandboxError, OSError, sqlite3.Error) as error:
            raise TransientError(
                f"The index of sources cannot be kept: {error}", f"Make room, or empty {self.cache}."
            ) from error

    def _names(self, held: Sequence[Holding], cancel: Event | None) -> list[str]:
        cache = Cache(self.cache, cancel)
        names: list[str] = []
        work: dict[str, tuple[Slice, ...]] = {}
        for holding in held:
            note = _note(holding)
            known = cache.recall(note) if note else None
            parts = [str(name) for name in known.get("parts", [])] if known else []
            if parts and all((self.cache / FOLDER / f"{name}.sqlite").exists() for name in parts):
                names += parts
            else:
                work[note or holding.package] = indexer.slices(holding, self.cache)
        done = indexer.index([each for several in work.values() for each in several], cancel) if work else {}
        for note, several in work.items():
            parts = [done[each] for each in several]
            names += parts
            if note.startswith("index-"):
                cache.note(note, {"parts": parts})
        return sorted(set(names))

    def _opened(self, name: str) -> shard.Shard:
        """A part; one that is damaged is thrown away, so that the second try builds it again."""
        path = self.cache / FOLDER / f"{name}.sqlite"
        try:
            return shard.Shard(path)
        except sqlite3.DatabaseError:
            path.unlink(missing_ok=True)
            raise


def _note(holding: Holding) -> str:
    """The name under which the parts of a holding are noted, "" when its files must be read to know them."""
    if not holding.mark:
        return ""
    listed = "\0".join(f"{path}:{size}" for path, size in holding.files)
    return f"index-{hashlib.sha256(f'{indexing.FORMAT}{holding.mark}{listed}'.encode()).hexdigest()[:40]}"


class _Shards:
    """The store of a shelf: some parts, and the folders their texts lie in."""

    def __init__(self, held: Sequence[Holding], shards: Sequence[shard.Shard]) -> None:
        self._sources: dict[str, tuple[Source, Path]] = {}
        for holding in held:
            source = Source(holding.origin, holding.package, holding.version, holding.main)
            self._sources.update((path, (source, holding.root)) for path, _ in holding.files)
        self._shards = shards
        main = [each for each in shards if any(path in self._sources and self._sources[path][0].main for path in each.paths)]
        self._groups = (main, [each for each in shards if each not in main])
        self._homes = {path: each for each in shards for path in each.paths}
        self._paths = sorted(path for path in self._sources if path in self._homes)
        self._texts: OrderedDict[str, str | None] = OrderedDict()
        self._lock = Lock()

    def paths(self) -> Sequence[str]:
        return self._paths

    def source(self, path: str) -> Source:
        return self._sources[path][0]

    def text(self, path: str) -> str | None:
        if path not in self._homes or path not in self._sources:
            return None
        with self._lock:
            if path not in self._texts:
                data = shard.content(self._sources[path][1], path)
                self._texts[path] = None if data is None else indexing.read(data)
                if len(self._texts) > _TEXTS:
                    self._texts.popitem(last=False)
            else:
                self._texts.move_to_end(path)
            return self._texts[path]

    def pieces(self, path: str) -> Sequence[Piece]:
        home = self._homes.get(path)
        with self._lock:
            return home.pieces(path) if home is not None else []

    def named(self, last: str) -> Sequence[Place]:
        with self._lock:
            found = [place for each in self._shards for place in each.named(last)]
        return sorted(found, key=lambda place: (place.path, place.piece.start))

    def holding(self, words: Sequence[str], limit: int) -> Sequence[Place]:
        query = " AND ".join(f'body:"{word}"' for word in words)
        with self._lock:
            found = [each.place(row) for each in self._shards for row, _ in each.matching(query, limit, ranked=False)]
        return sorted(found, key=lambda place: (place.path, place.piece.start))[:limit]

    def ranked(self, words: Sequence[str], limit: int) -> Sequence[tuple[Place, float]]:
        """What was asked for and what it needs are each ranked among themselves, the best of either at 1: in a small package
        every word is common, and what is large would always win.
        """
        hits: list[tuple[float, shard.Shard, int]] = []
        for group, postings in zip(self._groups, _POSTINGS, strict=True):
            query = " OR ".join(f'"{word}"' for word in _telling(words, group, postings))
            with self._lock:
                own = [(-s, each, row) for each in group for row, s in each.matching(query, limit, ranked=True)]
            best = min((score for score, _, _ in own), default=0.0) or -1.0
            own.sort(key=lambda hit: hit[0])
            hits += [(score / best, each, row) for score, each, row in own[: limit * 2]]
        with self._lock:
            found = [(each.place(row), score) for score, each, row in hits]
        return sorted(found, key=lambda hit: (-hit[1], hit[0].path, hit[0].piece.start))[:limit]


def _telling(words: Sequence[str], group: Sequence[shard.Shard], postings: int) -> Sequence[str]:
    """The rarer words, until together they stand in `postings` pieces; two at least. The others cost the most time and
    tell the least.
    """
    counts = {word: sum(each.common.get(word, 0) for each in group) for word in words}
    rare = sorted(words, key=lambda word: counts[word])
    kept: list[str] = []
    total = 0
    for word in rare:
        total += counts[word]
        if len(kept) >= _TELLING and total > postings:
            break
        kept.append(word)
    return kept
