"""Smaller constants: numbers towards 1, shorter texts; equal numbers together, because shapes
must agree.
"""

from __future__ import annotations

import ast

from bot.rules.reduce.edits import Files, Reduction, Replacement
from bot.rules.reduce.parsed_file import parsed_files

_FEW = 2


def edits(files: Files) -> tuple[Reduction, ...]:
    """Every number with the smaller ones worth a try, all equal ones at once and each alone; and
    every text that can be shorter.
    """
    numbers: dict[int, list[Replacement]] = {}
    found = list[Reduction]()
    for file in parsed_files(files):
        for node in ast.walk(file.tree):
            if not isinstance(node, ast.Constant) or node in file.in_f_strings:
                continue
            if type(node.value) is int and node.value > 0:
                numbers.setdefault(node.value, []).append(file.replace(node, ""))
            elif shorter := _shorter(node.value, file.of(node)):
                what = "shorter constant"
                found.append(Reduction(what, (file.replace(node, shorter),), alters_values=True))
    for value, places in sorted(numbers.items(), reverse=True):
        groups = [places, *([place] for place in places)] if len(places) > 1 else [places]
        found += [_set(group, value, new) for group in groups for new in smaller(value)]
    return tuple(found)


def smaller(value: int) -> tuple[int, ...]:
    """The smaller numbers to try, the smallest first: by halves, one by one near the end."""
    return tuple(sorted({1, value // 2} if value > _FEW else range(value)))


def _set(places: list[Replacement], value: int, new: int) -> Reduction:
    made = tuple(Replacement(place.path, place.start, place.end, str(new)) for place in places)
    return Reduction(f"{value} → {new}", made, alters_values=new == 0)


def _shorter(value: object, written: str) -> str:
    if isinstance(value, str | bytes) and value:
        return "b''" if isinstance(value, bytes) else '""'
    return "1.0" if isinstance(value, float) and len(written) > len("1.0") else ""
