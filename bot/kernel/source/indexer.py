"""Finds the sources of an environment, indexes what is new, and opens an index over all of them."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Event, Lock

from typing_extensions import override

from bot.kernel.environment import Environment
from bot.kernel.errors import Stopped, TransientError
from bot.kernel.source import database, index
from bot.kernel.source.database import SourceTree, TreeReader, content
from bot.kernel.source.index import Provenance, SegmentIndex, SegmentStore
from bot.kernel.source.outline import Segment
from sandbox.cache import Cache
from sandbox.port import SandboxError
from sandbox.subprocesses import Interrupted

_CACHED_TEXTS = 256
_CACHED_ANSWERS = 256
_SHARE_OF_DEPENDENCIES = 0.3
_MAX_POSTINGS = (6_000, 2_500)
_MIN_WORDS = 2


class SqliteStore(SegmentStore):
    """Safe to use from several threads."""

    def __init__(self, readers: Sequence[tuple[SourceTree, TreeReader]]) -> None:
        self._readers = {path: reader for _, reader in readers for path in reader.paths}
        self._trees = {path: tree for tree, reader in readers for path in reader.paths}
        self._main = [reader for tree, reader in readers if tree.main]
        self._dependencies = [reader for tree, reader in readers if not tree.main]
        self._paths = sorted(self._readers)
        self._lock = Lock()
        self._text = lru_cache(_CACHED_TEXTS)(_text)
        self._of_file = lru_cache(_CACHED_ANSWERS)(self._segments)
        self._of_name = lru_cache(_CACHED_ANSWERS)(self._named)

    @override
    def paths(self) -> Sequence[str]:
        return self._paths

    @override
    def provenance(self, path: str) -> Provenance:
        tree = self._trees[path]
        return Provenance(tree.origin, tree.package, tree.version, tree.main)

    @override
    def text(self, path: str) -> str | None:
        """The text of a file as it is on disk now."""
        return self._text(self._trees[path].root, path) if path in self._trees else None

    @override
    def segments(self, path: str) -> Sequence[Segment]:
        with self._lock:
            return self._of_file(path)

    @override
    def named(self, last: str) -> Sequence[Segment]:
        with self._lock:
            return self._of_name(last)

    @override
    def containing(self, words: Sequence[str], limit: int) -> Sequence[Segment]:
        query = " AND ".join(f'body:"{word}"' for word in words)
        with self._lock:
            segments = [
                segment for reader in self._all for segment in reader.matching(query, limit)
            ]
        return sorted(segments, key=_position)[:limit]

    @override
    def ranked(self, words: Sequence[str], limit: int) -> Sequence[tuple[Segment, float]]:
        """Main packages and dependencies are ranked each among themselves, the best of the former
        at 1, of the latter at a share of it: every word is common in a small package, so a large
        one would always win; and a word in a dependency says little about the report.
        """
        with self._lock:
            hits = [
                *_rank(self._main, words, limit, _MAX_POSTINGS[0]),
                *(
                    (segment, score * _SHARE_OF_DEPENDENCIES)
                    for segment, score in _rank(self._dependencies, words, limit, _MAX_POSTINGS[1])
                ),
            ]
        return sorted(hits, key=lambda hit: (-hit[1], *_position(hit[0])))[:limit]

    def _segments(self, path: str) -> Sequence[Segment]:
        return self._readers[path].segments(path) if path in self._readers else ()

    def _named(self, last: str) -> Sequence[Segment]:
        segments = (segment for reader in self._all for segment in reader.named(last))
        return sorted(segments, key=_position)

    @property
    def _all(self) -> Sequence[TreeReader]:
        return (*self._main, *self._dependencies)


def _rank(
    readers: Sequence[TreeReader], words: Sequence[str], limit: int, max_postings: int
) -> Sequence[tuple[Segment, float]]:
    query = " OR ".join(f'"{word}"' for word in _rarest(words, readers, max_postings))
    hits_with_readers = (
        (*hit, reader) for reader in readers for hit in reader.ranked(query, limit)
    )
    hits = sorted(hits_with_readers, key=lambda hit: hit[1])
    best = hits[0][1] if hits else -1.0
    return [(reader.segment(row), score / best) for row, score, reader in hits[: limit * 2]]


def _rarest(
    words: Sequence[str], readers: Sequence[TreeReader], max_postings: int
) -> Sequence[str]:
    """The rarer words, at least two, until together they occur in `max_postings` segments. The
    others take the most time and rank the least.
    """
    counts = {word: sum(reader.common.get(word, 0) for reader in readers) for word in words}
    rarest = sorted(words, key=lambda word: counts[word])
    totals = accumulate(counts[word] for word in rarest)
    count = sum(total <= max_postings for total in totals)
    return rarest[: max(_MIN_WORDS, count)]


def _position(segment: Segment) -> tuple[str, int]:
    return segment.path, segment.start


def _text(root: Path, path: str) -> str | None:
    data = content(root, path)
    return None if data is None else index.decode(data)


@dataclass
class SqliteIndexer:
    """Keeps indexes below `cache`, by content: what two environments share is kept once. Safe to
    use from several threads and processes at once.
    """

    cache: Path

    def open(
        self, environment: Environment, packages: tuple[str, ...], *, cancel: Event | None = None
    ) -> SegmentIndex:
        """The index of an environment. Raises Stopped, or TransientError when it cannot be
        written.
        """
        cache = Cache(self.cache, cancel)
        try:
            source_trees = database.find(environment, packages)
            places = [(tree, database.place(cache, tree)) for tree in source_trees]
            readers = [(tree, _reader(cache, tree, place)) for tree, place in places]
            return SegmentIndex(SqliteStore(readers))
        except Interrupted as error:
            raise Stopped("the index was cancelled") from error
        except (SandboxError, OSError, sqlite3.Error) as error:
            raise TransientError(
                f"The index of sources cannot be written: {error}",
                f"Free disk space, or empty {self.cache}.",
            ) from error


def _reader(cache: Cache, tree: SourceTree, place: Path) -> TreeReader:
    database.build(cache, tree, place)
    try:
        return TreeReader(place)
    except sqlite3.DatabaseError:  # it is damaged: build it again
        place.unlink(missing_ok=True)
        database.build(cache, tree, place)
        return TreeReader(place)
