"""Source code as a prompt shows it: numbered lines, each piece with its origin and why it was
taken.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.models.context import Chunk, Context
from bot.models.plan import ReadAction, SearchAction
from bot.ports import SourceIndex
from prompts import fence, shared

_MOST_LINES = 160
_MOST_LINE = 300
_HITS = 5
_WIDE = 30
_HIT_LINES = 50


def contexts(ranked: Iterable[Context]) -> str:
    """The contexts in their order."""
    shown = []
    for context in ranked:
        pieces = "\n\n".join(chunk(piece) for piece in context.chunks)
        heading = shared("context", rank=context.rank, title=context.title)
        shown.append(f"{heading}\n\n{pieces}")
    return "\n\n".join(shown) or shared("no_context")


def chunk(piece: Chunk, most: int = _MOST_LINES) -> str:
    """One piece with line numbers, inside the fence."""
    lines = piece.text.splitlines()
    shown = [f"{piece.start + at:5d}  {line[:_MOST_LINE]}" for at, line in enumerate(lines[:most])]
    if len(lines) > most:
        shown.append("       " + shared("more_lines", count=len(lines) - most))
    label = shared(
        "piece",
        origin=piece.origin,
        path=piece.path,
        start=piece.start,
        end=piece.end,
        package=f", {piece.package} {piece.version}".rstrip() if piece.package else "",
        reasons=f" ({'; '.join(piece.why[:3])})" if piece.why else "",
    )
    return fence(label, "\n".join(shown))


def look_up(sources: SourceIndex | None, wish: SearchAction | ReadAction) -> str:
    """The answer to one look into the sources."""
    if sources is None:
        return shared("no_sources")
    if isinstance(wish, ReadAction):
        end = min(max(wish.end, wish.start), wish.start + _MOST_LINES - 1)
        found = sources.read(wish.path.lstrip("/"), wish.start, end)
        if found is None:
            return shared("no_file", path=repr(wish.path[:200]))
        cut = found.end < wish.end
        return chunk(found) + ("\n" + shared("read_cut", line=found.end + 1) if cut else "")
    hits = _literal(
        wish.query, _unique([*sources.symbol(wish.query, 3), *sources.search(wish.query, _WIDE)])
    )[:_HITS]
    listed = "\n\n".join(chunk(hit, _HIT_LINES) for hit in hits)
    return listed or shared("not_found", query=repr(wish.query[:200]))


def _literal(query: str, pieces: list[Chunk]) -> list[Chunk]:
    """Pieces that hold what was asked for as it was written; where any does, the others are
    noise.
    """
    words = query.split()
    held = [piece for piece in pieces if all(word in piece.text for word in words)]
    return held or pieces


def _unique(pieces: Iterable[Chunk]) -> list[Chunk]:
    known: dict[tuple[str, int], Chunk] = {}
    for piece in pieces:
        known.setdefault((piece.path, piece.start), piece)
    return list(known.values())
