"""Edits that were tried and did not do: not worth another test as long as nothing that they could hang on has changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.rules.reduce.edits import Edit, Files, Node

_NAME = re.compile(r"[A-Za-z_]\w*")
_COMMON = 0.25
"""A name on more than this part of the lines says nothing of what hangs together."""

_Key = tuple[object, ...]


@dataclass(slots=True)
class Rejected:
    """Remembers rejected sets of edits over several passes. A set is known when the same edits were rejected where all lines
    that share a name with theirs read the same.
    """

    keys: set[_Key] = field(default_factory=set)
    skipped: int = 0

    def view(self, files: Files) -> View:
        """Of one pass, whose edits are in terms of these files; `skipped` counts from here."""
        self.skipped = 0
        return View(self, files)


class View:
    """What is known of edits of one text."""

    def __init__(self, rejected: Rejected, files: Files) -> None:
        self._rejected = rejected
        self._before = frozenset(rejected.keys)  # equal statements of one pass are each worth a test
        self._files = {path: _Lines(text) for path, text in files.items()}

    def known(self, group: Iterable[Node]) -> bool:
        """Whether these edits were rejected in the same surroundings."""
        found = self._key(group) in self._before
        self._rejected.skipped += found
        return found

    def note(self, group: Iterable[Node]) -> None:
        """Remember that they were rejected."""
        self._rejected.keys.add(self._key(group))

    def _key(self, group: Iterable[Node]) -> _Key:
        return tuple(self._edit(node.edit) for node in group)

    def _edit(self, edit: Edit) -> _Key:
        rows = [(piece.path, *self._files[piece.path].around(piece.start, piece.end), piece.new) for piece in edit.pieces]
        names = {name for path, at, text, _ in rows for name in _NAME.findall(text)}
        near = [(path, lines.sharing(names)) for path, lines in self._files.items()]
        return (edit.what, tuple((path, at, text, new) for path, at, text, new in rows), tuple(near), edit.drops)


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
        places = (self._places.get(name, []) for name in names)
        return tuple(self._lines[at] for at in sorted({at for found in places if len(found) <= self._most for at in found}))
