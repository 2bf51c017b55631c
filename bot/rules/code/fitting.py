"""Fits chunks into a number of lines: bodies go before whole chunks, what bears least on the report goes first."""

from __future__ import annotations

from collections.abc import Sequence

from bot.models.context import Chunk
from bot.rules.code.heads import cut, trimmed

_SHORTEST = 12


def size(chunks: Sequence[Chunk]) -> int:
    """Lines in all."""
    return sum(chunk.end - chunk.start + 1 for chunk in chunks)


def fitted(chunks: Sequence[Chunk], lines: int) -> tuple[Chunk, ...]:
    """The chunks, given most important first, in at most so many lines."""
    kept = list(chunks)
    for at in range(len(kept) - 1, 0, -1):
        if size(kept) <= lines:
            return tuple(kept)
        kept[at] = trimmed(kept[at])
    while len(kept) > 1 and size(kept) > lines and size(kept[:1]) + _SHORTEST < lines:
        kept.pop()
    if size(kept) > lines:
        rest = size(kept[1:])
        kept[0] = cut(kept[0], max(lines - rest, min(lines, _SHORTEST)))
        while len(kept) > 1 and size(kept) > lines:
            kept.pop()
    return tuple(kept)


def merged(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """The chunks without those that lie within others; their reasons are kept."""
    kept: list[Chunk] = []
    for chunk in chunks:
        at = next((i for i, each in enumerate(kept) if _within(chunk, each) or _within(each, chunk)), None)
        if at is None:
            kept.append(chunk)
            continue
        other = kept[at]
        wide = other if _within(chunk, other) else chunk
        why = tuple(dict.fromkeys((*other.why, *chunk.why)))
        kept[at] = wide.model_copy(update={"why": why, "score": max(other.score, chunk.score)})
    return tuple(kept)


def _within(inner: Chunk, outer: Chunk) -> bool:
    return (inner.path, inner.origin) == (outer.path, outer.origin) and outer.start <= inner.start and inner.end <= outer.end
