"""The text of an issue made safe to read (newlines, invisible characters, terminal colours), and
the short values in it: a number, a tensor, a shape, a quoted or ticked piece.
"""

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from bot.kernel.bug import MOST_BODY

T = TypeVar("T")

_UNUSUAL = re.compile(r"[^\n\t -~]")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
_HIDDEN = frozenset({"Cc", "Cf", "Cs"})
_COLOUR = re.compile(
    r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|\[(?:\d{1,2};){1,3}\d{1,3}m|\[(?:0|3\d|9\d)m"
)
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


MOST_LINES = 12_000
"""Lines of a body that are read."""
NUMBER = r"[-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+|nan|NaN|inf|Inf|infinity)"
VALUE = (
    r"(?:`[^`\n]{1,120}`|(?:tensor|array|Array|torch\.Size|TensorShape)\([^\n]{1,200}?\)+|\[[^\]\n]{1,160}\]+"
    r"|\((?:\d+,? "
    rf"?){{1,6}}\)|\"[^\"\n]{{1,80}}\"|'[^'\n]{{1,80}}'|True|False|None|{NUMBER}(?![\w/]|\.\d))"
)
_WHOLE = re.compile(rf"^(?:{VALUE}|<class '[\w.]+'>)$")


def readable(body: str) -> str:
    """The body with one kind of newline and nothing that cannot be seen. Lines keep their
    numbers.
    """
    text = body[:MOST_BODY].replace("\r\n", "\n").replace("\r", "\n")
    text = _UNUSUAL.sub(lambda match: _printable(match.group()), _COLOUR.sub("", text))
    if text.count("\n") < MOST_LINES:
        return text
    return "\n".join(text.split("\n", MOST_LINES)[:MOST_LINES])


def _printable(char: str) -> str:
    """A character as the eye sees it; variation selectors can carry whole messages behind a
    letter.
    """
    if char in "\u2028\u2029":
        return " "
    hidden = unicodedata.category(char) in _HIDDEN or char in _FILLERS
    return (
        ""
        if hidden or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
        else char
    )


def line(text: str) -> str:
    """One line, such as a title, with nothing that cannot be seen."""
    return " ".join(readable(text).split())


def plain_typography(text: str) -> str:
    """Typewriter quotes, dashes and spaces in place of typographic ones."""
    return text.translate(_TYPOGRAPHY)


def indent_of(line: str) -> int:
    """Columns of white space before the first other character."""
    return len(line) - len(line.lstrip())


def is_value(text: str) -> bool:
    """Whether a text is a value and nothing more."""
    return len(text) < 400 and bool(_WHOLE.match(text.strip().rstrip(".,;")))


def bare(text: str) -> str:
    """A value without the ticks or the full stop around it."""
    plain_text = text.strip().rstrip(".,;") if not text.strip().endswith("...") else text.strip()
    return (
        plain_text[1:-1].strip()
        if len(plain_text) > 2 and plain_text[0] == plain_text[-1] == "`"
        else plain_text
    )


def distinct(rows: Iterable[T], key: Callable[[T], Hashable]) -> tuple[T, ...]:
    """The rows, in their order, without those whose key an earlier one has."""
    by_key: dict[Hashable, T] = {}
    for row in rows:
        by_key.setdefault(key(row), row)
    return tuple(by_key.values())


def duration(seconds: float) -> str:
    """Seconds in the unit that people would use: `40 s`, `90 min`, `7 h`, `12 days`."""
    units = (("s", 1), ("min", 60), ("h", 3600), ("days", 86400))
    name, size = next(((n, k) for n, k in reversed(units) if seconds >= 2 * k), units[0])
    return f"{seconds / size:,.0f} {name}"
