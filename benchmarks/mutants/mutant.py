"""A mutant: a family's program with one fault, and the true codes of that fault."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.mutants import edits
from benchmarks.mutants.family import Family


@dataclass(frozen=True)
class Mutant:
    """`alternatives` are other codes for the same edit, such as ACH for a removed activation.
    `group` tells apart what one operator does in different ways ("up", "down", "last").
    """

    family: Family
    operator: str
    codes: tuple[str, ...]
    source: str
    change: str
    alternatives: tuple[tuple[str, ...], ...] = ()
    group: str = ""


def edited(
    family: Family,
    code: str,
    changes: Iterable[edits.Edit],
    change: str,
    *,
    alternatives: tuple[str, ...] = (),
    group: str = "",
) -> Mutant:
    """The mutant that these changes of the program's text make. Raises SyntaxError for text that
    is no program.
    """
    source = edits.apply(family.source, changes)
    ast.parse(source)
    others = tuple((other,) for other in dict.fromkeys(alternatives))
    return Mutant(family, code[:3], (code,), source, change, others, group)
