"""The order of the reduction: files, definitions and statements first, then everything that is left, until nothing goes."""

from __future__ import annotations

from collections.abc import Callable

from bot.rules.reduce import constants, expressions, inline, statements, tidy
from bot.rules.reduce.edits import Edit, Files, Node

Groups = list[tuple[Node, ...]]


def coarse(files: Files, entry: str, *, careful: bool = False) -> Groups:
    """Comments, files, and the tree of statements."""
    others = tuple(Node(Edit(f"drop {path}", drops=(path,))) for path in sorted(files) if path != entry)
    return _groups([_nodes(tidy.comments(files), careful), others, *statements.nodes(files)])


def settle(files: Files, entry: str, *, careful: bool = False) -> Groups:
    """Names replaced by what they stand for, parameters and unused imports taken away, then statements again."""
    small = [*tidy.unused(files), *inline.edits(files, entry)]
    return _groups([*((node,) for node in _nodes(tuple(small), careful)), *statements.nodes(files)])


def fine(files: Files, entry: str, *, careful: bool = False) -> Groups:
    """Everything: statements, names, arguments, expressions, constants and sizes."""
    small = [*tidy.unused(files), *inline.edits(files, entry), *expressions.edits(files), *constants.edits(files)]
    rest = tuple((node,) for node in _nodes(tuple(small), careful))
    return _groups([*coarse(files, entry, careful=careful), *rest])


Pass = Callable[..., Groups]
FIRST: tuple[Pass, ...] = (coarse, settle)
"""Made once each, the large steps before the small ones; then `fine` until it finds nothing."""


def _nodes(edits: tuple[Edit, ...], careful: bool) -> tuple[Node, ...]:
    return tuple(Node(edit) for edit in dict.fromkeys(edits) if not (careful and edit.bold))


def _groups(groups: Groups) -> Groups:
    return [group for group in groups if group]
