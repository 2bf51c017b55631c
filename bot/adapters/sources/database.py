"""The index of one source tree: an SQLite file with the segments of its files and their words. The
texts stay where they are.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

from bot.adapters.sources.trees import MAX_BYTES, SourceTree
from bot.errors import Stopped
from bot.rules.code import indexing
from bot.rules.code.outline import Segment
from sandbox.cache import Cache

Row = tuple[str | int, ...]

FOLDER = "index"
_SCHEMA = """
pragma page_size=8192; pragma journal_mode=off; pragma synchronous=off; pragma locking_mode=exclusive; pragma cache_size=-65536;
create table file(id integer primary key, path text not null unique);
create table segment(id integer primary key, file integer not null, kind text not null, name text not null, first integer not null,
                     final integer not null, part integer not null, last text not null);
create virtual table words using fts5(name, module, head, body, content='', tokenize="ascii tokenchars '_'");
insert into words(words, rank) values('hashsize', 33554432);
"""
_COMMON = """
create index segment_last on segment(last) where part = 0 and last != '';
create index segment_file on segment(file);
create virtual table temp.terms using fts5vocab(main, words, row);
create table common(term text primary key, docs integer not null) without rowid;
insert into common select term, doc from temp.terms where doc > (select count(*) / 500 from segment);
"""
_ADD_SEGMENT = "insert into segment values(?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_WORDS = "insert into words(rowid, name, module, head, body) values(?, ?, ?, ?, ?)"
_SEGMENTS = """select file.path, segment.kind, segment.name, segment.first, segment.final, segment.part
from segment join file on file.id = segment.file where """
_RANKED = """select rowid, bm25(words, ?, ?, ?, ?) as score from words
where words match ? order by score, rowid limit ?"""


def content(root: Path, path: str) -> bytes | None:
    """The beginning of a plain file, at most `MAX_BYTES`; None when it cannot be read."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(root / path, flags), "rb") as file:
            return file.read(MAX_BYTES)
    except (OSError, ValueError):
        return None


def place(cache: Cache, tree: SourceTree) -> Path:
    """Where the database of a tree belongs; its content names it. Raises Stopped."""
    digest = hashlib.sha256(indexing.FORMAT.encode())
    for path, data in _sources(cache, tree):
        digest.update(f"\0{path}\0{hashlib.sha256(data).hexdigest()}".encode())
    return cache.folder(FOLDER) / f"{digest.hexdigest()[:40]}.sqlite"


def rows(path: str, data: bytes) -> list[Row]:
    """What is kept of one source: kind, name, lines, part, simple name and words per segment."""
    return [
        (*segment[1:], "" if segment.kind == "module" else segment.simple_name, *words)
        for segment, words in indexing.rows(path, indexing.read(data))
    ]


def build(cache: Cache, tree: SourceTree, target: Path) -> None:
    """Write the database of a tree to its place unless it exists already. Raises Stopped."""
    if not target.exists():
        with cache.guarded(f"index-{target.stem}"), cache.scratch() as folder:
            if not target.exists():
                unfinished = folder / target.name
                _write(unfinished, _sources(cache, tree))
                unfinished.replace(target)
    os.utime(target)


def _sources(cache: Cache, tree: SourceTree) -> Iterator[tuple[str, bytes]]:
    for path, _ in tree.files:
        if cache.cancel is not None and cache.cancel.is_set():
            raise Stopped("the index was cancelled")
        data = content(tree.root, path)
        if data is not None:
            yield path, data


def _write(target: Path, files: Iterator[tuple[str, bytes]]) -> None:
    with closing(sqlite3.connect(target, isolation_level=None)) as base:
        base.executescript(_SCHEMA)
        base.execute("begin")
        numbers = count(1)
        for file, (path, data) in enumerate(files, 1):
            base.execute("insert into file values(?, ?)", (file, path))
            found = [(next(numbers), row) for row in rows(path, data)]
            base.executemany(_ADD_SEGMENT, [(number, file, *row[:6]) for number, row in found])
            base.executemany(_ADD_WORDS, [(number, *row[6:]) for number, row in found])
        base.execute("commit")
        base.executescript(_COMMON)


class TreeReader:
    """A finished database, opened for reading. Raises sqlite3.DatabaseError when it is damaged."""

    def __init__(self, path: Path) -> None:
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._base = sqlite3.connect(uri, uri=True, check_same_thread=False)
        self.paths = [row[0] for row in self._base.execute("select path from file order by path")]
        self.common: dict[str, int] = dict(self._base.execute("select term, docs from common"))

    def segments(self, path: str) -> list[Segment]:
        """The segments of a file."""
        return self._select("file.path = ? order by segment.id", path)

    def named(self, last: str) -> list[Segment]:
        """First segments of definitions by their simple name."""
        where = "segment.last = ? and segment.last != '' and segment.part = 0 order by segment.id"
        return self._select(where, last)

    def segment(self, number: int) -> Segment:
        """A segment by its number."""
        return self._select("segment.id = ?", number)[0]

    def ranked(self, query: str, limit: int) -> Sequence[tuple[int, float]]:
        """Numbers and scores (lower is better) of the best matches of a full-text query."""
        return self._base.execute(_RANKED, (*indexing.WEIGHTS, query, limit)).fetchall()

    def matching(self, query: str, limit: int) -> list[Segment]:
        """The first segments that match a full-text query."""
        select = (
            "segment.id in (select rowid from words where words match ? order by rowid limit ?)"
        )
        return self._select(f"{select} order by segment.id", query, limit)

    def _select(self, where: str, *values: str | int) -> list[Segment]:
        return [Segment(*row) for row in self._base.execute(_SEGMENTS + where, values)]
