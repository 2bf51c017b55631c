"""Cuts a Python source into pieces by its lines alone: class heads, functions, methods and what stands between them.

A parser would be exact, but reads about 7 MB a second on one core; an installed torch with transformers has 100. This reads
the indentation, knows strings over several lines, and never fails: every line of any text belongs to exactly one piece.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from bot.models.context import ChunkKind

LONG = 150
_PART = 100
_MOST = 300
_MOST_LINES = 120_000
_QUOTES = re.compile(r'"""|\'\'\'|#|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'')
_DEFINITION = re.compile(r"(?:async[ \t]+)?(def|class)[ \t]+(\w+)")
_STARTS = ("def ", "clas", "asyn", "def\t")
_CLOSERS = frozenset(")]}")
_CONTINUES = re.compile(r"(?:elif|else|except|finally|case)\b")


class Piece(NamedTuple):
    """Lines `start` to `end` (1-based, inclusive) of a source. `name` is dotted below the module ("Linear.forward", "" for the
    module itself); `part` counts the pieces of one definition from 0, and part 0 begins with its head.
    """

    kind: ChunkKind
    name: str
    start: int
    end: int
    part: int = 0


class _Open(NamedTuple):
    kind: ChunkKind
    name: str
    indent: int


def normal(text: str) -> str:
    """The text with plain line ends, as Python counts lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def split(text: str) -> list[str]:
    """The lines of a text with plain line ends; a last empty line does not count."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def outline(lines: list[str]) -> list[Piece]:
    """The pieces of a source in order; together they hold every line once."""
    if not lines:
        return []
    marks = _marks(lines[:_MOST_LINES])
    pieces: list[Piece] = []
    parts: dict[str, int] = {}
    for position, (start, kind, name) in enumerate(marks):
        end = marks[position + 1][0] - 1 if position + 1 < len(marks) else len(lines)
        cuts = [start, *_cuts(lines, start, end), end + 1] if end - start >= LONG else [start, end + 1]
        for first, after in pairwise(cuts):
            opened = first == start and kind != "module" and _opens(lines, first)
            part = 0 if opened else parts.get(name, -1) + 1
            parts[name] = part
            pieces.append(Piece(kind, name, first, after - 1, part))
    return pieces


def _opens(lines: list[str], number: int) -> bool:
    return lines[number - 1].lstrip()[:4] in _STARTS or lines[number - 1].lstrip().startswith("@")


def _marks(lines: list[str]) -> list[tuple[int, ChunkKind, str]]:
    """Where a new piece begins, what it is and its name."""
    marks: list[tuple[int, ChunkKind, str]] = []
    stack: list[_Open] = [_Open("module", "", -1)]
    delimiter, decorated = "", 0
    for number, line in enumerate(lines, 1):
        if delimiter:
            at = line.find(delimiter)
            if at >= 0:
                delimiter = _unclosed(line[at + 3 :])
            continue
        body = line.lstrip()
        if body and body[0] != "#" and body[0] not in _CLOSERS:
            decorated = _step(number, body, len(line) - len(body), stack, decorated, marks)
        if '"""' in line or "'''" in line:
            delimiter = _unclosed(line)
    if not marks or marks[0][0] > 1:
        marks.insert(0, (1, "module", ""))
    return marks


def _step(
    number: int, body: str, indent: int, stack: list[_Open], decorated: int, marks: list[tuple[int, ChunkKind, str]]
) -> int:
    """Take in one line of code; returns the line of a decorator whose definition is still to come, else 0."""
    left = indent <= stack[-1].indent
    while indent <= stack[-1].indent:
        stack.pop()
    owner = stack[-1]
    if owner.kind not in {"module", "class"}:
        return decorated
    found = _DEFINITION.match(body) if body[:4] in _STARTS else None
    if found is not None:
        opened = _opened(found, owner, indent)
        marks.append((decorated or number, opened.kind, opened.name))
        stack.append(opened)
        return 0
    if body[0] == "@" and not decorated:
        return number
    if left and not decorated:
        marks.append((number, owner.kind, owner.name))
    return decorated


def _opened(found: re.Match[str], owner: _Open, indent: int) -> _Open:
    name = f"{owner.name}.{found[2]}" if owner.name else found[2]
    if found[1] == "class":
        return _Open("class", name, indent)
    return _Open("method" if owner.kind == "class" else "function", name, indent)


def _unclosed(line: str) -> str:
    """The delimiter of a string that begins in a line (outside a string) and goes on after it, or ""."""
    at = 0
    while found := _QUOTES.search(line, at):
        mark = found[0]
        if mark == "#":
            return ""
        at = found.end()
        if mark in {'"""', "'''"}:
            close = line.find(mark, at)
            while close > 0 and line[close - 1] == "\\":
                close = line.find(mark, close + 1)
            if close < 0:
                return mark
            at = close + 3
    return ""


def _cuts(lines: list[str], start: int, end: int) -> list[int]:
    """Where a long piece is cut: at statements of its own body, about every hundred lines."""
    first = next((number for number in range(start, end + 1) if lines[number - 1].rstrip().endswith(":")), start)
    body = _statements(lines, first + 1, end)
    cuts: list[int] = []
    last = start
    for number in body:
        if number - last >= _PART and end - number > _PART // 4:
            cuts.append(number)
            last = number
    return [cut for first, after in zip([start, *cuts], [*cuts, end + 1], strict=True) for cut in _forced(first, after)][1:]


def _forced(first: int, after: int) -> range:
    """A single statement of many hundred lines (a table) is cut all the same."""
    return range(first, after, _MOST) if after - first > _MOST + _PART else range(first, first + 1)


def _statements(lines: list[str], start: int, end: int) -> list[int]:
    """Lines that begin a statement of the outermost body between two lines, or of one that is barely deeper."""
    found: list[tuple[int, int]] = []
    delimiter, continued = "", False
    for number in range(start, end + 1):
        line = lines[number - 1]
        if delimiter:
            at = line.find(delimiter)
            if at >= 0:
                delimiter = _unclosed(line[at + 3 :])
            continue
        body = line.lstrip()
        if body and body[0] != "#" and body[0] not in _CLOSERS and not continued and not _CONTINUES.match(body):
            found.append((number, len(line) - len(body)))
        continued = line.endswith("\\")
        if '"""' in line or "'''" in line:
            delimiter = _unclosed(line)
    least = min((indent for _, indent in found), default=0)
    return [number for number, indent in found if indent == least]
