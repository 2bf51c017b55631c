"""What the index of sources costs, and whether the file that matters is among the first: `python
-m benchmarks context`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.runner import Case
from benchmarks.scoring import touched
from bot.environment import package_names, specify
from bot.environment.builder import UvBuilder
from bot.issues.reading import issue as reading_issue
from bot.issues.search import contexts
from bot.kernel.bug import BugReport, Issue
from bot.kernel.environment import Environment
from bot.kernel.errors import RepriseError, UserError
from bot.kernel.job import EnvironmentOptions
from bot.kernel.ports import SourceIndex
from bot.kernel.source import database, database as source_database, outline
from bot.kernel.source.indexer import SqliteIndexer
from bot.kernel.values import Record

_FIRST = 10
_QUERIES = 200


class Indexed(Record):
    """The figures of one tree. `ratio` is the time to index over the time to read every file
    once.
    """

    files: int
    megabytes: float
    pieces: int
    build_s: float
    warm_s: float
    read_s: float
    ratio: float
    index_megabytes: float
    queries: int
    query_ms_median: float
    query_ms_p95: float
    query_ms_most: float


class Place(Record):
    """Where the files that matter stand for one case; 0 when none of them is found. `named` when
    the report names one.
    """

    id: str
    wanted: tuple[str, ...]
    named: bool
    rank: int
    shown: bool
    seconds: float
    lines: int
    first: tuple[str, ...] = ()
    error: str = ""

    @property
    def found(self) -> bool:
        """Whether one of them is among the first ten."""
        return 0 < self.rank <= _FIRST


def indexed(tree: Path, packages: Sequence[str], *, queries: int = _QUERIES) -> Indexed:
    """Index a tree (the root of an environment) from nothing, and ask it."""
    surroundings = Environment(id="tree", python="", interpreter="", mounts=(str(tree.absolute()),))
    held = source_database.find(surroundings, packages)
    files = [(each.root, path) for each in held for path, _ in each.files]
    if not files:
        raise UserError(
            f"{tree} holds none of {', '.join(packages)}.",
            "Name the root of an environment, and --packages.",
        )
    read_s = _seconds_to_read(files)
    with tempfile.TemporaryDirectory(prefix="reprise-index-") as folder:
        library = SqliteIndexer(Path(folder))
        started = time.perf_counter()
        index = library.open(surroundings, tuple(packages))
        build_s = time.perf_counter() - started
        started = time.perf_counter()
        library.open(surroundings, tuple(packages))
        warm_s = time.perf_counter() - started
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        asked = list(_asked(index, queries))
        times = [_timed(index, query) for query in asked]
        pieces = sum(len(index.store.segments(path)) for path in index.files())
    return Indexed(
        files=len(files),
        megabytes=sum(size for each in held for _, size in each.files) / 1e6,
        pieces=pieces,
        build_s=build_s,
        warm_s=warm_s,
        read_s=read_s,
        ratio=build_s / read_s,
        index_megabytes=size / 1e6,
        queries=len(times),
        query_ms_median=median(times),
        query_ms_p95=sorted(times)[int(len(times) * 0.95)],
        query_ms_most=max(times),
    )


def placed(
    case: Case,
    issue: Issue,
    builder: UvBuilder,
    library: SqliteIndexer,
    answers: Path | None = None,
) -> Place:
    """Build the environment of a case, rank its files, and only then look at what the key says."""
    bug, began = reading_issue.read_issue(issue), time.perf_counter()
    try:
        source = "\n\n".join(fence.text for fence in bug.programs)
        built = builder.build(specify.specify(bug, issue, EnvironmentOptions(), source))
        index = library.open(built, (package_names.distribution_of(issue.repository)[0],))
    except RepriseError as error:
        return Place(
            id=case.id,
            wanted=(),
            named=False,
            rank=0,
            shown=False,
            seconds=0.0,
            lines=0,
            error=str(error)[:200],
        )
    began = time.perf_counter()
    pieces = contexts.ranking(bug, issue, index)
    ranked = tuple(path for path, _ in contexts.by_module(pieces))
    made = contexts.contexts(bug, issue, index)
    seconds = time.perf_counter() - began
    wanted = touched(case.bench, case.id, answers)
    rank = next((place for place, path in enumerate(ranked, 1) if path in wanted), 0)
    shown = {chunk.path for each in made for chunk in each.chunks}
    return Place(
        id=case.id,
        wanted=wanted,
        named=_named(issue, bug, wanted),
        rank=rank,
        shown=not shown.isdisjoint(wanted),
        seconds=seconds,
        lines=sum(outline.size(each.chunks) for each in made),
        first=ranked[:3],
    )


def told(figures: Indexed) -> str:
    """The figures as lines."""
    return "\n".join(
        (
            f"{figures.files} files, {figures.megabytes:.0f} MB, {figures.pieces} pieces",
            (
                f"indexed in {figures.build_s:.1f} s ({figures.ratio:.0f} times reading them "
                "once), opened again in"
                f" {figures.warm_s:.2f} s"
            ),
            f"{figures.index_megabytes:.0f} MB on disk",
            (
                f"{figures.queries} queries: median {figures.query_ms_median:.1f} ms, 95th "
                "percentile"
                f" {figures.query_ms_p95:.1f} ms, longest {figures.query_ms_most:.1f} ms"
            ),
        )
    )


def told_places(places: Sequence[Place]) -> str:
    """A line a case, and how many have the file among the first ten."""
    lines = [
        f"{each.id}  {each.error or (f'rank {each.rank}' if each.rank else 'not found')}"
        f"{', shown' if each.shown else ''}{', named in the report' if each.named else ''}  "
        f"{each.seconds:.1f} s"
        f"  {each.lines} lines  {' '.join(each.wanted) or 'no file known'}"
        for each in places
    ]
    for words, some in (("that name it", True), ("that do not name it", False)):
        counted = [each for each in places if each.wanted and each.named is some]
        lines.append(
            f"among the first ten: {sum(each.found for each in counted)} of {len(counted)} "
            f"reports {words};"
            f" shown: {sum(each.shown for each in counted)}"
        )
    return "\n".join(lines)


def _named(issue: Issue, bug: BugReport, wanted: Sequence[str]) -> bool:
    """Whether the report itself says which file: in a path, a link, or a frame of a traceback."""
    frames = {frame.module_path for each in bug.tracebacks for frame in each.frames}
    return any(path in frames or "/".join(path.split("/")[-2:]) in issue.body for path in wanted)


def _seconds_to_read(files: Sequence[tuple[Path, str]]) -> float:
    times = []
    for _ in range(2):
        started = time.perf_counter()
        for root, path in files:
            database.content(root, path)
        times.append(time.perf_counter() - started)
    return min(times)


def _asked(index: SourceIndex, count: int) -> Iterator[str]:
    """Queries as reports make them: words of docstrings and names, from pieces spread over the
    whole tree.
    """
    files = index.files()
    step = max(1, len(files) // count)
    for path in files[::step][:count]:
        piece = index.read(path, 1, 400)
        words = [
            word
            for word in (piece.text if piece else "").split()
            if word.isidentifier() and len(word) > 3
        ]
        yield " ".join(dict.fromkeys(words[len(words) // 3 :][:12])) or path


def _timed(index: SourceIndex, query: str) -> float:
    started = time.perf_counter()
    index.search(query)
    return (time.perf_counter() - started) * 1e3
