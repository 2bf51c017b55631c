"""Warnings among what a program printed, in whatever form its libraries print them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.models.signature import WarningSignature
from bot.rules.signatures import wording

SHORTEST = 8
"""Characters below which a message stands somewhere by chance."""

_PLACE = re.compile(r"^\s*\S[^\n]{0,300}?\.py:\d+: ")
_CATEGORY = re.compile(r"\b\w*Warning\b")
_QUOTES = re.compile(r"[\s`'\"]+")


def lines(printed: Sequence[str], wanted: WarningSignature) -> list[str]:
    """The lines that give the reported warning. The source line that Python prints below a
    warning is no second one.

    A line in a library's own form ("file.py:3: message") need not name the category.
    """
    found = []
    for at, line in enumerate(printed):
        if line[:1].isspace() and at and _PLACE.match(printed[at - 1]):
            continue
        if not _says(line, wanted.message):
            continue
        if (
            wanted.category
            and wanted.category not in line
            and not (_PLACE.match(line) and not _CATEGORY.search(line))
        ):
            continue
        found.append(line)
    return found


def nearest(printed: Sequence[str], most: int = 3) -> list[str]:
    """Some lines that look like warnings, for whoever wonders why none was the reported one."""
    return list(
        dict.fromkeys(
            line.strip() for line in printed if _PLACE.match(line) or _CATEGORY.search(line)
        )
    )[:most]


def _says(line: str, message: str) -> bool:
    """The words of a warning agree as those of an exception do; a part of it, quoted alone, has
    to stand in it as it is.
    """
    if wording.resemblance(message, line) >= wording.ENOUGH:
        return True
    part = _QUOTES.sub(" ", message).strip().casefold()
    return len(part) >= SHORTEST and part in _QUOTES.sub(" ", line).casefold()
