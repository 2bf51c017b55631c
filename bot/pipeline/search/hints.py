"""BugReport + the available sources → hints: each piece of code that something in the report leads
to, how strongly, and why.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bot.models.bug import BugReport, Frame, Issue, Symptom, Traceback
from bot.models.environment import Chunk
from bot.ports import SourceIndex
from bot.rules.code import pointers
from prompts import shared

_FRAMES = 12
_FOLLOWED = 6
_LEARNING = {Symptom.NOT_LEARNING, Symptom.NONFINITE}


class Hint(NamedTuple):
    """A piece that something in the report leads to, how strongly, and why."""

    chunk: Chunk
    weight: float
    why: str


def gathered(
    bug: BugReport, issue: Issue, sources: SourceIndex, lineage: Sequence[Chunk] = ()
) -> tuple[Hint, ...]:
    """What the report points at, what its words are like, what the strongest of the former call,
    and training loops.
    """
    pointed = [
        *(Hint(chunk, 7.0, shared("why_lineage")) for chunk in lineage),
        *_framed(bug, sources),
        *_linked(bug, issue, sources),
        *_named(bug, issue, sources),
    ]
    strongest = sorted(pointed, key=lambda hint: -hint.weight)[:_FOLLOWED]
    return (
        *pointed,
        *_worded(bug, issue, sources),
        *_called(sources, strongest),
        *_learning(bug, sources),
    )


def short(chunk: Chunk) -> str:
    """What a chunk is called in a sentence: a method with its class."""
    return (
        ".".join(chunk.name.split(".")[-2:])
        if chunk.kind == "method"
        else chunk.name.rpartition(".")[2]
    )


def _framed(bug: BugReport, sources: SourceIndex) -> Iterator[Hint]:
    """Frames of packages, the innermost first."""
    for traceback in bug.tracebacks[:4]:
        for weight, raised in (
            (12.0, traceback),
            *((7.0, cause) for cause in traceback.chained[:2]),
        ):
            inside = [frame for frame in reversed(raised.frames) if frame.module_path]
            for depth, frame in enumerate(inside[:_FRAMES]):
                chunk = _of_frame(frame, sources)
                if chunk is not None:
                    why = (
                        shared("why_frame", exception=_last(raised), depth=depth)
                        if depth
                        else shared("why_raised", exception=_last(raised))
                    )
                    yield Hint(chunk, weight * 0.85**depth, why)


def _of_frame(frame: Frame, sources: SourceIndex) -> Chunk | None:
    """The definition of a frame: where its source line is now, else where its function is, else at
    its line.
    """
    if frame.code:
        moved = _line_of((frame.code.strip(),), frame.module_path, frame.line or 1, sources)
        if moved:
            return sources.around(frame.module_path, moved)
    there = sources.around(frame.module_path, frame.line) if frame.line else None
    last = frame.function.rpartition(".")[2]
    if there is None or not last.isidentifier() or there.name.endswith(f".{last}"):
        return there
    same = [chunk for chunk in sources.symbol(last, 20) if chunk.path == there.path]
    return min(same, key=lambda chunk: abs(chunk.start - (frame.line or 0)), default=there)


def _linked(bug: BugReport, issue: Issue, sources: SourceIndex) -> Iterator[Hint]:
    """Lines that the report links to; where it quotes them, they are found although they have
    moved.
    """
    quoted = pointers.quoted_lines(bug)
    for link in islice(pointers.links(issue.body), 8):
        line = _line_of(quoted, link.path, link.start or 1, sources) or link.start or 1
        chunk = sources.around(link.path, line)
        if chunk is not None:
            where = shared("linked_line", line=link.start) if link.start else shared("linked_file")
            yield Hint(chunk, 9.0 if link.start else 5.0, shared("why_linked", where=where))


def _line_of(quoted: Sequence[str], path: str, near: int, sources: SourceIndex) -> int:
    """The line of a file with one of the quoted lines, the nearest to the original place; 0 without
    any.
    """
    best: tuple[int, int] | None = None
    for first in range(1, 12_001, 2_000):
        part = sources.read(path, first, first + 1_999)
        if part is None:
            break
        wanted = set(quoted)
        for number, line in enumerate(part.text.split("\n"), first):
            if line.strip() in wanted and (best is None or abs(number - near) < best[0]):
                best = (abs(number - near), number)
    return best[1] if best is not None else 0


def _named(bug: BugReport, issue: Issue, sources: SourceIndex) -> Iterator[Hint]:
    """Definitions of the names in the report; a name with many definitions says little about
    each, and one with none is an attribute or an argument: whoever holds the word.
    """
    for name in pointers.names(bug, issue):
        found = [
            piece
            for piece in sources.symbol(name.text, 5)
            if piece.kind != "module" or "." in name.text
        ]
        share = _share(name.text, len(found))
        for place, chunk in enumerate(found[:3]):
            why = shared("why_named", name=name.text, where=name.where)
            yield Hint(chunk, name.weight * share / (1 + place), why)
        for part in name.text.split(".") if not found else ():
            if "_" in part.strip("_") or not (part.islower() or part.isupper()):
                for place, chunk in enumerate(sources.search(part, 4)):
                    yield Hint(
                        chunk,
                        name.weight * 0.6 / (1 + 0.4 * place),
                        shared("why_word", name=part, where=name.where),
                    )


def _share(name: str, definitions: int) -> float:
    if "." in name or definitions == 1:
        return 1.0
    plain = name.islower() and "_" not in name
    return 1 / (1 + definitions) if plain else 0.8 if definitions < 4 else 0.5


def _worded(bug: BugReport, issue: Issue, sources: SourceIndex) -> Iterator[Hint]:
    """What the words are like: of the title, of what was raised or warned, of the whole text."""
    raised = " ".join(
        f"{traceback.exception} {traceback.message[:300]}" for traceback in bug.tracebacks[:2]
    )
    warned = " ".join(warning.message[:300] for warning in bug.warnings[:2])
    asked = (
        (issue.title, 5.0, shared("why_title")),
        (raised, 4.0, shared("why_error")),
        (warned, 5.0, shared("why_warning")),
        (f"{issue.title} {pointers.prose(issue)}", 4.0, shared("why_text")),
    )
    for words, weight, why in asked:
        for place, chunk in enumerate(sources.search(words, 12) if words.strip() else ()):
            yield Hint(chunk, weight * chunk.score / (1 + 0.2 * place), why)


def _called(sources: SourceIndex, strongest: Sequence[Hint]) -> Iterator[Hint]:
    for hint in strongest:
        for place, chunk in enumerate(sources.callees(hint.chunk, 6)):
            why = shared("why_called", caller=short(hint.chunk))
            yield Hint(chunk, hint.weight * 0.3 / (1 + 0.2 * place), why)


def _learning(bug: BugReport, sources: SourceIndex) -> Iterator[Hint]:
    if bug.symptom in _LEARNING:
        for place, chunk in enumerate(sources.loops(3)):
            yield Hint(chunk, 2.0 / (1 + place), shared("why_loop"))


def _last(traceback: Traceback) -> str:
    return traceback.exception.rpartition(".")[2] or "error"
