"""A family: a small training program that learns well, with marks where it can be made faulty.

Marks are comments that never reach a written program. `#: layer 2 as .fc1; act 2` at the end of a
line names what stands on it; `#! CPP: old ==> new` at the end of the file is an edit of its own.
The first line holds the facts: `#: framework=torch metric=accuracy direction=max good=0.9`.
"""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, cast

from bot.kernel.errors import UserError

FOLDER = Path(__file__).parent / "families"

_MARK = re.compile(r"[ \t]*#: (.*)$", re.MULTILINE)
_REWRITE = re.compile(r"^#! (?P<codes>[^:]+): (?P<edits>.*)\n?", re.MULTILINE)


@dataclass(frozen=True)
class Mark:
    """What stands on a line (counted from 1): a word such as "act", the layer's index, options."""

    word: str
    line: int
    layer: int = -1
    options: tuple[str, ...] = ()

    def option(self, name: str) -> str:
        """The value of `name VALUE` among the options, "" when it is not there."""
        at = self.options.index(name) + 1 if name in self.options else 0
        return self.options[at] if at else ""


@dataclass(frozen=True)
class Family:
    """A program without its marks, and what they said. `good` is what its metric must reach."""

    name: str
    framework: Literal["torch", "keras"]
    metric: str
    direction: Literal["max", "min"]
    good: float
    data: str
    source: str
    marks: tuple[Mark, ...]
    rewrites: tuple[tuple[str, str], ...]

    @cached_property
    def tree(self) -> ast.Module:
        """The program's syntax tree."""
        return ast.parse(self.source)

    def marked(self, *words: str) -> tuple[Mark, ...]:
        """The marks with one of these words, in the order of the program."""
        return tuple(mark for mark in self.marks if mark.word in words)


def load(where: Path) -> tuple[Family, ...]:
    """Every family in a folder. Raises UserError for a folder without one."""
    families = tuple(read(path.stem, path.read_text()) for path in sorted(where.glob("*.txt")))
    if not families:
        raise UserError(f"No families in {where}.", "Name a folder of marked programs (*.txt).")
    return families


def read(name: str, text: str) -> Family:
    """The family that a marked program is."""
    facts_line, _, text = text.partition("\n")
    facts = dict(fact.split("=", 1) for fact in shlex.split(facts_line.removeprefix("#: ")))
    rewrites = tuple((m["codes"], m["edits"]) for m in _REWRITE.finditer(text))
    text = _REWRITE.sub("", text)
    return Family(
        name=name,
        framework=cast("Literal['torch', 'keras']", facts["framework"]),
        metric=facts["metric"],
        direction=cast("Literal['max', 'min']", facts["direction"]),
        good=float(facts["good"]),
        data=facts["data"],
        source=_MARK.sub("", text).rstrip("\n") + "\n",
        marks=tuple(mark for at, line in enumerate(text.splitlines(), 1) for mark in _on(line, at)),
        rewrites=rewrites,
    )


def _on(line: str, at: int) -> tuple[Mark, ...]:
    found = _MARK.search(line)
    return tuple(_mark(part.split(), at) for part in found[1].split(";")) if found else ()


def _mark(words: list[str], at: int) -> Mark:
    indexed = len(words) > 1 and words[1].isdigit()
    rest = tuple(words[2 if indexed else 1 :])
    return Mark(words[0], at, int(words[1]) if indexed else -1, rest)
