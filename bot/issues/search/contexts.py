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
from bot.kernel.source.outline import beyond, cut, fitted, merged, module_of, size, trimmed
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
    ranked = ranking(bug, issue, sources, lineage, refined)
    made: list[Context] = []
    left = budget_lines
    for path, chunks in by_module(ranked)[:_MOST]:
        known = [piece for each in made for piece in each.chunks]
        wanted = beyond(merged([*chunks, *_closure(sources, chunks)]), known)
        most = left * _FIRST if not made else left * _NEXT
        kept = fitted(wanted, max(int(most), _LEAST))
        if kept and (not made or chunks[0].score >= ranked[0].score * _WEAK):
            left -= size(kept)
            made.append(_context(len(made) + 1, path, chunks, kept))
    return tuple(made)


def _context(rank: int, path: str, chunks: Sequence[Chunk], kept: Sequence[Chunk]) -> Context:
    first = max(chunks, key=lambda piece: piece.score)
    ordered = sorted(kept, key=lambda piece: (piece.path != path, piece.path, piece.start))
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
    return _summed(hints.gathered(bug, issue, sources, lineage, refined))


def _summed(found: Iterable[Hint]) -> tuple[Chunk, ...]:
    """Pieces by the sum of what leads to them; more reasons of one kind count less each."""
    gathered: dict[tuple[str, int, int], list[Hint]] = {}
    for hint in found:
        gathered.setdefault((hint.chunk.path, hint.chunk.start, hint.chunk.end), []).append(hint)
    made = []
    for several in gathered.values():
        if several[0].chunk.text.lstrip().startswith(_OVERLOADS):
            continue
        ordered = sorted(several, key=lambda hint: (-hint.weight, hint.why))
        score = sum(hint.weight * 0.6**place for place, hint in enumerate(ordered))
        why = tuple(dict.fromkeys(hint.why for hint in ordered))
        focus = next((hint.chunk.focus for hint in ordered if hint.chunk.focus), 0)
        changes = {"score": round(score, 4), "why": why, "focus": focus}
        made.append(ordered[0].chunk.model_copy(update=changes))
    return tuple(sorted(made, key=lambda chunk: (-chunk.score, chunk.path, chunk.start)))


def by_module(ranked: Sequence[Chunk]) -> list[tuple[str, list[Chunk]]]:
    """The pieces by module; a module is worth its best piece and a part of the others."""
    groups: dict[str, list[Chunk]] = {}
    for chunk in ranked:
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
    found: list[Chunk] = []
    for owner in list(
        dict.fromkeys(_class_name(chunk) for chunk in chunks[:3] if _class_name(chunk))
    )[:2]:
        for name, why in (
            (owner, shared("why_owner")),
            (f"{owner}.__init__", shared("why_constructor", name=owner.rpartition(".")[2])),
        ):
            found += [_with(trimmed(chunk), why) for chunk in sources.symbol(name, 1)]
        found += _bases(sources, owner)
    main = chunks[0]
    for chunk in [each for each in sources.callers(main, 4) if each.package == main.package][:2]:
        calling = _calling(chunk, short(main).rpartition(".")[2])
        found += [_with(piece, shared("why_calls", name=short(main))) for piece in calling]
    return list({chunk.text: chunk for chunk in reversed(found) if chunk.text.strip()}.values())[
        ::-1
    ]


def _calling(chunk: Chunk, name: str) -> tuple[Chunk, ...]:
    """A caller, cut around the call."""
    lines = enumerate(chunk.text.split("\n"), chunk.start)
    at = next((number for number, line in lines if f"{name}(" in line), 0)
    return cut(chunk.model_copy(update={"focus": at}), _CALLER_LINES)


def _bases(sources: SourceIndex, owner: str) -> list[Chunk]:
    """Heads of the bases of a class that are of its own package."""
    found = []
    for chunk in sources.symbol(owner, 1):
        named = symbols.bases(chunk.text, owner.rpartition(".")[2])
        for base in named[:3]:
            known = sources.symbol(f"{outline.module_of(chunk.path)}.{base}", 1)
            found += [
                _with(trimmed(base_class), shared("why_base", name=short(chunk)))
                for base_class in known
                if base_class.package == chunk.package
            ]
    return found


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


class Found(NamedTuple):
    """The pieces that a look found, and a remark on them ("" when there is nothing to say)."""

    pieces: Sequence[Chunk] = ()
    remark: str = ""


def request(wish: SearchAction | ReadAction) -> str:
    """A look into the sources, in a few words."""
    if isinstance(wish, SearchAction):
        return shared("search", query=repr(wish.query))
    return shared("read", path=wish.path, start=wish.start, end=wish.end)


def look_up(sources: SourceIndex | None, wish: SearchAction | ReadAction) -> Found:
    """The answer to one look into the sources."""
    if sources is None:
        return Found(remark=shared("no_sources"))
    return _read(sources, wish) if isinstance(wish, ReadAction) else _searched(sources, wish.query)


def _read(sources: SourceIndex, wish: ReadAction) -> Found:
    path = wish.path.lstrip("/")
    end = min(max(wish.end, wish.start), wish.start + _MOST_LINES - 1)
    found = sources.read(path, wish.start, end)
    if found is None:
        known = sources.read(path, 1, 1)
        missing = "no_file" if known is None else "past_end"
        return Found(remark=shared(missing, path=repr(wish.path[:200])))
    if sources.read(path, found.end + 1, found.end + 1) is None:
        return Found((found,), shared("end_of_file", path=found.path, line=found.end))
    return Found((found,), shared("read_cut", line=found.end + 1) if found.end < wish.end else "")


def _searched(sources: SourceIndex, query: str) -> Found:
    """Definitions of a name and where the query stands as it is written go before what shares
    words with it.
    """
    text = query.strip().strip("`'\"")
    exact = [*sources.symbol(text, _SMALL), *sources.literal(text, _HITS)]
    if not exact:
        exact = [hit for word in text.split() for hit in _named(sources, word)]
    if exact:
        return Found(_cut(exact))
    loose = sources.search(query, _HITS)
    remark = "only_words" if loose else "not_found"
    return Found(_cut(loose), shared(remark, query=repr(query[:200])))


def _named(sources: SourceIndex, word: str) -> Sequence[Chunk]:
    """A word of a query that is the name of something: it has a capital, a dot or an underscore."""
    name = word.strip("`'\"(),:;=")
    telling = "_" in name.strip("_") or "." in name.strip(".") or name[1:] != name[1:].lower()
    return (*sources.symbol(name, 2), *sources.literal(name, 2)) if telling else ()


def _cut(pieces: Sequence[Chunk]) -> Sequence[Chunk]:
    """At most so many, none twice, each cut around what was asked for."""
    kept = beyond(merged(pieces)[:_HITS], ())
    return [part for piece in kept for part in cut(piece, _HIT_LINES)]
