"""BugReport + the available sources → ranked contexts: the code that is relevant to the report,
each line with the reason.

First comes what the report points at (frames, linked lines, names, files, words of messages), then
what that calls. Code with similar words comes in only where nothing is pointed at. Code to which
several of these lead ranks higher. There is one context per module, because hypotheses differ by
module (RepGen, arXiv 2512.14990).
"""

from collections.abc import Iterable, Sequence

from bot.models.bug import BugReport, Issue
from bot.models.dialogue import Interpretation
from bot.models.environment import Chunk, Context
from bot.pipeline.search import hints
from bot.pipeline.search.hints import short
from bot.pipeline.search.mentions import Hint
from bot.ports import SourceIndex
from bot.rules.code import imports, outline
from bot.rules.code.line_budget import beyond, cut, fitted, merged, size, trimmed
from bot.rules.code.outline import module_of
from prompts import shared

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
        named = imports.bases(chunk.text, owner.rpartition(".")[2])
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
