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
class TracebackSpan:
    """A traceback and the half-open range of lines that it covers."""

    traceback: Traceback
    start: int
    end: int


def span_of(
    start: int, end: int, exception: str = "", message: str = "", frames: Sequence[Frame] = ()
) -> TracebackSpan:
    """The span of a traceback with these parts."""
    found = Traceback(exception=exception, message=message, frames=tuple(frames))
    return TracebackSpan(found, start, end)


def rich(lines: Sequence[str], start: int, home: str) -> TracebackSpan:
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
    last = lines[at + 1] if at + 1 < len(lines) else None
    match = (LONE.match(last) or NAMED.match(last)) if last is not None else None
    if match is None:
        return span_of(start, at, frames=found)
    words, end = message(lines, at + 1, match["msg"] or "")
    return span_of(start, end, match["exc"], words, found)
