"""One part of an index: an SQLite file with the pieces of some sources and their words; the texts stay where they are."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bot.adapters.library.holdings import MOST_BYTES
from bot.rules.code import indexing
from bot.rules.code.outline import Piece
from bot.rules.code.symbols import Place

_SCHEMA = """
pragma page_size=8192; pragma journal_mode=off; pragma synchronous=off; pragma locking_mode=exclusive; pragma cache_size=-65536;
create table file(id integer primary key, path text not null unique) ;
create table piece(id integer primary key, file integer not null, kind text not null, name text not null, last text not null,
                   first integer not null, final integer not null, part integer not null);
create virtual table words using fts5(name, module, head, body, content='', tokenize="ascii tokenchars '_'");
"""
_COMMON = """
create index piece_last on piece(last) where part = 0 and last != '';
create index piece_file on piece(file);
create virtual table temp.terms using fts5vocab(main, words, row);
create table common(term text primary key, docs integer not null) without rowid;
insert into common select term, doc from temp.terms where doc > (select count(*) / 500 from piece);
"""
_COLUMNS = "file.path, piece.kind, piece.name, piece.first, piece.final, piece.part"
_JOINED = "from piece join file on file.id = piece.file"
_WEIGHTS = ", ".join(str(weight) for weight in indexing.WEIGHTS)


def contents(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The files that can still be read."""
    for path in paths:
        data = content(root, path)
        if data is not None:
            yield path, data


def content(root: Path, path: str) -> bytes | None:
    """At most so much of a plain file; None when it is none any more."""
    try:
        descriptor = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MOST_BYTES)
    except (OSError, ValueError):
        return None


def key(files: Iterable[tuple[str, bytes]]) -> str:
    """The name of the part that holds exactly these files."""
    whole = hashlib.sha256(indexing.FORMAT.encode())
    for path, data in files:
        whole.update(f"\0{path}\0{hashlib.sha256(data).hexdigest()}".encode())
    return whole.hexdigest()[:40]


def build(target: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write the part beside its place and move it there whole."""
    part = target.with_name(f".{target.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(part, isolation_level=None)) as base:
            base.executescript(_SCHEMA)
            base.execute("begin")
            _fill(base, files)
            base.execute("commit")
            base.executescript(_COMMON)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _fill(base: sqlite3.Connection, files: Iterable[tuple[str, bytes]]) -> None:
    number = 0
    for file, (path, data) in enumerate(files, 1):
        pieces, words = [], []
        for row in indexing.rows(path, indexing.read(data)):
            number += 1
            piece = row.piece
            last = "" if piece.kind == "module" else piece.name.rpartition(".")[2]
            pieces.append((number, file, piece.kind, piece.name, last, piece.start, piece.end, piece.part))
            words.append((number, *row.columns))
        base.execute("insert into file values(?, ?)", (file, path))
        base.executemany("insert into piece values(?, ?, ?, ?, ?, ?, ?, ?)", pieces)
        base.executemany("insert into words(rowid, name, module, head, body) values(?, ?, ?, ?, ?)", words)


class Shard:
    """A finished part, opened for reading. Raises sqlite3.DatabaseError when it is none."""

    def __init__(self, path: Path) -> None:
        self._base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        self.paths = [row[0] for row in self._base.execute("select path from file order by path")]
        self.size: int = self._base.execute("select count(*) from piece").fetchone()[0]
        self.common: dict[str, int] = dict(self._base.execute("select term, docs from common"))

    def pieces(self, path: str) -> list[Piece]:
        """The pieces of a file."""
        rows = self._base.execute(f"select {_COLUMNS} {_JOINED} where file.path = ? order by piece.id", (path,))
        return [_place(row).piece for row in rows]

    def named(self, last: str) -> list[Place]:
        """First pieces of definitions by their simple name."""
        where = "where piece.last = ? and piece.last != '' and piece.part = 0 order by piece.id"
        return [_place(row) for row in self._base.execute(f"select {_COLUMNS} {_JOINED} {where}", (last,))]

    def matching(self, query: str, limit: int, *, ranked: bool) -> list[tuple[int, float]]:
        """Numbers of the pieces that a full-text query meets, with their weight (higher is better): the best ones, or the
        first ones.
        """
        score, order = (f"-bm25(words, {_WEIGHTS})", "score desc, rowid") if ranked else ("0.0", "rowid")
        asked = f"select rowid, {score} as score from words where words match ? order by {order} limit ?"  # noqa: S608
        return self._base.execute(asked, (query, limit)).fetchall()

    def place(self, number: int) -> Place:
        """A piece by its number."""
        return _place(self._base.execute(f"select {_COLUMNS} {_JOINED} where piece.id = ?", (number,)).fetchone())

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()


def _place(row: Sequence[str | int | float]) -> Place:
    path, kind, name, first, final, part = row[:6]
    return Place(str(path), Piece(kind, str(name), int(first), int(final), int(part)))  # type: ignore[arg-type]
