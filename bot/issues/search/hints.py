"""What in a report leads to which code: words, names, quoted lines."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bot.kernel.bug import (
    BugReport,
    CrashSignature,
    Frame,
    Issue,
    Symptom,
    Traceback,
    WarningSignature,
    members_of,
)
from bot.kernel.dialogue import Interpretation
from bot.kernel.environment import Chunk
from bot.kernel.ports import SourceIndex
from bot.kernel.source import index
from bot.kernel.source.index import Name, identifiers, index_words, query_words
from bot.kernel.source.outline import Segment, cut, outline
from bot.kernel.source.syntax import tree_of
from prompts import shared

# The Python files that a report's words name, and which definitions of such a file to look at.

_FILE = re.compile(r"(?<![\w.@-])/?(?:[\w.-]{1,80}/){0,12}[\w-]{1,80}\.py(?![\w/])")
_MOST = 6


def files_named(issue: Issue) -> Iterator[str]:
    """Paths in the title, then in the words of the body, each once."""
    names = _FILE.findall(f"{issue.title}\n{index.prose(issue)}")
    yield from list(dict.fromkeys(names))[:_MOST]


def telling(path: str, text: str, issue: Issue, most: int) -> Sequence[Segment]:
    """The definitions of a file that share most words with the report."""
    query = set(query_words(f"{issue.title} {index.prose(issue)}", 200))
    lines = text.split("\n")
    worth: dict[Segment, float] = {}
    for segment in outline(text, path):
        own = set(
            index_words(identifiers("\n".join(lines[segment.start - 1 : segment.end]))).split()
        )
        name = set(index_words(identifiers(segment.simple_name)).split())
        worth[segment] = (len(query & own) + 2 * len(query & name)) / (8 + len(own)) ** 0.5
    defined = [segment for segment in worth if segment.kind != "module"] or list(worth)
    return sorted(defined, key=lambda segment: (-worth[segment], segment.start))[:most]


# What the report's words name exactly: definitions, files, arguments, words of messages.

_MANY = 8
_MOST_WINDOWS = 10
_HIT_LINES = 50
_READ_LINES = 2_000
_ENTRIES = ("__init__", "forward", "__call__")


class Hint(NamedTuple):
    """A piece that something in the report leads to, how strongly, and why."""

    chunk: Chunk
    weight: float
    why: str


def named_definitions(names: Iterable[Name], sources: SourceIndex) -> Iterator[Hint]:
    """Definitions of names, a class with its constructor and its call; a name with many
    definitions says little about each, and one with none is an attribute or an argument: whoever
    holds the word.
    """
    for name in names:
        chunks = [
            piece
            for piece in sources.symbol(name.text, 5)
            if piece.kind != "module" or "." in name.text
        ]
        share = _share(name.text, len(chunks))
        why = shared("why_named", name=name.text, where=name.where)
        for place, chunk in enumerate(chunks[:3]):
            yield Hint(chunk, name.weight * share / (1 + place), why)
        if len(chunks) == 1 and chunks[0].kind == "class":
            yield from _entries(chunks[0], name.weight * share, why, sources)
        if not chunks:
            yield from _holders(name, sources)


def names_of_reading(refined: Interpretation) -> Iterator[Name]:
    """The names in a model's reading of the report, most specific first."""
    for place, text in enumerate(refined.api[:6]):
        yield Name(text, 11.0 * 0.8**place, shared("reading"))


def files(
    issue: Issue,
    sources: SourceIndex,
    hints_before: Iterable[Hint],
    refined: Interpretation | None = None,
) -> Iterator[Hint]:
    """The files that the report or the reading names: what else points into them, else the
    definitions that share most words with the report.
    """
    hints = list(hints_before)
    place = refined.signature if refined is not None else None
    frames = (place.frame,) if isinstance(place, CrashSignature) and place.frame else ()
    for text in (*frames, *files_named(issue)):
        path = index.installed_file(text, sources.files())
        why = shared("why_file", name=text.rpartition("/")[2])
        inside = [hint for hint in hints if hint.chunk.path == path]
        for hint in inside:
            yield Hint(hint.chunk, hint.weight * 0.5, why)
        if path is not None and not inside:
            yield from _inside(path, issue, sources, why)


def messages(
    bug: BugReport, issue: Issue, sources: SourceIndex, refined: Interpretation | None = None
) -> Iterator[Hint]:
    """Where the literal words of a quoted message stand: the pieces that hold most of them."""
    for message in dict.fromkeys(_quoted_messages(bug, issue, refined)):
        counts: Counter[tuple[str, int]] = Counter()
        chunks: dict[tuple[str, int], Chunk] = {}
        for words in index.windows(message)[:_MOST_WINDOWS]:
            hits = sources.literal(words, _MANY)
            for chunk in hits if len(hits) < _MANY else ():
                chunks.setdefault((chunk.path, chunk.start), chunk)
                counts[chunk.path, chunk.start] += 1
        best = [at for at in counts if counts[at] == max(counts.values())]
        for place, at in enumerate(best[:3]):
            weight = 10.0 * chunks[at].score ** 2 / (len(best) ** 0.5 + place)
            for piece in cut(chunks[at], _HIT_LINES):
                yield Hint(piece, weight, shared("why_message"))


def _quoted_messages(bug: BugReport, issue: Issue, refined: Interpretation | None) -> Iterator[str]:
    for traceback in bug.tracebacks[:3]:
        yield from (traceback.message for traceback in (traceback, *traceback.chained[:2]))
    yield from (warning.message for warning in bug.warnings[:2])
    signature = refined.signature if refined is not None else None
    for member in members_of(signature) if signature is not None else ():
        if isinstance(member, CrashSignature | WarningSignature):
            yield member.message
    texts = index.code_spans(f"{issue.title}\n{index.prose(issue)}")
    yield from [text for text in texts if tree_of(text) is None][:4]


def _entries(owner: Chunk, weight: float, why: str, sources: SourceIndex) -> Iterator[Hint]:
    """How an object of a class is made and called."""
    for place, name in enumerate(_ENTRIES):
        definitions = sources.symbol(f"{owner.name}.{name}", 1)
        for chunk in definitions:
            if chunk.path == owner.path and chunk.name == f"{owner.name}.{name}":
                yield Hint(chunk, weight * 0.6 * 0.8**place, why)


def _holders(name: Name, sources: SourceIndex) -> Iterator[Hint]:
    """Pieces that hold the parts of a name as they are written."""
    for part in name.text.split("."):
        if "_" in part.strip("_") or not (part.islower() or part.isupper()):
            hits = sources.literal(part, _MANY)
            rare = 1.0 if len(hits) < 3 else 0.6 if len(hits) < _MANY else 0.3
            for place, chunk in enumerate(hits[:4]):
                why = shared("why_word", name=part, where=name.where)
                weight = name.weight * 0.6 * rare * chunk.score / (1 + 0.4 * place)
                for piece in cut(chunk, _HIT_LINES):
                    yield Hint(piece, weight, why)


def _inside(path: str, issue: Issue, sources: SourceIndex, why: str) -> Iterator[Hint]:
    whole = sources.read(path, 1, _READ_LINES)
    for place, segment in enumerate(
        telling(path, whole.text, issue, 3) if whole is not None else ()
    ):
        chunk = sources.around(path, segment.start)
        if chunk is not None:
            yield Hint(chunk.model_copy(update={"focus": 0}), 8.0 / (1 + place), why)


def _share(name: str, definitions: int) -> float:
    if "." in name or definitions == 1:
        return 1.0
    plain = name.islower() and "_" not in name
    return 1 / (1 + definitions) if plain else 0.8 if definitions < 4 else 0.5


# BugReport + the available sources → hints: each piece of code that something in the report leads
# to, how strongly, and why.

_FRAMES = 12
_MOST_FOLLOWED = 6
_EXACT = 4.0
_LEARNING = {Symptom.NOT_LEARNING, Symptom.NONFINITE}


def gather(
    bug: BugReport,
    issue: Issue,
    sources: SourceIndex,
    lineage: Sequence[Chunk] = (),
    refined: Interpretation | None = None,
) -> tuple[Hint, ...]:
    """What the report (and a model's reading of it) points at, what the strongest of these call,
    and training loops; what has similar words only where nothing is pointed at.
    """
    names = (*(names_of_reading(refined) if refined is not None else ()), *index.names(bug, issue))
    hints = [
        *(Hint(chunk, 7.0, shared("why_lineage")) for chunk in lineage),
        *_hints_of_frames(bug, sources),
        *_hints_of_links(bug, issue, sources),
        *messages(bug, issue, sources, refined),
        *named_definitions(names, sources),
    ]
    hints += files(issue, sources, hints, refined)
    strongest = sorted(hints, key=lambda hint: -hint.weight)[:_MOST_FOLLOWED]
    return (
        *hints,
        *_hints_of_words(bug, issue, sources, hints),
        *_hints_of_calls(sources, strongest),
        *(_learning(bug, sources) if not _exact(hints) else ()),
    )


def short(chunk: Chunk) -> str:
    """What a chunk is called in a sentence: a method with its class."""
    return (
        ".".join(chunk.name.split(".")[-2:])
        if chunk.kind == "method"
        else chunk.name.rpartition(".")[2]
    )


def _hints_of_frames(bug: BugReport, sources: SourceIndex) -> Iterator[Hint]:
    """Frames of packages, the innermost first."""
    for traceback in bug.tracebacks[:4]:
        for weight, failure in (
            (12.0, traceback),
            *((7.0, cause) for cause in traceback.chained[:2]),
        ):
            inside = [frame for frame in reversed(failure.frames) if frame.module_path]
            for depth, frame in enumerate(inside[:_FRAMES]):
                chunk = _of_frame(frame, sources)
                if chunk is not None:
                    why = (
                        shared("why_frame", exception=_last(failure), depth=depth)
                        if depth
                        else shared("why_raised", exception=_last(failure))
                    )
                    yield Hint(chunk, weight * 0.85**depth, why)


def _of_frame(frame: Frame, sources: SourceIndex) -> Chunk | None:
    """The definition of a frame: where its source line is now, else where its function is, else at
    its line.
    """
    if frame.code:
        line = _line_of((frame.code.strip(),), frame.module_path, frame.line or 1, sources)
        if line:
            return sources.around(frame.module_path, line)
    there = sources.around(frame.module_path, frame.line) if frame.line else None
    last = frame.function.rpartition(".")[2]
    if there is None or not last.isidentifier() or there.name.endswith(f".{last}"):
        return there
    same = [chunk for chunk in sources.symbol(last, 20) if chunk.path == there.path]
    return min(same, key=lambda chunk: abs(chunk.start - (frame.line or 0)), default=there)


def _hints_of_links(bug: BugReport, issue: Issue, sources: SourceIndex) -> Iterator[Hint]:
    """Lines that the report links to; where it quotes them, they are found although they have
    moved.
    """
    lines = index.quoted_lines(bug)
    for link in islice(index.links(issue.body), 8):
        line = _line_of(lines, link.path, link.start or 1, sources) or link.start or 1
        chunk = sources.around(link.path, line)
        if chunk is not None:
            where = shared("linked_line", line=link.start) if link.start else shared("linked_file")
            yield Hint(chunk, 9.0 if link.start else 5.0, shared("why_linked", where=where))


def _line_of(lines: Sequence[str], path: str, near: int, sources: SourceIndex) -> int:
    """The line of a file with one of the quoted lines, the nearest to the original place; 0 without
    any.
    """
    best: tuple[int, int] | None = None
    for first in range(1, 12_001, 2_000):
        part = sources.read(path, first, first + 1_999)
        if part is None:
            break
        lines_to_match = set(lines)
        for number, line in enumerate(part.text.split("\n"), first):
            if line.strip() in lines_to_match and (best is None or abs(number - near) < best[0]):
                best = (abs(number - near), number)
    return best[1] if best is not None else 0


def _exact(hints: Sequence[Hint]) -> bool:
    return any(hint.weight >= _EXACT for hint in hints)


def _hints_of_words(
    bug: BugReport, issue: Issue, sources: SourceIndex, hints: Sequence[Hint]
) -> Iterator[Hint]:
    """What the words are like: of the title, of what was raised or warned, of the whole text. On
    their own they count only where nothing exact was found.
    """
    exact = _exact(hints)
    positions = {(hint.chunk.path, hint.chunk.start) for hint in hints}
    exception_text = " ".join(
        f"{traceback.exception} {traceback.message[:300]}" for traceback in bug.tracebacks[:2]
    )
    warning_text = " ".join(warning.message[:300] for warning in bug.warnings[:2])
    queries = (
        (issue.title, 5.0, shared("why_title")),
        (exception_text, 4.0, shared("why_error")),
        (warning_text, 5.0, shared("why_warning")),
        (f"{issue.title} {index.prose(issue)}", 4.0, shared("why_text")),
    )
    for words, weight, why in queries:
        for place, chunk in enumerate(sources.search(words, 12) if words.strip() else ()):
            if not exact or (chunk.path, chunk.start) in positions:
                yield Hint(chunk, weight * chunk.score / (1 + 0.2 * place), why)


def _hints_of_calls(sources: SourceIndex, strongest: Sequence[Hint]) -> Iterator[Hint]:
    """What these call in their own package; what they call of another one is rarely at fault."""
    for hint in strongest:
        callees = sources.callees(hint.chunk, 12)
        own = (chunk for chunk in callees if chunk.package == hint.chunk.package)
        for place, chunk in enumerate(islice(own, 6)):
            why = shared("why_called", caller=short(hint.chunk))
            yield Hint(chunk, hint.weight * 0.4 / (1 + 0.2 * place), why)


def _learning(bug: BugReport, sources: SourceIndex) -> Iterator[Hint]:
    if bug.symptom in _LEARNING:
        for place, chunk in enumerate(sources.loops(3)):
            yield Hint(chunk, 2.0 / (1 + place), shared("why_loop"))


def _last(traceback: Traceback) -> str:
    return traceback.exception.rpartition(".")[2] or "error"
