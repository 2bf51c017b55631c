"""An index over texts in memory, and an indexer that gives it. Words are weighted as in SQLite's
FTS5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event

from bot.kernel.environment import Environment, Origin
from bot.kernel.errors import Stopped
from bot.kernel.source import index
from bot.kernel.source.index import Provenance, SegmentIndex
from bot.kernel.source.outline import Segment


@dataclass
class _Memory:
    """The store: every piece with its words by column."""

    texts: Mapping[str, str]
    sources: Mapping[str, Provenance]
    rows: dict[Segment, tuple[frozenset[str], ...]] = field(default_factory=dict)
    mean: float = 1.0

    def __post_init__(self) -> None:
        for path in self.paths():
            for row in index.rows(path, self.texts[path]):
                self.rows[row.segment] = tuple(frozenset(column.split()) for column in row.columns)
        self.mean = sum(len(column) for columns in self.rows.values() for column in columns) / max(
            len(self.rows), 1
        )

    def paths(self) -> Sequence[str]:
        return sorted(self.texts)

    def text(self, path: str) -> str | None:
        return self.texts.get(path)

    def provenance(self, path: str) -> Provenance:
        return self.sources[path]

    def segments(self, path: str) -> Sequence[Segment]:
        return [segment for segment in self.rows if segment.path == path]

    def named(self, last: str) -> Sequence[Segment]:
        heads = (row for row in self.rows if row.part == 0 and row.kind != "module")
        return [segment for segment in heads if segment.simple_name == last]

    def containing(self, words: Sequence[str], limit: int) -> Sequence[Segment]:
        return [
            segment
            for segment, columns in self.rows.items()
            if all(word in columns[-1] for word in words)
        ][:limit]

    def ranked(self, words: Sequence[str], limit: int) -> Sequence[tuple[Segment, float]]:
        """As the real one does, the packages asked for and the others each among themselves, the
        best at 1.
        """
        spread = {word: self._rarity(word) for word in words}
        scored = [(segment, self._score(columns, spread)) for segment, columns in self.rows.items()]
        best = {True: 0.0, False: 0.0}
        for segment, score in scored:
            best[self.provenance(segment.path).main] = max(
                best[self.provenance(segment.path).main], score
            )
        found = [
            (segment, score / best[self.provenance(segment.path).main])
            for segment, score in scored
            if score > 0
        ]
        return sorted(found, key=lambda hit: (-hit[1], hit[0].path, hit[0].start))[:limit]

    def _rarity(self, word: str) -> float:
        held = sum(any(word in column for column in columns) for columns in self.rows.values())
        return max(math.log((len(self.rows) - held + 0.5) / (held + 0.5)), 1e-6)

    def _score(self, columns: tuple[frozenset[str], ...], spread: Mapping[str, float]) -> float:
        size = sum(map(len, columns))
        total = 0.0
        for word, rarity in spread.items():
            count = sum(
                weight
                for weight, column in zip(index.WEIGHTS, columns, strict=True)
                if word in column
            )
            total += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * size / self.mean))
        return total


class FakeSourceIndex(SegmentIndex):
    """Texts by path, all of the packages that were asked for unless `main` names some. Versions
    go by top-level name.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        *,
        main: Sequence[str] | None = None,
        versions: Mapping[str, str] | None = None,
        origin: Origin = "installed",
    ) -> None:
        tops = {
            path: path.removeprefix("src/").partition("/")[0].removesuffix(".py") for path in texts
        }
        known = versions or {}
        sources = {
            path: Provenance(origin, top, known.get(top, "1.0"), main is None or top in main)
            for path, top in tops.items()
        }
        super().__init__(
            _Memory({path: index.decode(text.encode()) for path, text in texts.items()}, sources)
        )


@dataclass
class FakeIndexer:
    """Gives one index for every environment; `asked` lists the environments and packages."""

    index: FakeSourceIndex
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def open(
        self, environment: Environment, packages: tuple[str, ...], *, cancel: Event | None = None
    ) -> FakeSourceIndex:
        """The index, whatever the environment."""
        if cancel is not None and cancel.is_set():
            raise Stopped("the index was cancelled")
        self.asked.append((environment.id, packages))
        return self.index
