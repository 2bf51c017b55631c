"""The index of one source tree as an SQLite file; trees are found by distribution and kept
by content.
"""

import hashlib
import os
import re
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bot.kernel.environment import Environment, Origin, PinSource
from bot.kernel.errors import Stopped
from bot.kernel.source import index
from bot.kernel.source.outline import Segment
from sandbox.cache import Cache

# The sources of an environment: the Python files of its distributions, and of a repository on its
# path.

MAX_BYTES = 1_500_000
_MAX_FILES = 20_000
_MAX_TOTAL = 400_000_000
_METADATA_BYTES = 400_000
_RECORD_BYTES = 20_000_000
_SKIPPED = frozenset(
    {".git", ".hg", ".tox", ".venv", "venv", "node_modules", "__pycache__"}
    | {"build", "dist", ".eggs"}
)


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The Python files of one distribution or clone, as paths below `root` with their sizes."""

    package: str
    version: str
    root: Path
    files: tuple[tuple[str, int], ...]
    main: bool
    origin: Origin = "installed"


def find(environment: Environment, packages: Sequence[str]) -> tuple[SourceTree, ...]:
    """The trees of the packages first, then of what they need directly and of the others that were
    asked for. No file is in two.
    """
    paths: set[str] = set()
    trees: list[SourceTree] = []
    total = 0
    for tree in (*_clones(environment, packages), *_installed_trees(environment, packages)):
        own = []
        for path, size in tree.files:
            if path not in paths and len(paths) < _MAX_FILES and total + size <= _MAX_TOTAL:
                paths.add(path)
                own.append((path, size))
                total += size
        trees += [replace(tree, files=tuple(own))] if own else []
    return tuple(trees)


def _installed_trees(environment: Environment, packages: Sequence[str]) -> Iterator[SourceTree]:
    distributions: dict[str, tuple[Path, Path]] = {}
    for site in _sites(environment):
        for info in sorted(site.glob("*.dist-info")):
            name = info.name.removesuffix(".dist-info").partition("-")[0]
            distributions.setdefault(canonicalize_name(name), (site, info))
    names: list[str] = list(dict.fromkeys(map(canonicalize_name, packages)))
    needed: dict[str, None] = {}
    for name in names:
        if name in distributions:
            yield _distribution(name, *distributions[name], main=True)
            needed.update(dict.fromkeys(_needs(distributions[name][1])))
    package_names = [
        package.name for package in environment.packages if package.rung is not PinSource.DEPENDENCY
    ]
    for name in dict.fromkeys((*needed, *map(canonicalize_name, package_names))):
        if name in distributions and name not in names:
            yield _distribution(name, *distributions[name], main=False)


def _sites(environment: Environment) -> Iterator[Path]:
    for mount in dict.fromkeys(environment.mounts):
        root = Path(mount)
        if root.name in {"site-packages", "dist-packages"}:
            yield root
        yield from sorted(root.glob("lib/python3*/site-packages"))


def _distribution(name: str, site: Path, info: Path, *, main: bool) -> SourceTree:
    text = _read_bounded(info / "RECORD", _RECORD_BYTES)
    paths = (line.rsplit(",", 2)[0].strip('"') for line in text.splitlines())
    files = tuple(_regular(site, sorted({path for path in paths if path.endswith(".py")})))
    version = info.name.removesuffix(".dist-info").partition("-")[2]
    return SourceTree(name, version, site, files, main)


def _needs(info: Path) -> Iterator[str]:
    """Names of what a distribution needs without extras."""
    head = _read_bounded(info / "METADATA", _METADATA_BYTES).partition("\n\n")[0]
    for line in re.findall(r"(?m)^Requires-Dist:[ \t]*(.{1,500})$", head):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None or "extra" not in str(requirement.marker):
            yield canonicalize_name(requirement.name)


def _clones(environment: Environment, packages: Sequence[str]) -> Iterator[SourceTree]:
    path = environment.variables.get("PYTHONPATH", "")
    roots = dict.fromkeys(Path(root) for root in path.split(":") if root and Path(root).is_dir())
    for root in roots:
        if not roots.keys().isdisjoint(root.parents):
            continue
        files = tuple(_regular(root, sorted(_walk(root))))
        yield SourceTree(
            packages[0] if packages else root.name,
            environment.commit[:12],
            root,
            files,
            main=True,
            origin="clone",
        )


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(
            name for name in folders if name not in _SKIPPED and not name.endswith(".egg-info")
        )
        below = Path(folder).relative_to(root)
        yield from ((below / name).as_posix() for name in names if name.endswith(".py"))


def _regular(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Plain files below the root that are not too large: no links out of it, no pipes."""
    safe: dict[str, bool] = {}
    whole = root.resolve()
    for path in paths:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or "\0" in path or not path.isprintable():
            continue
        folder = str(pure.parent)
        if folder not in safe:
            safe[folder] = (root / folder).resolve().is_relative_to(whole)
        try:
            status = os.lstat(root / path)
        except (OSError, ValueError):
            continue
        if safe[folder] and stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES:
            yield path, status.st_size


def _read_bounded(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


# The index of one source tree: an SQLite file with the segments of its files and their words. The
# texts stay where they are.

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
_RANK_SEGMENTS = """select rowid, bm25(words, ?, ?, ?, ?) as score from words
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
    digest = hashlib.sha256(index.FORMAT.encode())
    for path, data in _sources(cache, tree):
        digest.update(f"\0{path}\0{hashlib.sha256(data).hexdigest()}".encode())
    return cache.folder(FOLDER) / f"{digest.hexdigest()[:40]}.sqlite"


def rows(path: str, data: bytes) -> list[Row]:
    """What is kept of one source: kind, name, lines, part, simple name and words per segment."""
    return [
        (*segment[1:], "" if segment.kind == "module" else segment.simple_name, *words)
        for segment, words in index.rows(path, index.decode(data))
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
            segments = [(next(numbers), row) for row in rows(path, data)]
            base.executemany(_ADD_SEGMENT, [(number, file, *row[:6]) for number, row in segments])
            base.executemany(_ADD_WORDS, [(number, *row[6:]) for number, row in segments])
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
        return self._base.execute(_RANK_SEGMENTS, (*index.WEIGHTS, query, limit)).fetchall()

    def matching(self, query: str, limit: int) -> list[Segment]:
        """The first segments that match a full-text query."""
        select = (
            "segment.id in (select rowid from words where words match ? order by rowid limit ?)"
        )
        return self._select(f"{select} order by segment.id", query, limit)

    def _select(self, where: str, *values: str | int) -> list[Segment]:
        return [Segment(*row) for row in self._base.execute(_SEGMENTS + where, values)]
