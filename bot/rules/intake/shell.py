"""Programs inside shell blocks: `python -c "…"` and here-documents."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.models.bug import Mend
from bot.rules.intake.python import Evidence, evidence, tree_of

_INLINE = re.compile(r"\bpython[\d.]*\s+(?:-\w\s+)*-c\s+(?P<quote>['\"])")
_HERE = re.compile(r"<<-?\s*['\"]?(?P<end>\w{2,20})['\"]?[^\n]*\n")


@dataclass(frozen=True, slots=True)
class Embedded:
    """A program taken out of a command."""

    text: str
    evidence: Evidence
    mends: tuple[Mend, ...]


def program(text: str) -> Embedded | None:
    """The Python program that a shell block runs, or None."""
    if len(text) > 100_000:
        return None
    found = _of_flag(text) or _of_document(text)
    tree = tree_of(found) if found else None
    if not found or tree is None or evidence(tree) == "none":
        return None
    mend = Mend(what="took the program out of a shell command", why="it was passed to python on the command line")
    return Embedded(found, evidence(tree), (mend,))


def _of_flag(text: str) -> str:
    match = _INLINE.search(text)
    if not match:
        return ""
    end = text.find(match["quote"], match.end())
    while end > 0 and text[end - 1] == "\\":
        end = text.find(match["quote"], end + 1)
    code = text[match.end() : end] if end > 0 else ""
    return code.replace('\\"', '"').replace("\\$", "$").strip("\n") if match["quote"] == '"' else code.strip("\n")


def _of_document(text: str) -> str:
    match = _HERE.search(text)
    if not match or ("python" not in text and ".py" not in text):
        return ""
    lines = text[match.end() :].split("\n")
    end = next((i for i, line in enumerate(lines) if line.strip() == match["end"]), len(lines))
    return "\n".join(lines[:end])
