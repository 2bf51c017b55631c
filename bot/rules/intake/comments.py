"""Comments of a program that state what its lines print, or should."""

import re
from collections.abc import Iterator
from itertools import groupby

from bot.models.bug import Fence, Output
from bot.rules.intake.outputs import Side, pairs_in
from bot.rules.intake.plain import is_prose
from bot.rules.intake.sentences import Sentence
from bot.rules.intake.text import bare, is_value

_COMMENT = re.compile(r"(?P<code>.*?)#+\s*(?P<note>\S.*)$")
_PRINTS = re.compile(r"(?:print|pprint|display)\(")
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
    for number, line in enumerate(fence.raw.split("\n")[:3000], fence.line):
        match = _COMMENT.match(line) if "#" in line and len(line) <= 1000 else None
        if not match or match["code"].count('"') % 2 or match["code"].count("'") % 2:
            continue
        note, code = match["note"].strip(), match["code"].strip()
        pairs = list(pairs_in(Sentence(note, number, ()), fence.index))
        stated = _NOTE.match(note)
        value = stated["value"] if stated else ""
        if pairs:
            yield from pairs
        elif stated and (is_value(value) or (not code and is_value(value.split("  ")[0]))):
            side = _side(stated["verb"])
            yield Output(text=bare(value), role=side, fence=fence.index, line=number)
        elif is_value(note) and _PRINTS.match(code):
            yield Output(text=bare(note), role="observed", fence=fence.index, line=number)


def of_blocks(fence: Fence) -> Iterator[Output]:
    """Outputs that run over several lines of comment, below a label or below the line that
    prints them.
    """
    rows = fence.raw.split("\n")[:3000]
    for noted, run in groupby(range(len(rows)), key=lambda at: _is_comment(rows[at])):
        at, *others = run
        notes = [rows[i].lstrip().lstrip("#").removeprefix(" ").rstrip() for i in (at, *others)]
        label = _BLOCK_LABEL.match(notes[0]) if others else None
        body = "\n".join(notes[1:] if label else notes).strip("\n")
        printed = at > 0 and _PRINTS.match(rows[at - 1].lstrip())
        told = label or (printed and is_value(" ".join(body.split())))
        if noted and body and told and not any(map(is_prose, notes[1:])):
            side, line = _side(label[1] if label else ""), fence.line + at + bool(label)
            yield Output(text=body, role=side, fence=fence.index, line=line)


def _is_comment(row: str) -> bool:
    return row.lstrip().startswith("#") and len(row) < 1000


def _side(label: str) -> Side:
    return "expected" if re.match(r"expect|should", label, re.I) else "observed"
