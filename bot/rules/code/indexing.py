"""What of a source goes into an index: a row a piece, its words in columns of falling weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bot.rules.code.outline import Piece, normal, outline, split
from bot.rules.code.words import identifiers, index_words

FORMAT = "1"
"""Changes when equal sources give other rows than before."""

WEIGHTS = (8.0, 3.0, 3.0, 1.0)
"""How much a word counts in the name, the module, the head (signature and docstring), and anywhere."""

_HEAD_LINES = 60
_MOST_WORDS = 3_000


class Row(NamedTuple):
    """A piece and its words: name, module, head, all."""

    piece: Piece
    columns: tuple[str, str, str, str]


def read(data: bytes) -> str:
    """The text of a file, with plain line ends; what is no UTF-8 is replaced, and NUL bytes with it."""
    return normal(data.decode("utf-8", "replace").removeprefix("\ufeff"))


def rows(path: str, text: str) -> Iterator[Row]:
    """One row a piece, in order."""
    lines = split(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    module = index_words(dict.fromkeys(identifiers(path.removesuffix(".py"))))
    for piece in outline(lines):
        begin, end = starts[piece.start - 1], starts[piece.end]
        names = index_words(dict.fromkeys(identifiers(piece.name)))
        head = ""
        if piece.kind != "module" and piece.part == 0:
            head = index_words(set(identifiers(text, begin, starts[_head(lines, piece)])))
        # Sets keep the index small and the ranking steady; sorting them is not needed, as no column keeps positions.
        held = set(identifiers(text, begin, end))
        if len(held) > _MOST_WORDS:
            held = set(sorted(held)[:_MOST_WORDS])
        yield Row(piece, (names, module, head, index_words(held)))


def defines(piece: Piece, last: str) -> bool:
    """Whether a piece is the beginning of a definition of that simple name."""
    return piece.part == 0 and piece.kind != "module" and piece.name.rpartition(".")[2] == last


def _head(lines: list[str], piece: Piece) -> int:
    """The last line of signature and docstring, judged by the lines alone."""
    last = min(piece.end, piece.start + _HEAD_LINES)
    at = next((number for number in range(piece.start, last + 1) if lines[number - 1].rstrip().endswith(":")), piece.start)
    opening = lines[at].lstrip().lstrip("rRuUbB") if at < last else ""
    quote = opening[:3] if opening[:3] in {'"""', "'''"} else ""
    if not quote:
        return at
    if quote in opening[3:]:
        return at + 1
    return next((number for number in range(at + 2, last + 1) if quote in lines[number - 1]), last)
