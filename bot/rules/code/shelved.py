"""A shelf over any store of sources: the store finds words and names, everything else is worked out here and alike for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from bot.models.context import Chunk, Origin
from bot.rules.code import edges, links, loops, symbols, syntax
from bot.rules.code.outline import Piece, split
from bot.rules.code.symbols import Place, Sources
from bot.rules.code.words import query_words

_LEAD = 0.6
_CANDIDATES = 60
_CALLERS = 1_600
_READ_LINES = 2_000
_WIDEST = 200
_ASIDE = frozenset({"tests", "test", "testing", "_internal", "_vendor", "vendor", "benchmarks", "examples"})


class Source(NamedTuple):
    """Where a file comes from. `main` when its package was asked for, and is no mere dependency."""

    origin: Origin
    package: str
    version: str
    main: bool


class Store(Sources, Protocol):
    """What a shelf stands on. All answers are in one fixed order."""

    def paths(self) -> Sequence[str]:
        """Every path, sorted."""
        ...

    def source(self, path: str) -> Source:
        """Where a file comes from."""
        ...

    def ranked(self, words: Sequence[str], limit: int) -> Sequence[tuple[Place, float]]:
        """Pieces that hold any of the words with how well they do (higher is better), best first."""
        ...

    def holding(self, words: Sequence[str], limit: int) -> Sequence[Place]:
        """Pieces that hold all of the words, by path and line."""
        ...


class StoreShelf:
    """A shelf over a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._loops: dict[Place, float] | None = None
        self._asked: tuple[str, ...] | None = None

    def search(self, query: str, limit: int = 10) -> tuple[Chunk, ...]:
        """Best first; what only serves tests or belongs to a dependency is ranked lower."""
        words = query_words(query)
        if not words:
            return ()
        weighed = [(score * self._weight(place.path), place) for place, score in self.store.ranked(words, limit * 3)]
        weighed.sort(key=lambda each: (-round(each[0], 6), each[1].path, each[1].piece.start))
        return self._chunks((place for _, place in weighed), limit, {place: score for score, place in weighed})

    def symbol(self, name: str, limit: int = 5) -> tuple[Chunk, ...]:
        """What the name resolves to, then what has it for an ending."""
        plain = name.strip().strip(".").removesuffix("()")
        parts = plain.split(".")
        if not plain or len(plain) > 300 or not all(part.isidentifier() for part in parts):
            return ()
        found = symbols.lookup(self.store, plain, limit, self._main())
        if not found and len(parts) > 1:
            found = symbols.lookup(self.store, ".".join(parts[1:]), limit, self._main())
        return self._chunks(found, limit)

    def read(self, path: str, start: int, end: int) -> Chunk | None:
        """At most 2,000 lines; a range that ends past the file is cut, one that begins there is None."""
        known = links.match(path, self.store.paths())
        if known is None:
            return None
        lines = self._lines(known)
        first, last = max(start, 1), min(end, len(lines), max(start, 1) + _READ_LINES - 1)
        if first > last:
            return None
        return self._made(known, first, last, lines)

    def around(self, path: str, line: int) -> Chunk | None:
        """The whole definition where it is short enough to be shown, else the part of it that holds the line."""
        known = links.match(path, self.store.paths())
        pieces = self.store.pieces(known) if known is not None else ()
        piece = next((each for each in pieces if each.start <= line <= each.end), None)
        if known is None or piece is None:
            return None
        return self._chunk(Place(known, _whole(pieces, piece)))

    def callers(self, chunk: Chunk, limit: int = 5) -> tuple[Chunk, ...]:
        """Callers within the same package before others, what serves tests after them."""
        place = self._place(chunk)
        if place is None or not place.piece.name:
            return ()
        name = edges.callable_name(place)
        home = place.path.partition("/")[0]
        held = sorted(self.store.holding((name.lower(),), _CALLERS), key=lambda each: (
            each.path.partition("/")[0] != home, -self._weight(each.path), each.path != place.path, each.path,
            each.piece.start))  # fmt: skip
        texts = ((each, self._text(each)) for each in held[: _CALLERS // 2])
        calling = [(each, text) for each, text in texts if f"{name}(" in text]
        return self._chunks(edges.callers(self.store, place, calling[:_CANDIDATES]), limit)

    def callees(self, chunk: Chunk, limit: int = 5) -> tuple[Chunk, ...]:
        """Only what is defined on this shelf."""
        place = self._place(chunk)
        if place is None:
            return ()
        return self._chunks(edges.callees(self.store, place, chunk.text), limit)

    def loops(self, limit: int = 5) -> tuple[Chunk, ...]:
        """Pieces with the words of an idiom, judged by their syntax."""
        if self._loops is None:
            self._loops = {}
            for words in loops.CANDIDATES:
                for place in self.store.holding(words, _CANDIDATES):
                    if place not in self._loops:
                        self._loops[place] = self._loop(place) * self._weight(place.path)
        found = self._loops
        best = sorted((each for each in found if found[each] > 0), key=lambda each: (-found[each], each.path, each.piece.start))
        chunks = self._chunks(best, limit, found)
        return tuple(chunk.model_copy(update={"kind": "loop"}) for chunk in chunks)

    def files(self, prefix: str = "") -> tuple[str, ...]:
        """The paths that begin with `prefix`, sorted."""
        return tuple(path for path in self.store.paths() if path.startswith(prefix))

    def _loop(self, place: Place) -> float:
        tree = syntax.tree_of_piece(self._text(self._class_of(place)))
        judged = loops.loops(tree) if tree is not None else ()
        return judged[0].score if judged else 0.0

    def _class_of(self, place: Place) -> Place:
        """For a step method its whole class: the idiom is spread over it."""
        if place.piece.kind != "method" or not place.piece.name.endswith(".training_step"):
            return place
        owner = place.piece.name.rpartition(".")[0]
        own = [each for each in self.store.pieces(place.path) if each.name == owner or each.name.startswith(f"{owner}.")]
        return Place(place.path, Piece("class", owner, own[0].start, own[-1].end)) if own else place

    def _weight(self, path: str) -> float:
        parts = path.split("/")
        aside = any(part in _ASIDE or part.startswith("test_") for part in parts)
        return (1.0 if self.store.source(path).main else _LEAD) * (_LEAD if aside else 1.0)

    def _main(self) -> tuple[str, ...]:
        if self._asked is None:
            main = (path for path in self.store.paths() if self.store.source(path).main)
            self._asked = tuple(dict.fromkeys(path.removeprefix("src/").partition("/")[0].removesuffix(".py") for path in main))
        return self._asked

    def _place(self, chunk: Chunk) -> Place | None:
        pieces = self.store.pieces(chunk.path)
        inside = [each for each in pieces if each.start <= chunk.start <= each.end]
        return Place(chunk.path, inside[0]) if inside else None

    def _chunks(self, places: Iterable[Place], limit: int, scores: dict[Place, float] | None = None) -> tuple[Chunk, ...]:
        made: list[Chunk] = []
        for place in places:
            if len(made) >= limit:
                break
            chunk = self._chunk(place)
            if chunk is not None:
                made.append(chunk.model_copy(update={"score": round(scores[place], 6)}) if scores else chunk)
        return tuple(made)

    def _chunk(self, place: Place) -> Chunk | None:
        lines, piece = self._lines(place.path), place.piece
        end = min(piece.end, len(lines))
        while end > piece.start and not lines[end - 1].strip():
            end -= 1
        made = self._made(place.path, piece.start, end, lines) if end >= piece.start else None
        return made and made.model_copy(update={"kind": piece.kind, "name": place.dotted})

    def _made(self, path: str, start: int, end: int, lines: Sequence[str]) -> Chunk:
        source = self.store.source(path)
        return Chunk(path=path, start=start, end=end, text="\n".join(lines[start - 1 : end]), origin=source.origin,
                     package=source.package, version=source.version)  # fmt: skip

    def _lines(self, path: str) -> Sequence[str]:
        return split(self.store.text(path) or "")

    def _text(self, place: Place) -> str:
        return "\n".join(self._lines(place.path)[place.piece.start - 1 : place.piece.end])


def _whole(pieces: Sequence[Piece], piece: Piece) -> Piece:
    """The definition that a part belongs to, when it is not too long to be shown."""
    if piece.kind in {"module", "class"}:
        return piece
    at = pieces.index(piece)
    first = next((index for index in range(at, -1, -1) if pieces[index].part == 0), at)
    last = at
    while last + 1 < len(pieces) and pieces[last + 1].name == piece.name and pieces[last + 1].part > 0:
        last += 1
    same = all(each.name == piece.name for each in pieces[first : last + 1])
    if not same or pieces[last].end - pieces[first].start >= _WIDEST:
        return piece
    return piece._replace(start=pieces[first].start, end=pieces[last].end, part=0)
