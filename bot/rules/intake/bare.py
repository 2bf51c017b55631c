"""Programs pasted into the text without a fence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from bot.rules.intake.document import Code, Document, Prose
from bot.rules.intake.plain import is_label, is_prose
from bot.rules.intake.python import evidence, tree_of

_START = re.compile(r"^\s*(?:import [a-zA-Z_][\w.]*(?: as \w+)?(?:, ?[\w. ]+)?\s*$|from [a-zA-Z_][\w.]* import [\w(*, ]+)")
_LONGEST = 400


def lift(document: Document) -> Document:
    """The document with unfenced programs among its codes and no longer in its prose."""
    if not any(_START.match(line.text) for line in document.prose):
        return document
    codes = list(document.codes)
    taken: set[int] = set()
    for run in _runs(document.prose):
        taken.update(line.number for line in run)
        before = [line for line in document.prose if line.number < run[0].number][-4:]
        lead = next((line.text.strip() for line in reversed(before) if line.text.strip() and not line.heading), "")
        text = "\n".join(line.text for line in run)
        numbers = tuple(line.number for line in run)
        codes.append(Code("", text, run[0].number, run[0].headings, lead, "bare", numbers))
    prose = tuple(line for line in document.prose if line.number not in taken)
    return replace(document, prose=prose, codes=tuple(sorted(codes, key=lambda code: code.line)))


def _runs(prose: tuple[Prose, ...]) -> Iterator[list[Prose]]:
    at, tries = 0, 0
    while at < len(prose) and tries < 12:
        if not _START.match(prose[at].text):
            at += 1
            continue
        run = _program(prose, at)
        tries += 1
        if run:
            yield run
        at += max(1, len(run))


def _program(prose: tuple[Prose, ...], at: int) -> list[Prose]:
    """The longest stretch from here that parses, ending where a sentence, a section or a block begins."""
    run: list[Prose] = []
    for line in prose[at : at + _LONGEST]:
        broken = run and line.number != run[-1].number + 1
        if (
            broken
            or re.match(r"^#{2,} \w", line.text)
            or is_label(line.text)
            or "Traceback (most" in line.text
            or is_prose(line.text)
        ):
            break
        run.append(line)
    while run and not run[-1].text.strip():
        run.pop()
    for _ in range(8):
        tree = tree_of("\n".join(line.text for line in run))
        if tree is not None:
            return run if evidence(tree) == "strong" and len(tree.body) >= 3 else []
        while run and run[-1].text.strip():
            run.pop()
        while run and not run[-1].text.strip():
            run.pop()
    return []
