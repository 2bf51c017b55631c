"""Cuts Python source into segments by its lines alone: class heads, functions, methods and the
code between them.

A parser would be exact but reads 2 to 7 MB a second, and an installed torch with transformers has
100 MB. This reads indentation, skips strings and comments, and never fails: every line of any text
belongs to exactly one segment.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from bot.models.environment import ChunkKind
from bot.rules.parsing import NOT_CODE

_NESTING = frozenset({"module", "class"})
_LONG = 150
_PART = 100
_LONGEST_STATEMENT = 400
_STATEMENT_PART = 300
_CLAUSE = r"(?P<clause>(?:elif|else|except|finally|case)\b)"
_CODE_FOLLOWS = r"(?=[^\s#)\]}])"
_LINE = re.compile(rf"\n(?P<indent>[ \t]*)(?:{_CLAUSE}|{_CODE_FOLLOWS})|{NOT_CODE}", re.DOTALL)
_BODY = (
    rf"""(?:[^\n"'#\\]++|{NOT_CODE}|\\"""
    r"""|\n(?=(?P=indent)[ \t]|[ \t]*+(?:[#)\]}\n]|\Z)))*+"""
)
"""What follows the name of a function, to its last line. Matched at once, as nothing in it begins a
segment: a match for each line takes three times as long.
"""
_TOKEN = re.compile(
    r"\n(?P<indent>[ \t]*)(?:(?P<decorator>@)|class[ \t]+(?P<class>\w+)"
    rf"|(?:async[ \t]+)?def[ \t]+(?P<function>\w+){_BODY}|{_CODE_FOLLOWS})|{NOT_CODE}",
    re.DOTALL,
)


class Segment(NamedTuple):
    """Lines `start` to `end` (1-based, inclusive) of a file. `name` is dotted below the module
    ("Linear.forward", "" for the module itself). `part` counts the segments of one definition from
    0; part 0 begins with its head.
    """

    path: str
    kind: ChunkKind
    name: str
    start: int
    end: int
    part: int = 0

    @property
    def dotted(self) -> str:
        """The full dotted name of what is defined here."""
        module = module_of(self.path)
        return f"{module}.{self.name}" if self.name else module

    @property
    def simple_name(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


class _Block(NamedTuple):
    """A definition or the module: where its segment starts, and its indentation."""

    kind: ChunkKind
    name: str
    indent: int
    start: int
    defines: bool = False


def module_of(path: str) -> str:
    """The dotted module of a path: "torch/nn/__init__.py" is torch.nn; a `src` layout is
    stripped.
    """
    return path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")


def normal(text: str) -> str:
    """The text with plain line ends, as Python counts lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def line_starts(text: str) -> list[int]:
    """The offset of each line of a text and, last, of its end. A last empty line does not count."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return starts if starts[-1] == len(text) else [*starts, len(text) + 1]


def outline(text: str, path: str = "", starts: list[int] | None = None) -> list[Segment]:
    """The segments of a source in order; together they hold every line once."""
    starts = starts or line_starts(text)
    blocks = [*_blocks(f"\n{text}", starts), _Block("module", "", 0, len(starts))] if text else []
    segments: list[Segment] = []
    parts: dict[str, int] = {}
    for block, following in pairwise(blocks):
        if following.start == block.start:  # the file begins with a definition
            continue
        after = following.start
        cuts = _cuts(text, starts, block, after) if after - block.start > _LONG else ()
        for first, following_start in pairwise((block.start, *cuts, after)):
            opens = block.defines and first == block.start
            part = parts[block.name] = 0 if opens else parts.get(block.name, -1) + 1
            segments.append(Segment(path, block.kind, block.name, first, following_start - 1, part))
    return segments


def _blocks(text: str, starts: list[int]) -> Iterator[_Block]:
    """Where each segment begins, before long ones are cut. The text starts with an added
    newline.
    """
    stack = [_Block("module", "", -1, 1)]
    decorated = 0
    yield stack[0]
    for match in _TOKEN.finditer(text):
        if match[1] is None:
            continue
        indent, owner = len(match[1]), stack[-1]
        dedented = indent <= owner.indent
        while indent <= owner.indent:
            stack.pop()
            owner = stack[-1]
        if owner.kind not in _NESTING:
            continue
        if match["function"] or match["class"]:
            start = decorated or bisect_right(starts, match.start())
            stack.append(_defined(match, owner, indent, start))
            decorated = 0
            yield stack[-1]
        elif match["decorator"]:
            decorated = decorated or bisect_right(starts, match.start())
        elif dedented and not decorated:
            yield _Block(owner.kind, owner.name, owner.indent, bisect_right(starts, match.start()))


def _defined(match: re.Match[str], owner: _Block, indent: int, start: int) -> _Block:
    own = match["function"] or match["class"]
    name = f"{owner.name}.{own}" if owner.name else own
    function: ChunkKind = "method" if owner.kind == "class" else "function"
    return _Block("class" if match["class"] else function, name, indent, start, True)


def _cuts(text: str, starts: list[int], block: _Block, after: int) -> Iterator[int]:
    """Lines at which a long block is cut: statements of its own body, about every hundred lines."""
    last = block.start
    for line in (*_statements(text, starts, block, after), after):
        if line < after and (line - last < _PART or after - 1 - line <= _PART // 4):
            continue
        if line - last > _LONGEST_STATEMENT:  # a table, say
            yield from range(last + _STATEMENT_PART, line, _STATEMENT_PART)
        if line < after:
            yield line
        last = line


def _statements(text: str, starts: list[int], block: _Block, after: int) -> list[int]:
    """Lines that begin a statement of the outermost body of a block."""
    begin = starts[block.start - 1]
    found = [
        (bisect_right(starts, begin + match.start()), len(match[1]))
        for match in _LINE.finditer(f"\n{text[begin : starts[after - 1]]}")
        if match[1] is not None and not match["clause"]
    ]
    if block.defines:
        found = [(line, indent) for line, indent in found if indent > block.indent]
    least = min((indent for _, indent in found), default=0)
    return [line for line, indent in found if indent == least]
