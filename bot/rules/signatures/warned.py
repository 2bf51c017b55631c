"""Warnings among what a program printed, in whatever form its libraries print them."""

import re
from collections.abc import Sequence
from itertools import pairwise

from bot.models.signature import WarningSignature
from bot.rules.signatures import wording

SHORTEST = 8
"""Characters below which a message stands somewhere by chance."""

_PLACE = re.compile(r"^\s*\S[^\n]{0,300}?\.py:\d+: ")
_CATEGORY = re.compile(r"\b\w*Warning\b")
_LONGEST = 4000  # more than any warning has; the comparison is quadratic in it
_QUOTES = re.compile(r"[\s`'\"]+")


def lines(printed: Sequence[str], wanted: WarningSignature) -> list[str]:
    """The lines that give the reported warning. The source line that Python prints below a
    warning is no second one.

    A line in a library's own form ("file.py:3: message") need not name the category.
    """
    return [
        line
        for before, line in pairwise(["", *printed])
        if not (line[:1].isspace() and _PLACE.match(before))
        and (wanted.category in line or (_PLACE.match(line) and not _CATEGORY.search(line)))
        and _says(line[:_LONGEST], wanted.message)
    ]


def is_placed(line: str) -> bool:
    """Whether a line is a warning as Python prints it, with the place that it came from."""
    return bool(_PLACE.match(line) and _CATEGORY.search(line))


def nearest(printed: Sequence[str], most: int = 3) -> list[str]:
    """Some lines that look like warnings, to explain why none was the reported one."""
    found = (line.strip() for line in printed if _PLACE.match(line) or _CATEGORY.search(line))
    return list(dict.fromkeys(found))[:most]


def _says(line: str, message: str) -> bool:
    """Whether the words of a warning agree, as those of an exception do; a part of it, quoted
    alone, has to occur literally.
    """
    part = _QUOTES.sub(" ", message).strip().casefold()
    stands = len(part) >= SHORTEST and part in _QUOTES.sub(" ", line).casefold()
    return stands or wording.resemblance(message, line) >= wording.ENOUGH
