"""Edits of a program as values: pieces of text to replace, put together so that the result is always valid Python."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.rules.mends.edits import lines

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Piece:
    """One span of a file and its new text. A deleted statement names its `block` (any label that is one a block) and how many
    statements that has, so that a block that loses all of them gets a `pass`.
    """

    path: str
    start: int
    end: int
    new: str = ""
    block: str = ""
    size: int = 0
    filler: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Pieces that belong together, and files to drop. Positions are those of the text the edit was made from. A `bold` one puts
    other values in the place of those that the program computed, and is left alone where the failure is a value.
    """

    what: str
    pieces: tuple[Piece, ...] = ()
    drops: tuple[str, ...] = ()
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """An edit, and the smaller ones within its span to try when it cannot be made."""

    edit: Edit
    children: tuple[tuple[Node, ...], ...] = ()


def applied(files: Files, edits: Iterable[Edit]) -> dict[str, str] | None:
    """The files with the edits made; of overlapping pieces the outer one holds. None when that is no valid Python or no
    change.
    """
    chosen = list(edits)
    drops = {path for edit in chosen for path in edit.drops}
    pieces: dict[str, set[Piece]] = {}
    for edit in chosen:
        for piece in edit.pieces:
            if piece.path not in drops:
                pieces.setdefault(piece.path, set()).add(piece)
    result = {path: text for path, text in files.items() if path not in drops}
    for path, found in pieces.items():
        text = _replaced(files[path], found)
        if text != files[path] and not valid(path, text):
            return None
        result[path] = text
    return None if result == files else result


def _replaced(text: str, pieces: set[Piece]) -> str:
    kept, limit = list[Piece](), -1
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.end, piece.new)):
        if piece.start >= limit:
            kept.append(piece)
            limit = piece.end
    gone = Counter(piece.block for piece in kept if piece.block)
    filled = set[str]()
    result, at = list[str](), 0
    for piece in kept:
        new = piece.new
        if piece.block and piece.filler and gone[piece.block] == piece.size and piece.block not in filled:
            filled.add(piece.block)
            new = piece.filler
        result += [text[at : piece.start], new]
        at = piece.end
    return "".join([*result, text[at:]])


def valid(path: str, text: str) -> bool:
    """Whether a file is Python that compiles (files that are not Python always are)."""
    if not path.endswith(".py"):
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def parsed(text: str) -> ast.Module | None:
    """The tree of a file, None when it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def programs(files: Files) -> list[tuple[str, str, ast.Module]]:
    """The Python files with their trees, those that can be read, in order."""
    trees = ((path, text, parsed(text)) for path, text in sorted(files.items()) if path.endswith(".py"))
    return [(path, text, tree) for path, text, tree in trees if tree is not None]


def size(files: Files) -> tuple[int, int]:
    """How large a program is: lines with something on them, then characters."""
    found = [line.strip() for text in files.values() for line in lines(text) if line.strip()]
    return len(found), sum(map(len, found))
