"""Exact search: where sources hold a text as it is written, and which parts of a message to look
for.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from bot.rules.code.indexing import identifiers

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*[,;:]?")
_WINDOW = 4
_SHORTEST = 12
_MOST_TEXT = 300
# Words of a message are apart by blanks, or by the seam of two string literals.
_GAP = r"""(?:\s+|[ \t]*["']\s*\n\s*[rbfuRBFU]{0,2}["'][ \t]*)"""


def words(text: str) -> tuple[str, ...]:
    """The words that an index has for every piece that holds the text."""
    found = identifiers(text[:_MOST_TEXT])
    return tuple(dict.fromkeys(name.lower() for name in found))


def pattern(text: str) -> re.Pattern[str]:
    """Matches the text as it is written, as words of their own; a message also where a literal
    is continued on the next line.
    """
    parts = text[:_MOST_TEXT].split()
    start = r"(?<!\w)" if re.match(r"\w", text) else ""
    end = r"(?!\w)" if re.search(r"\w$", text) else ""
    return re.compile(start + _GAP.join(map(re.escape, parts)) + end)


def windows(message: str) -> tuple[str, ...]:
    """Short runs of plain words of a message. What stands between them (numbers, quoted names,
    shapes) may vary, and so may a word next to it.
    """
    made = [
        " ".join(run[at : at + _WINDOW]).rstrip(",;:.")
        for run in _runs(message)
        for at in range(max(len(run) - _WINDOW, 0) + 1)
    ]
    return tuple(dict.fromkeys(text for text in made if len(text) >= _SHORTEST and " " in text))


def _runs(message: str) -> Iterator[list[str]]:
    """Plain words that stand next to each other."""
    tokens = message[:_MOST_TEXT].split()
    broken = [at for at, token in enumerate(tokens) if not _PLAIN.fullmatch(token.rstrip(".!?"))]
    for before, after in pairwise((-1, *broken, len(tokens))):
        if run := [token.rstrip(".!?") for token in tokens[before + 1 : after]]:
            yield run
