"""Fits chunks into a number of lines: bodies go before whole chunks, what bears least on the
report goes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.models.context import Chunk
from bot.rules.code.headers import cut, trimmed

_SHORTEST = 12


def size(chunks: Sequence[Chunk]) -> int:
    """Lines in all."""
    return sum(chunk.end - chunk.start + 1 for chunk in chunks)


def fitted(chunks: Sequence[Chunk], lines: int) -> tuple[Chunk, ...]:
    """The chunks, given most important first, in at most so many lines: heads of as many as fit,
    then bodies in order.
    """
    kept: list[Chunk] = []
    left = lines
    for chunk in chunks:
        head = trimmed(chunk) if kept or size([chunk]) > left else cut(trimmed(chunk), left)
        if size([head]) <= left or not kept:
            kept.append(cut(head, max(left, 1)))
            left -= size(kept[-1:])
    whole = {(chunk.path, chunk.start): chunk for chunk in chunks}
    for at, head in enumerate(kept):
        full = whole[head.path, head.start]
        more = size([full]) - size([head])
        if more > left and left >= _SHORTEST:
            full = cut(full, size([head]) + left)
            more = left
        if more <= left:
            kept[at] = full
            left -= more
    return tuple(kept)


def merged(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """The chunks without those that lie within others; their reasons are kept."""
    kept: list[Chunk] = []
    for chunk in chunks:
        at = next(
            (i for i, each in enumerate(kept) if _within(chunk, each) or _within(each, chunk)), None
        )
        if at is None:
            kept.append(chunk)
            continue
        other = kept[at]
        wide = other if _within(chunk, other) else chunk
        why = tuple(dict.fromkeys((*other.why, *chunk.why)))
        kept[at] = wide.model_copy(update={"why": why, "score": max(other.score, chunk.score)})
    return tuple(kept)


def _within(inner: Chunk, outer: Chunk) -> bool:
    return (
        (inner.path, inner.origin) == (outer.path, outer.origin)
        and outer.start <= inner.start
        and inner.end <= outer.end
    )
