"""Reductions that were rejected: not worth another test as long as nothing that they could depend
on has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.rules.reduce.edits import Files, Reduction, ReductionNode

_NAME = re.compile(r"[A-Za-z_]\w*")
_COMMON = 0.25
"""A name on a larger part of the lines tells nothing about what belongs together."""

_Key = tuple[object, ...]


@dataclass(slots=True)
class RejectedReductions:
    """Remembers rejected sets of reductions over several passes. A set is known when the same
    reductions were rejected while all lines that share a name with theirs were the same.
    """

    keys: set[_Key] = field(default_factory=set)
    skipped: int = 0

    def view(self, files: Files) -> RejectedView:
        """What is known for one pass, whose reductions refer to these files; `skipped` counts from
        here.
        """
        self.skipped = 0
        return RejectedView(self, files)


class RejectedView:
    """What is known of the reductions of one text."""

    def __init__(self, rejected: RejectedReductions, files: Files) -> None:
        self._rejected = rejected
        # equal statements of one pass are each worth a test
        self._before = frozenset(rejected.keys)
        self._files = {path: _Lines(text) for path, text in files.items()}

    def known(self, group: Iterable[ReductionNode]) -> bool:
        """Whether these reductions were rejected in the same surroundings."""
        found = self._key(group) in self._before
        self._rejected.skipped += found
        return found

    def note(self, group: Iterable[ReductionNode]) -> None:
        """Remember that they were rejected."""
        self._rejected.keys.add(self._key(group))

    def _key(self, group: Iterable[ReductionNode]) -> _Key:
        return tuple(self._key_of(node.reduction) for node in group)

    def _key_of(self, reduction: Reduction) -> _Key:
        rows = tuple(
            (one.path, *self._files[one.path].around(one.start, one.end), one.new)
            for one in reduction.replacements
        )
        names = {name for _, _, text, _ in rows for name in _NAME.findall(text)}
        near = tuple((path, lines.sharing(names)) for path, lines in self._files.items())
        return reduction.what, rows, near, reduction.drops


class _Lines:
    """A text with the lines on which each of its names is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [line for line in text.split("\n") if line.strip()]
        self._places: dict[str, list[int]] = {}
        for at, line in enumerate(self._lines):
            for name in set(_NAME.findall(line)):
                self._places.setdefault(name, []).append(at)
        self._most = max(2.0, _COMMON * len(self._lines))

    def around(self, start: int, end: int) -> tuple[int, str]:
        """The whole lines of a span, and where in them it begins."""
        first = self._text.rfind("\n", 0, start) + 1
        last = self._text.find("\n", max(first, end - 1))
        return start - first, self._text[first : last if last >= 0 else len(self._text)]

    def sharing(self, names: set[str]) -> tuple[str, ...]:
        """The lines with one of these names."""
        rare = [found for name in names if len(found := self._places.get(name, [])) <= self._most]
        return tuple(self._lines[at] for at in sorted({at for found in rare for at in found}))
