"""The text of an issue made safe to read: newlines, invisible characters and terminal colours."""

from __future__ import annotations

import re

_INVISIBLE = dict.fromkeys(
    [0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF, *range(0xE0000, 0xE0080)]
)
_CONTROL = dict.fromkeys([*range(9), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F, 0x85, *range(0xD800, 0xE000)])
_BREAKS = {0x2028: " ", 0x2029: " ", 0x0D: " "}
_REMOVE: dict[int, str | None] = {**_INVISIBLE, **_CONTROL, **_BREAKS}
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\n]{0,200}\x07|\[(?:\d{1,2};){1,3}\d{1,3}m|\[(?:0|3\d|9\d)m")
_TYPOGRAPHY = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201a": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\u00ab": '"',
        "\u00bb": '"',
        "\u00a0": " ",
        "\u202f": " ",
        "\u2007": " ",
        "\u3000": " ",
        "\u2013": "-",
        "\u2212": "-",
        "\u2026": "...",
        "\uff08": "(",
        "\uff09": ")",
        "\uff0c": ",",
        "\uff1a": ":",
    }
)


# GitHub allows 65,536 characters; what stands far beyond that is not read, so that no text takes long.
_LONGEST_BODY = 300_000
_MOST_LINES = 12_000


def readable(body: str) -> str:
    """The body with one kind of newline and nothing that cannot be seen. Lines keep their numbers."""
    text = _COLOUR.sub("", body[:_LONGEST_BODY].replace("\r\n", "\n")).translate(_REMOVE)
    if text.count("\n") < _MOST_LINES:
        return text
    return "\n".join(text.split("\n", _MOST_LINES)[:_MOST_LINES])


def plain_typography(text: str) -> str:
    """Typewriter quotes, dashes and spaces in place of typographic ones."""
    return text.translate(_TYPOGRAPHY)


def indent_of(line: str) -> int:
    """Columns of white space before the first other character."""
    return len(line) - len(line.lstrip())
