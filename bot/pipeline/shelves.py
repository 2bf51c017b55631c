"""Source code as a prompt shows it: numbered lines, each piece with its origin and why it was taken."""

from __future__ import annotations

from collections.abc import Iterable

from bot.models.context import Chunk, Context
from bot.models.plan import Read, Search
from bot.ports import Shelf
from prompts import fence

_MOST_LINES = 160
_MOST_LINE = 300
_HITS = 5
_WIDE = 30
_HIT_LINES = 50


def contexts(ranked: Iterable[Context]) -> str:
    """The contexts in their order."""
    shown = []
    for context in ranked:
        pieces = "\n\n".join(chunk(each) for each in context.chunks)
        shown.append(f"Context {context.rank}: {context.title}\n\n{pieces}")
    return "\n\n".join(shown) or "none at hand"


def chunk(piece: Chunk, most: int = _MOST_LINES) -> str:
    """One piece with line numbers, inside the fence."""
    lines = piece.text.splitlines()
    shown = [f"{piece.start + at:5d}  {line[:_MOST_LINE]}" for at, line in enumerate(lines[:most])]
    if len(lines) > most:
        shown.append(f"       [{len(lines) - most} more lines]")
    what = f"{piece.path} lines {piece.start} to {piece.end}" + (
        f", {piece.package} {piece.version}".rstrip() if piece.package else ""
    )
    why = f" ({'; '.join(piece.why[:3])})" if piece.why else ""
    return fence(f"{piece.origin} source, {what}{why}", "\n".join(shown))


def look_up(shelf: Shelf | None, wish: Search | Read) -> str:
    """The answer to one look into the sources."""
    if shelf is None:
        return "There are no sources to look into."
    if isinstance(wish, Read):
        end = min(max(wish.end, wish.start), wish.start + _MOST_LINES - 1)
        found = shelf.read(wish.path.lstrip("/"), wish.start, end)
        if found is None:
            return f"There is no file {wish.path[:200]!r} among the sources."
        return chunk(found) + (f"\n(cut; go on at line {found.end + 1})" if found.end < wish.end else "")
    hits = _literal(wish.query, _unique([*shelf.symbol(wish.query, 3), *shelf.search(wish.query, _WIDE)]))[:_HITS]
    return "\n\n".join(chunk(each, _HIT_LINES) for each in hits) or f"Nothing was found for {wish.query[:200]!r}."


def _literal(query: str, pieces: list[Chunk]) -> list[Chunk]:
    """Pieces that hold what was asked for as it was written; where any does, the others are noise."""
    words = query.split()
    held = [piece for piece in pieces if all(word in piece.text for word in words)]
    return held or pieces


def _unique(pieces: Iterable[Chunk]) -> list[Chunk]:
    known: dict[tuple[str, int], Chunk] = {}
    for piece in pieces:
        known.setdefault((piece.path, piece.start), piece)
    return list(known.values())
