"""Edits that a family brings itself: its data, its layers and their sizes (CPP, LRM, LAD, LCN)."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.faults import expanded
from benchmarks.mutants import edits
from benchmarks.mutants.family import Family
from benchmarks.mutants.mutant import Mutant, edited


def rewritten(family: Family) -> Iterator[Mutant]:
    r"""Each `#! CODE | other CODE: old ==> new && old ==> new`; `\n` is a line's end.

    Raises ValueError for what is no code, and where `old` has not exactly one place.
    """
    for number, (codes, changes) in enumerate(family.rewrites):
        code, *others = (part.strip() for part in codes.split("|"))
        expanded((code, *others))
        parts = tuple(part.split(" ==> ") for part in changes.split(" && "))
        yield edited(
            family,
            code,
            [_once(family.source, old, new) for old, new in parts],
            changes,
            alternatives=tuple(others),
            group=str(number),
        )


def _once(source: str, old: str, new: str) -> edits.Edit:
    old, new = (text.strip().replace("\\n", "\n") for text in (old, new))
    if source.count(old) != 1:
        raise ValueError(f"not exactly one place for {old!r}")
    start = source.index(old)
    return edits.Edit(start, start + len(old), new)
