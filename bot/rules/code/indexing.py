"""What goes into an index for one source: a row per segment, its words in columns of falling
weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bot.rules.code.outline import Segment, line_starts, normal, outline
from bot.rules.code.words import identifiers, index_words

FORMAT = "2"
"""Changes when equal sources give other rows than before."""

WEIGHTS = (8.0, 3.0, 3.0, 1.0)
"""Weight of a word in the name, the module, the head (signature and docstring), and anywhere."""

_HEAD_LINES = 60
_MAX_WORDS = 3_000
_HEAD = re.compile(
    r"""(?s).*?:[ \t]*\n(?:[ \t]*[rRuUbB]*(?P<quote>\"{3}|'{3}).*?(?:(?P=quote)|\Z)[^\n]*)?"""
)


class IndexRow(NamedTuple):
    """A segment and its words: name, module, head, all."""

    segment: Segment
    columns: tuple[str, str, str, str]


def read(data: bytes) -> str:
    """The text of a file with plain line ends; invalid UTF-8 is replaced."""
    return normal(data.decode("utf-8", "replace").removeprefix("\ufeff"))


def rows(path: str, text: str) -> Iterator[IndexRow]:
    """One row per segment, in order."""
    starts = line_starts(text)
    module = index_words(dict.fromkeys(identifiers(path.removesuffix(".py"))))
    for segment in outline(text, path, starts):
        begin, end = starts[segment.start - 1], starts[segment.end]
        name = index_words(dict.fromkeys(identifiers(segment.name)))
        head = ""
        if segment.kind != "module" and segment.part == 0:
            last = min(segment.end, segment.start + _HEAD_LINES)
            found = _HEAD.match(text, begin, starts[last])
            head_end = found.end() if found else starts[segment.start]
            head = index_words(set(identifiers(text, begin, head_end)))
        # A set keeps the index small. Its order is irrelevant: no query uses positions.
        words = set(identifiers(text, begin, end))
        if len(words) > _MAX_WORDS:
            words = set(sorted(words)[:_MAX_WORDS])
        yield IndexRow(segment, (name, module, head, index_words(words)))
