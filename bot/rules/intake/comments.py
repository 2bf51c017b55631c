"""Comments of a program that state what its lines print, or should."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from bot.models.bug import Fence, Output
from bot.rules.intake.outputs import Side, always, pairs_in
from bot.rules.intake.plain import is_prose
from bot.rules.intake.text import bare, is_value

_COMMENT = re.compile(r"(?P<code>.*?)#+\s*(?P<note>\S.*)$")
_BLOCK_LABEL = re.compile(
    r"^(outputs?|prints?|printed|results?|actual|observed|expected|should (?:be|print))(?: "
    r"\w+){0,2}\s*:\s*$",
    re.I,
)
_NOTE = re.compile(
    r"^(?P<verb>prints?|printed|outputs?|returns?|returned|gives?|shows?|yields?|results?(?: "
    r"in)?|got|actual(?:ly)?"
    r"|observed|->|=>|==>|-->|>>>|expected?(?: output)?|should "
    r"(?:be|print|return|give|equal))\s*(?:is|be"
    r"|to be)?\s*[:=]*\s*(?P<value>\S.*)$",
    re.I,
)


def of_lines(fence: Fence) -> Iterator[Output]:
    """Comments of a program that state what its lines print."""
    for offset, line in enumerate(fence.raw.split("\n")[:3000]):
        if "#" not in line or len(line) > 1000:
            continue
        match = _COMMENT.match(line)
        if not match or match["code"].count('"') % 2 or match["code"].count("'") % 2:
            continue
        note, code, number = match["note"].strip(), match["code"].strip(), fence.line + offset
        pairs = list(pairs_in(note, fence.index, partial(always, number)))
        if pairs:
            yield from pairs
            continue
        stated = _NOTE.match(note)
        if stated and (
            is_value(stated["value"]) or (not code and is_value(stated["value"].split("  ")[0]))
        ):
            side: Side = (
                "expected" if re.match(r"expect|should", stated["verb"], re.I) else "observed"
            )
            yield Output(text=bare(stated["value"]), role=side, fence=fence.index, line=number)
        elif is_value(note) and re.match(r"(?:print|pprint|display)\(", code):
            yield Output(text=bare(note), role="observed", fence=fence.index, line=number)


def of_blocks(fence: Fence) -> Iterator[Output]:
    """Outputs that run over several lines of comment, below a label or below the line that
    prints them.
    """
    rows = fence.raw.split("\n")[:3000]
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and rows[end].lstrip().startswith("#") and len(rows[end]) < 1000:
            end += 1
        if end > at:
            notes = [row.lstrip().lstrip("#").removeprefix(" ").rstrip() for row in rows[at:end]]
            label = _BLOCK_LABEL.match(notes[0]) if len(notes) > 1 else None
            body = "\n".join(notes[1:] if label else notes).strip("\n")
            printed = at > 0 and re.match(r"\s*(?:print|pprint|display)\(", rows[at - 1])
            if body and (label or (printed and is_value(" ".join(body.split())))):
                side: Side = (
                    "expected"
                    if label and re.match(r"expect|should", label[1], re.I)
                    else "observed"
                )
                if not any(is_prose(note) for note in notes[1:]):
                    yield Output(
                        text=body,
                        role=side,
                        fence=fence.index,
                        line=fence.line + at + (1 if label else 0),
                    )
        at = max(end, at + 1)
