"""BugReport + the available sources → ranked contexts, within a number of lines."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bot.issues.search import hints
from bot.issues.search.hints import Hint, short
from bot.kernel.bug import BugReport, Issue
from bot.kernel.dialogue import Interpretation, ReadAction, SearchAction
from bot.kernel.environment import Chunk, Context
from bot.kernel.ports import SourceIndex
from bot.kernel.source import outline, symbols
from bot.kernel.source.outline import (
    beyond,
    cut,
    fit_chunks,
    merge_chunks,
    module_of,
    size,
    trimmed,
)
from prompts import shared

# BugReport + the available sources → ranked contexts: the code that is relevant to the report,
# each line with the reason.
#
# First comes what the report points at (frames, linked lines, names, files, words of messages),
# then what that calls. Code with similar words comes in only where nothing is pointed at. Code to
# which several of these lead ranks higher. There is one context per module, because hypotheses
# differ by module (RepGen, arXiv 2512.14990).

_MOST = 4
_FIRST, _NEXT, _LEAST = 0.6, 0.5, 24
_PER_MODULE = 8
_FAINT = 0.12
_WEAK = 0.2
_CALLER_LINES = 20
_OVERLOADS = ("@overload", "@typing.overload", "@torch.jit._overload")


def contexts(
    bug: BugReport,
    issue: Issue,
    sources: SourceIndex,
    budget_lines: int = 200,
    *,
    lineage: Sequence[Chunk] = (),
    refined: Interpretation | None = None,
) -> tuple[Context, ...]:
    """At most four contexts, the most promising first, of about `budget_lines` lines in all; no
    line is in two. `lineage` are pieces that the history of the issue leads to (linked issues
    and pull requests), where someone knows it, `refined` a model's reading of the report.
    """
    ranked_chunks = ranking(bug, issue, sources, lineage, refined)
    results: list[Context] = []
    lines_left = budget_lines
    for path, chunks in by_module(ranked_chunks)[:_MOST]:
        pieces = [piece for context in results for piece in context.chunks]
        candidates = beyond(merge_chunks([*chunks, *_closure(sources, chunks)]), pieces)
        most = lines_left * _FIRST if not results else lines_left * _NEXT
        fitting = fit_chunks(candidates, max(int(most), _LEAST))
        if fitting and (not results or chunks[0].score >= ranked_chunks[0].score * _WEAK):
            lines_left -= size(fitting)
            results.append(_context(len(results) + 1, path, chunks, fitting))
    return tuple(results)


def _context(rank: int, path: str, chunks: Sequence[Chunk], pieces: Sequence[Chunk]) -> Context:
    first = max(chunks, key=lambda piece: piece.score)
    ordered = sorted(pieces, key=lambda piece: (piece.path != path, piece.path, piece.start))
    title = f"{first.name or path}: {first.why[0]}"
    return Context(rank=rank, title=title, module=module_of(path), chunks=tuple(ordered))


def ranking(
    bug: BugReport,
    issue: Issue,
    sources: SourceIndex,
    lineage: Sequence[Chunk] = (),
    refined: Interpretation | None = None,
) -> tuple[Chunk, ...]:
    """Every piece that is relevant to the report, best first, each with its score and reasons."""
    return _summed(hints.gather(bug, issue, sources, lineage, refined))


def _summed(hints: Iterable[Hint]) -> tuple[Chunk, ...]:
    """Pieces by the sum of what leads to them; more reasons of one kind count less each."""
    hints_by_chunk: dict[tuple[str, int, int], list[Hint]] = {}
    for hint in hints:
        hints_by_chunk.setdefault((hint.chunk.path, hint.chunk.start, hint.chunk.end), []).append(
            hint
        )
    chunks = []
    for several in hints_by_chunk.values():
        if several[0].chunk.text.lstrip().startswith(_OVERLOADS):
            continue
        ordered = sorted(several, key=lambda hint: (-hint.weight, hint.why))
        score = sum(hint.weight * 0.6**place for place, hint in enumerate(ordered))
        why = tuple(dict.fromkeys(hint.why for hint in ordered))
        focus = next((hint.chunk.focus for hint in ordered if hint.chunk.focus), 0)
        changes = {"score": round(score, 4), "why": why, "focus": focus}
        chunks.append(ordered[0].chunk.model_copy(update=changes))
    return tuple(sorted(chunks, key=lambda chunk: (-chunk.score, chunk.path, chunk.start)))


def by_module(ranked_chunks: Sequence[Chunk]) -> list[tuple[str, list[Chunk]]]:
    """The pieces by module; a module is worth its best piece and a part of the others."""
    groups: dict[str, list[Chunk]] = {}
    for chunk in ranked_chunks:
        groups.setdefault(chunk.path, []).append(chunk)
    worth = {
        path: sum(c.score * 0.25**place for place, c in enumerate(group))
        for path, group in groups.items()
    }
    ordered = sorted(groups, key=lambda path: (-worth[path], path))
    return [
        (path, [c for c in groups[path] if c.score >= groups[path][0].score * _FAINT][:_PER_MODULE])
        for path in ordered
    ]


def _closure(sources: SourceIndex, chunks: Sequence[Chunk]) -> list[Chunk]:
    """What is needed to build what the pieces are about: heads of the class and its constructor,
    and one who calls it.
    """
    definitions: list[Chunk] = []
    for owner in list(
        dict.fromkeys(_class_name(chunk) for chunk in chunks[:3] if _class_name(chunk))
    )[:2]:
        for name, why in (
            (owner, shared("why_owner")),
            (f"{owner}.__init__", shared("why_constructor", name=owner.rpartition(".")[2])),
        ):
            definitions += [_with(trimmed(chunk), why) for chunk in sources.symbol(name, 1)]
        definitions += _bases(sources, owner)
    main = chunks[0]
    for chunk in [caller for caller in sources.callers(main, 4) if caller.package == main.package][
        :2
    ]:
        calling = _calling(chunk, short(main).rpartition(".")[2])
        definitions += [_with(piece, shared("why_calls", name=short(main))) for piece in calling]
    return list(
        {chunk.text: chunk for chunk in reversed(definitions) if chunk.text.strip()}.values()
    )[::-1]


def _calling(chunk: Chunk, name: str) -> tuple[Chunk, ...]:
    """A caller, cut around the call."""
    lines = enumerate(chunk.text.split("\n"), chunk.start)
    at = next((number for number, line in lines if f"{name}(" in line), 0)
    return cut(chunk.model_copy(update={"focus": at}), _CALLER_LINES)


def _bases(sources: SourceIndex, owner: str) -> list[Chunk]:
    """Heads of the bases of a class that are of its own package."""
    chunks = []
    for chunk in sources.symbol(owner, 1):
        bases = symbols.bases(chunk.text, owner.rpartition(".")[2])
        for base in bases[:3]:
            definitions = sources.symbol(f"{outline.module_of(chunk.path)}.{base}", 1)
            chunks += [
                _with(trimmed(base_class), shared("why_base", name=short(chunk)))
                for base_class in definitions
                if base_class.package == chunk.package
            ]
    return chunks


def _class_name(chunk: Chunk) -> str:
    if chunk.kind == "class":
        return chunk.name
    return chunk.name.rpartition(".")[0] if chunk.kind == "method" else ""


def _with(chunk: Chunk, why: str) -> Chunk:
    return chunk.model_copy(update={"why": (*chunk.why, why)})


# A model's looks into the sources: what was found, and what has to be said about it.

_MOST_LINES = 160
_HITS = 5
_HIT_LINES = 50
_SMALL = 3


class LookUpResult(NamedTuple):
    """The pieces that a look found, and a remark on them ("" when there is nothing to say)."""

    pieces: Sequence[Chunk] = ()
    remark: str = ""


def request(wish: SearchAction | ReadAction) -> str:
    """A look into the sources, in a few words."""
    if isinstance(wish, SearchAction):
        return shared("search", query=repr(wish.query))
    return shared("read", path=wish.path, start=wish.start, end=wish.end)


def look_up(sources: SourceIndex | None, wish: SearchAction | ReadAction) -> LookUpResult:
    """The answer to one look into the sources."""
    if sources is None:
        return LookUpResult(remark=shared("no_sources"))
    return (
        _read_lines(sources, wish) if isinstance(wish, ReadAction) else _search(sources, wish.query)
    )


def _read_lines(sources: SourceIndex, wish: ReadAction) -> LookUpResult:
    path = wish.path.lstrip("/")
    end = min(max(wish.end, wish.start), wish.start + _MOST_LINES - 1)
    chunk = sources.read(path, wish.start, end)
    if chunk is None:
        first_line = sources.read(path, 1, 1)
        missing = "no_file" if first_line is None else "past_end"
        return LookUpResult(remark=shared(missing, path=repr(wish.path[:200])))
    if sources.read(path, chunk.end + 1, chunk.end + 1) is None:
        return LookUpResult((chunk,), shared("end_of_file", path=chunk.path, line=chunk.end))
    return LookUpResult(
        (chunk,), shared("read_cut", line=chunk.end + 1) if chunk.end < wish.end else ""
    )


def _search(sources: SourceIndex, query: str) -> LookUpResult:
    """Definitions of a name and where the query stands as it is written go before what shares
    words with it.
    """
    text = query.strip().strip("`'\"")
    exact = [*sources.symbol(text, _SMALL), *sources.literal(text, _HITS)]
    if not exact:
        exact = [hit for word in text.split() for hit in _definitions(sources, word)]
    if exact:
        return LookUpResult(_cut(exact))
    loose = sources.search(query, _HITS)
    remark = "only_words" if loose else "not_found"
    return LookUpResult(_cut(loose), shared(remark, query=repr(query[:200])))


def _definitions(sources: SourceIndex, word: str) -> Sequence[Chunk]:
    """A word of a query that is the name of something: it has a capital, a dot or an underscore."""
    name = word.strip("`'\"(),:;=")
    telling = "_" in name.strip("_") or "." in name.strip(".") or name[1:] != name[1:].lower()
    return (*sources.symbol(name, 2), *sources.literal(name, 2)) if telling else ()


def _cut(pieces: Sequence[Chunk]) -> Sequence[Chunk]:
    """At most so many, none twice, each cut around what was asked for."""
    distinct_pieces = beyond(merge_chunks(pieces)[:_HITS], ())
    return [part for piece in distinct_pieces for part in cut(piece, _HIT_LINES)]
