"""The index of one source tree: an SQLite file with the segments of its files and their words. The
texts stay where they are.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bot.adapters.sources.trees import MAX_BYTES, SourceTree
from bot.errors import Stopped
from bot.rules.code import indexing
from bot.rules.code.outline import Segment
from sandbox.cache import Cache

FOLDER = "index"
_SCHEMA = """
pragma page_size=8192; pragma journal_mode=off; pragma synchronous=off; pragma locking_mode=exclusive; pragma cache_size=-65536;
create table file(id integer primary key, path text not null unique);
create table segment(id integer primary key, file integer not null, kind text not null, name text not null, first integer not null,
                     final integer not null, part integer not null, last text not null);
create virtual table words using fts5(name, module, head, body, content='', tokenize="ascii tokenchars '_'");
"""
_COMMON = """
create index segment_last on segment(last) where part = 0 and last != '';
create index segment_file on segment(file);
create virtual table temp.terms using fts5vocab(main, words, row);
create table common(term text primary key, docs integer not null) without rowid;
insert into common select term, doc from temp.terms where doc > (select count(*) / 500 from segment);
"""
_ADD_SEGMENT = """insert into segment(file, kind, name, first, final, part, last)
values(?, ?, ?, ?, ?, ?, ?)"""
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


def build(cache: Cache, tree: SourceTree) -> Path:
    """The database of a tree, named by its content. It is written unless it exists already. Raises
    Stopped.
    """
    digest = hashlib.sha256(indexing.FORMAT.encode())
    for path, data in _sources(cache, tree):
        digest.update(f"\0{path}\0{hashlib.sha256(data).hexdigest()}".encode())
    name = digest.hexdigest()[:40]
    target = cache.folder(FOLDER) / f"{name}.sqlite"
    if not target.exists():
        with cache.guarded(f"index-{name}"):
            if not target.exists():
                _write(target, _sources(cache, tree))
    os.utime(target)
    return target


def _sources(cache: Cache, tree: SourceTree) -> Iterator[tuple[str, bytes]]:
    for path, _ in tree.files:
        if cache.cancel is not None and cache.cancel.is_set():
            raise Stopped("the index was cancelled")
        data = content(tree.root, path)
        if data is not None:
            yield path, data


def _write(target: Path, files: Iterator[tuple[str, bytes]]) -> None:
    """Write the database beside its place and move it there whole."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as base:
            base.executescript(_SCHEMA)
            base.execute("begin")
            _fill(base, files)
            base.execute("commit")
            base.executescript(_COMMON)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _fill(base: sqlite3.Connection, files: Iterator[tuple[str, bytes]]) -> None:
    for path, data in files:
        file = base.execute("insert into file(path) values(?)", (path,)).lastrowid
        for segment, words in indexing.rows(path, indexing.read(data)):
            last = "" if segment.kind == "module" else segment.simple_name
            number = base.execute(_ADD_SEGMENT, (file, *segment[1:], last)).lastrowid
            base.execute(_ADD_WORDS, (number, *words))


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
