"""Tracebacks drawn in boxes by rich, as command-line tools print them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.models.bug import Frame, Traceback
from bot.rules.intake import frames
from bot.rules.intake.exceptions import LONE, NAMED, message

_SIDE = re.compile(r"^\s*[\u2502|]\s?|\s*[\u2502|]\s*$")
_PLACE = re.compile(r"^\s*(?P<path>\S{1,400}\.py):(?P<line>\d{1,7}) in (?P<function>\S+)")
_CODE = re.compile(r"^\s*[\u2771>]\s*\d{1,7}\s*(?:[\u2502|]\s*)*(?P<code>.*?)\s*$")


@dataclass(frozen=True, slots=True)
class Span:
    """A traceback and the lines (half-open) that it covers."""

    traceback: Traceback
    start: int
    end: int


def rich(lines: Sequence[str], start: int, home: str) -> Span:
    """The traceback in the box that opens on line `start`, with the exception below the box."""
    found: list[Frame] = []
    at = start + 1
    while at < len(lines) and not lines[at].lstrip().startswith("\u2570"):
        text = _SIDE.sub("", lines[at])
        place, code = _PLACE.match(text), _CODE.match(text)
        if place:
            found.append(frames.frame(place["path"], place["line"], place["function"], home=home))
        elif code and found and not found[-1].code:
            found[-1] = found[-1].model_copy(update={"code": code["code"]})
        at += 1
    last = at + 1
    match = (LONE.match(lines[last]) or NAMED.match(lines[last])) if last < len(lines) else None
    if match is None:
        return Span(Traceback(exception="", message="", frames=tuple(found)), start, at)
    words, end = message(lines, last, match["msg"] or "")
    return Span(Traceback(exception=match["exc"], message=words, frames=tuple(found)), start, end)
