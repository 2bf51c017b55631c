"""Constants made smaller: numbers towards 1, text and lists shortened; equal numbers together, as shapes must agree."""

from __future__ import annotations

import ast

from bot.rules.mends.edits import Text
from bot.rules.reduce.edits import Edit, Files, Piece, programs

_FEW = 2
_Place = tuple[str, int, int]


def edits(files: Files) -> tuple[Edit, ...]:
    """Every number with every smaller one worth a try, all equal ones at once and each alone; every text that can be
    shorter.
    """
    numbers: dict[int, list[_Place]] = {}
    found = list[Edit]()
    for path, source, tree in programs(files):
        text, inside = Text(source), _in_text(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in inside:
                continue
            place = (path, *text.span(node))
            if type(node.value) is int and node.value > 0:
                numbers.setdefault(node.value, []).append(place)
            elif (shorter := _shorter(node.value, text.of(node))) is not None:
                found.append(Edit("shorter constant", (Piece(*place, shorter),), bold=True))
    for value, places in sorted(numbers.items(), reverse=True):
        together = [_set(places, value, new) for new in smaller(value)] if len(places) > 1 else []
        alone = [_set([place], value, new) for place in places for new in smaller(value)]
        found.extend([*together, *alone])
    return tuple(found)


def smaller(value: int) -> tuple[int, ...]:
    """The smaller numbers to try, the smallest first: again and again by halves, one by one near the end."""
    tries = {1, value // 2} if value > _FEW else set(range(value))
    return tuple(sorted(tries))


def _set(places: list[_Place], value: int, new: int) -> Edit:
    return Edit(f"{value} → {new}", tuple(Piece(*place, str(new)) for place in places), bold=new == 0)


def _shorter(value: object, written: str) -> str | None:
    if isinstance(value, str | bytes) and value:
        return "b''" if isinstance(value, bytes) else '""'
    if isinstance(value, float) and len(written) > len("1.0"):
        return "1.0"
    return None


def _in_text(tree: ast.Module) -> set[int]:
    """Constants within f-strings, whose positions are not to be relied on."""
    return {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
