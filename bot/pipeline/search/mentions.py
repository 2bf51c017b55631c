"""What the report's words name exactly: definitions, files, arguments, words of messages."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bot.models.bug import BugReport, Issue
from bot.models.dialogue import Interpretation
from bot.models.environment import Chunk
from bot.models.signature import CrashSignature, WarningSignature, members_of
from bot.ports import SourceIndex
from bot.rules.code import literal, named_files, pointers
from bot.rules.code.line_budget import cut
from bot.rules.code.pointers import Name
from bot.rules.parsing import tree_of
from prompts import shared

_MANY = 8
_MOST_WINDOWS = 10
_HIT_LINES = 50
_READ = 2_000
_ENTRIES = ("__init__", "forward", "__call__")


class Hint(NamedTuple):
    """A piece that something in the report leads to, how strongly, and why."""

    chunk: Chunk
    weight: float
    why: str


def named(names: Iterable[Name], sources: SourceIndex) -> Iterator[Hint]:
    """Definitions of names, a class with its constructor and its call; a name with many
    definitions says little about each, and one with none is an attribute or an argument: whoever
    holds the word.
    """
    for name in names:
        found = [
            piece
            for piece in sources.symbol(name.text, 5)
            if piece.kind != "module" or "." in name.text
        ]
        share = _share(name.text, len(found))
        why = shared("why_named", name=name.text, where=name.where)
        for place, chunk in enumerate(found[:3]):
            yield Hint(chunk, name.weight * share / (1 + place), why)
        if len(found) == 1 and found[0].kind == "class":
            yield from _entries(found[0], name.weight * share, why, sources)
        if not found:
            yield from _holders(name, sources)


def read(refined: Interpretation) -> Iterator[Name]:
    """The names in a model's reading of the report, most specific first."""
    for place, text in enumerate(refined.api[:6]):
        yield Name(text, 11.0 * 0.8**place, shared("reading"))


def files(
    issue: Issue,
    sources: SourceIndex,
    pointed: Iterable[Hint],
    refined: Interpretation | None = None,
) -> Iterator[Hint]:
    """The files that the report or the reading names: what else points into them, else the
    definitions that share most words with the report.
    """
    known = list(pointed)
    place = refined.signature if refined is not None else None
    read = (place.frame,) if isinstance(place, CrashSignature) and place.frame else ()
    for text in (*read, *named_files.named(issue)):
        path = pointers.installed(text, sources.files())
        why = shared("why_file", name=text.rpartition("/")[2])
        inside = [hint for hint in known if hint.chunk.path == path]
        for hint in inside:
            yield Hint(hint.chunk, hint.weight * 0.5, why)
        if path is not None and not inside:
            yield from _inside(path, issue, sources, why)


def messages(
    bug: BugReport, issue: Issue, sources: SourceIndex, refined: Interpretation | None = None
) -> Iterator[Hint]:
    """Where the literal words of a quoted message stand: the pieces that hold most of them."""
    for message in dict.fromkeys(_quoted(bug, issue, refined)):
        held: Counter[tuple[str, int]] = Counter()
        chunks: dict[tuple[str, int], Chunk] = {}
        for words in literal.windows(message)[:_MOST_WINDOWS]:
            hits = sources.literal(words, _MANY)
            for chunk in hits if len(hits) < _MANY else ():
                chunks.setdefault((chunk.path, chunk.start), chunk)
                held[chunk.path, chunk.start] += 1
        best = [at for at in held if held[at] == max(held.values())]
        for place, at in enumerate(best[:3]):
            weight = 10.0 * chunks[at].score ** 2 / (len(best) ** 0.5 + place)
            for piece in cut(chunks[at], _HIT_LINES):
                yield Hint(piece, weight, shared("why_message"))


def _quoted(bug: BugReport, issue: Issue, refined: Interpretation | None) -> Iterator[str]:
    for raised in bug.tracebacks[:3]:
        yield from (each.message for each in (raised, *raised.chained[:2]))
    yield from (warning.message for warning in bug.warnings[:2])
    found = refined.signature if refined is not None else None
    for member in members_of(found) if found is not None else ():
        if isinstance(member, CrashSignature | WarningSignature):
            yield member.message
    texts = pointers.ticked(f"{issue.title}\n{pointers.prose(issue)}")
    yield from [text for text in texts if tree_of(text) is None][:4]


def _entries(owner: Chunk, weight: float, why: str, sources: SourceIndex) -> Iterator[Hint]:
    """How an object of a class is made and called."""
    for place, name in enumerate(_ENTRIES):
        found = sources.symbol(f"{owner.name}.{name}", 1)
        for chunk in found:
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
    whole = sources.read(path, 1, _READ)
    for place, segment in enumerate(
        named_files.telling(path, whole.text, issue, 3) if whole is not None else ()
    ):
        chunk = sources.around(path, segment.start)
        if chunk is not None:
            yield Hint(chunk.model_copy(update={"focus": 0}), 8.0 / (1 + place), why)


def _share(name: str, definitions: int) -> float:
    if "." in name or definitions == 1:
        return 1.0
    plain = name.islower() and "_" not in name
    return 1 / (1 + definitions) if plain else 0.8 if definitions < 4 else 0.5
