"""A source index over any store of segments: the store finds words and names; ranking, symbols and
calls are worked out here, alike for all stores.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple, Protocol

from bot.models.environment import Chunk, Origin
from bot.rules.code import call_graph, literal, loops, pointers, symbols, syntax
from bot.rules.code.indexing import query_words
from bot.rules.code.outline import Segment
from bot.rules.code.symbols import DefinitionStore

_LOWER = 0.6
_CANDIDATES = 60
_CALLERS = 1_600
_READ_LINES = 2_000
_HELD = 400
_SHOWN_WHOLE = 600
_SECONDARY = frozenset(
    {"tests", "test", "testing", "_internal", "_vendor", "vendor", "benchmarks", "examples"}
)


class Provenance(NamedTuple):
    """Where a file comes from. `main` when its package was asked for, and is no mere dependency."""

    origin: Origin
    package: str
    version: str
    main: bool


class SegmentStore(DefinitionStore, Protocol):
    """The files and segments that an index is built on. All answers are in one fixed order."""

    def paths(self) -> Sequence[str]:
        """Every path, sorted."""

    def provenance(self, path: str) -> Provenance:
        """Where a file comes from."""

    def ranked(self, words: Sequence[str], limit: int) -> Sequence[tuple[Segment, float]]:
        """Segments that contain any of the words, with scores (higher is better), best first."""

    def containing(self, words: Sequence[str], limit: int) -> Sequence[Segment]:
        """Segments that contain all of the words, by path and line."""


class SegmentIndex:
    """A SourceIndex over a store."""

    def __init__(self, store: SegmentStore) -> None:
        self.store = store

    def search(self, query: str, limit: int = 10) -> tuple[Chunk, ...]:
        """Best first; tests and dependencies are ranked lower."""
        words = query_words(query)
        ranked = self.store.ranked(words, limit * 3) if words else ()
        scores = {found: score * self._weight(found.path) for found, score in ranked}
        best = sorted(scores, key=lambda found: (-round(scores[found], 6), found.path, found.start))
        return self._chunks(best, limit, scores)

    def symbol(self, name: str, limit: int = 5) -> tuple[Chunk, ...]:
        """What the name resolves to, then what ends with it."""
        plain = name.strip().strip(".").removesuffix("()")
        rest = plain.partition(".")[2]
        if len(plain) > 300 or not all(part.isidentifier() for part in plain.split(".")):
            return ()
        found = (symbols.lookup(self.store, one, limit, self._main) for one in (plain, rest) if one)
        return self._chunks(map(self._whole, next(filter(None, found), ())), limit)

    def literal(self, text: str, limit: int = 5) -> tuple[Chunk, ...]:
        """The main packages first, tests last."""
        words = literal.words(text)
        found = self.store.containing(words, _CALLERS) if words else ()
        ordered = sorted(found, key=lambda segment: -self._weight(segment.path))[:_HELD]
        pattern = literal.pattern(text)
        hits = ((segment, pattern.search(self._text(segment))) for segment in ordered)
        lines = {
            self._whole(segment): segment.start + hit.string.count("\n", 0, hit.start())
            for segment, hit in islice(((at, hit) for at, hit in hits if hit), limit)
        }
        chunks = ((self._chunk(segment), line) for segment, line in lines.items())
        return tuple(
            each.model_copy(update={"focus": line, "score": self._weight(each.path)})
            for each, line in chunks
            if each
        )

    def read(self, path: str, start: int, end: int) -> Chunk | None:
        """At most 2,000 lines. A range that ends past the file is cut, one that begins there is
        None.
        """
        known = pointers.installed(path, self.store.paths())
        if known is None:
            return None
        first = max(start, 1)
        return self._lines_of(known, first, min(end, first + _READ_LINES - 1))

    def around(self, path: str, line: int) -> Chunk | None:
        """The whole definition where it is short enough to be shown, else the part of it with the
        line.
        """
        known = pointers.installed(path, self.store.paths())
        found = self._segment(known, line) if known is not None else None
        chunk = self._chunk(self._whole(found)) if found is not None else None
        return chunk and chunk.model_copy(update={"focus": line})

    def callers(self, chunk: Chunk, limit: int = 5) -> tuple[Chunk, ...]:
        """Callers within the same package before others, tests after them."""
        target = self._segment(chunk.path, chunk.start)
        if target is None or not target.name:
            return ()
        name = call_graph.callable_name(target)
        package = target.path.partition("/")[0]
        found = self.store.containing((name.lower(),), _CALLERS)
        ordered = sorted(found, key=lambda segment: (
            segment.path.partition("/")[0] != package, -self._weight(segment.path),
            segment.path != target.path, segment.path, segment.start))  # fmt: skip
        texts = ((segment, self._text(segment)) for segment in ordered[: _CALLERS // 2])
        calling = [(segment, text) for segment, text in texts if f"{name}(" in text]
        return self._chunks(call_graph.callers(self.store, target, calling[:_CANDIDATES]), limit)

    def callees(self, chunk: Chunk, limit: int = 5) -> tuple[Chunk, ...]:
        """Only what is defined in these sources."""
        caller = self._segment(chunk.path, chunk.start)
        found = call_graph.callees(self.store, caller, chunk.text) if caller is not None else ()
        return self._chunks(found, limit)

    def loops(self, limit: int = 5) -> tuple[Chunk, ...]:
        """Segments with the words of an idiom, judged by their syntax."""
        scores = self._loop_scores
        complete = (segment for segment in scores if scores[segment] > 0)
        best = sorted(complete, key=lambda found: (-scores[found], found.path, found.start))
        chunks = self._chunks(best, limit, scores)
        return tuple(chunk.model_copy(update={"kind": "loop"}) for chunk in chunks)

    def files(self, prefix: str = "") -> tuple[str, ...]:
        """The paths that begin with `prefix`, sorted."""
        return tuple(path for path in self.store.paths() if path.startswith(prefix))

    @cached_property
    def _loop_scores(self) -> dict[Segment, float]:
        words = loops.CANDIDATES
        found = dict.fromkeys(s for all_ in words for s in self.store.containing(all_, _CANDIDATES))
        return {segment: self._loop(segment) * self._weight(segment.path) for segment in found}

    def _loop(self, segment: Segment) -> float:
        tree = syntax.tree_of_lines(self._text(self._with_class(segment)))
        return loops.training_score(tree) if tree is not None else 0.0

    def _with_class(self, segment: Segment) -> Segment:
        """The whole class of a step method: the idiom is spread over it."""
        if segment.kind != "method" or not segment.name.endswith(".training_step"):
            return segment
        owner = segment.name.rpartition(".")[0]
        own = [s for s in self.store.segments(segment.path) if f"{s.name}.".startswith(f"{owner}.")]
        return own[0]._replace(end=own[-1].end) if own else segment

    def _weight(self, path: str) -> float:
        secondary = any(part in _SECONDARY or part.startswith("test_") for part in path.split("/"))
        main = self.store.provenance(path).main
        return (1.0 if main else _LOWER) * (_LOWER if secondary else 1.0)

    @cached_property
    def _main(self) -> tuple[str, ...]:
        """The top-level names of the packages that were asked for."""
        paths = (path for path in self.store.paths() if self.store.provenance(path).main)
        tops = (path.removeprefix("src/").partition("/")[0].removesuffix(".py") for path in paths)
        return tuple(dict.fromkeys(tops))

    def _segment(self, path: str, line: int) -> Segment | None:
        return next((s for s in self.store.segments(path) if s.start <= line <= s.end), None)

    def _chunks(
        self, segments: Iterable[Segment], limit: int, scores: Mapping[Segment, float] | None = None
    ) -> tuple[Chunk, ...]:
        made = (
            chunk.model_copy(update={"score": round(scores[segment], 6) if scores else 0.0})
            for segment in segments
            if (chunk := self._chunk(segment)) is not None
        )
        return tuple(islice(made, limit))

    def _chunk(self, segment: Segment) -> Chunk | None:
        text = self._text(segment).rstrip()
        chunk = self._lines_of(segment.path, segment.start, segment.start + text.count("\n"))
        return chunk and chunk.model_copy(update={"kind": segment.kind, "name": segment.dotted})

    def _lines_of(self, path: str, start: int, end: int) -> Chunk | None:
        text = self.store.text(path)
        lines = text.removesuffix("\n").split("\n")[start - 1 : end] if text else []
        origin, package, version, _ = self.store.provenance(path)
        return Chunk(
            path=path, start=start, end=start + len(lines) - 1, text="\n".join(lines),
            origin=origin, package=package, version=version,
        ) if lines else None  # fmt: skip

    def _text(self, segment: Segment) -> str:
        lines = (self.store.text(segment.path) or "").split("\n")
        return "\n".join(lines[segment.start - 1 : segment.end])

    def _whole(self, segment: Segment) -> Segment:
        """The definition that a part belongs to, when it is not too long to be shown."""
        if segment.kind in {"module", "class"}:
            return segment
        segments = self.store.segments(segment.path)
        first = last = segments.index(segment)
        while segments[first].part > 0 and segments[first - 1].name == segment.name:
            first -= 1
        while [s.name for s in segments[last + 1 : last + 2] if s.part > 0] == [segment.name]:
            last += 1
        if segments[first].part or segments[last].end - segments[first].start >= _SHOWN_WHOLE:
            return segment
        return segment._replace(start=segments[first].start, end=segments[last].end, part=0)
