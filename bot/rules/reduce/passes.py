"""The order of the reduction: files, definitions and statements first, then everything that is left, until nothing goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.rules.reduce import constants, dead, expressions, inline, loops, statements, synthetic, tidy
from bot.rules.reduce.edits import Edit, Files, Node

Groups = list[tuple[Node, ...]]


@dataclass(frozen=True, slots=True)
class About:
    """What the passes must know of the program: its entry, what its variables held, and whether values must stay."""

    entry: str
    seen: tuple[synthetic.Seen, ...] = ()
    careful: bool = False
    stack: dead.Stack = frozenset()


def early(files: Files, about: About) -> Groups:
    """Comments, data made up, and what the failure does not depend on then: most of a program goes here."""
    first = (*tidy.comments(files), *synthetic.edits(files, about.seen))
    sets = (*((edit,) for edit in first), *inline.plain(files, about.entry))
    return _groups([*(_nodes(each, about) for each in sets), dead.idle(files, about.stack)])


def coarse(files: Files, about: About) -> Groups:
    """Files, what the failure does not depend on, and the tree of statements."""
    others = tuple(Node(Edit(f"drop {path}", drops=(path,))) for path in sorted(files) if path != about.entry)
    return _groups([others, dead.idle(files, about.stack), *statements.nodes(files)])


def settle(files: Files, about: About) -> Groups:
    """Data made up, names replaced by what they stand for, parameters taken away; and statements again."""
    small = (*tidy.comments(files), *synthetic.edits(files, about.seen), *inline.edits(files, about.entry))
    return [*((node,) for node in (*_nodes(small, about), *_nodes(tidy.unused(files), about))), *coarse(files, about)]


def fine(files: Files, about: About) -> Groups:
    """Everything: statements, names, arguments, expressions, constants and sizes."""
    small = (*loops.edits(files), *expressions.edits(files), *constants.edits(files))
    return [*settle(files, about), *((node,) for node in _nodes(small, about))]


Pass = Callable[[Files, About], Groups]


def _nodes(edits: tuple[Edit, ...], about: About) -> tuple[Node, ...]:
    return tuple(Node(edit) for edit in dict.fromkeys(edits) if not (about.careful and edit.bold))


def _groups(groups: Groups) -> Groups:
    return [group for group in groups if group]
