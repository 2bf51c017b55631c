"""BugReport + the available sources → hints: each piece of code that something in the report leads
to, how strongly, and why.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from bot.models.bug import BugReport, Frame, Issue, Symptom, Traceback
from bot.models.dialogue import Interpretation
from bot.models.environment import Chunk
from bot.pipeline.search import mentions
from bot.pipeline.search.mentions import Hint
from bot.ports import SourceIndex
from bot.rules.code import pointers
from prompts import shared

_FRAMES = 12
_FOLLOWED = 6
_EXACT = 4.0
_LEARNING = {Symptom.NOT_LEARNING, Symptom.NONFINITE}


def gathered(
    bug: BugReport,
    issue: Issue,
    sources: SourceIndex,
    lineage: Sequence[Chunk] = (),
    refined: Interpretation | None = None,
) -> tuple[Hint, ...]:
    """What the report (and a model's reading of it) points at, what the strongest of these call,
    and training loops; what has similar words only where nothing is pointed at.
    """
    names = (*(mentions.read(refined) if refined is not None else ()), *pointers.names(bug, issue))
    pointed = [
        *(Hint(chunk, 7.0, shared("why_lineage")) for chunk in lineage),
        *_framed(bug, sources),
        *_linked(bug, issue, sources),
        *mentions.messages(bug, issue, sources, refined),
        *mentions.named(names, sources),
    ]
    pointed += mentions.files(issue, sources, pointed, refined)
    strongest = sorted(pointed, key=lambda hint: -hint.weight)[:_FOLLOWED]
    return (
        *pointed,
        *_worded(bug, issue, sources, pointed),
        *_called(sources, strongest),
        *(_learning(bug, sources) if not _exact(pointed) else ()),
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


def _exact(pointed: Sequence[Hint]) -> bool:
    return any(hint.weight >= _EXACT for hint in pointed)


def _worded(
    bug: BugReport, issue: Issue, sources: SourceIndex, pointed: Sequence[Hint]
) -> Iterator[Hint]:
    """What the words are like: of the title, of what was raised or warned, of the whole text. On
    their own they count only where nothing exact was found.
    """
    exact = _exact(pointed)
    known = {(hint.chunk.path, hint.chunk.start) for hint in pointed}
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
            if not exact or (chunk.path, chunk.start) in known:
                yield Hint(chunk, weight * chunk.score / (1 + 0.2 * place), why)


def _called(sources: SourceIndex, strongest: Sequence[Hint]) -> Iterator[Hint]:
    """What these call in their own package; what they call of another one is rarely at fault."""
    for hint in strongest:
        called = sources.callees(hint.chunk, 12)
        own = (chunk for chunk in called if chunk.package == hint.chunk.package)
        for place, chunk in enumerate(islice(own, 6)):
            why = shared("why_called", caller=short(hint.chunk))
            yield Hint(chunk, hint.weight * 0.4 / (1 + 0.2 * place), why)


def _learning(bug: BugReport, sources: SourceIndex) -> Iterator[Hint]:
    if bug.symptom in _LEARNING:
        for place, chunk in enumerate(sources.loops(3)):
            yield Hint(chunk, 2.0 / (1 + place), shared("why_loop"))


def _last(traceback: Traceback) -> str:
    return traceback.exception.rpartition(".")[2] or "error"
