"""BugReport + the available sources → ranked contexts, within a number of lines."""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from bot.issues.search import hints
from bot.issues.search.hints import Hint, short
from bot.issues.signature.data_flow import names_in
from bot.kernel import tree_programs
from bot.kernel.bug import BugReport, Issue
from bot.kernel.dialogue import Interpretation, ReadAction, SearchAction
from bot.kernel.environment import Chunk, Context
from bot.kernel.ports import SourceIndex
from bot.kernel.source.index import (
    code_spans,
    identifiers,
    index_words,
    installed_file,
    is_secondary,
)
from bot.kernel.source.outline import (
    beyond,
    body,
    class_line,
    cut,
    fit_chunks,
    merge_chunks,
    module_of,
    nonempty_lines,
    size,
)
from bot.kernel.source.syntax import name_of, tree_of, tree_of_lines
from bot.kernel.trees import Tree
from prompts import shared

# BugReport + the available sources → ranked contexts: the code that is relevant to the report,
# each line with the reason.
#
# First comes what the report points at (frames, linked lines, names, files, words of messages),
# then what that calls. Code with similar words comes in only where nothing is pointed at. Code to
# which several of these lead ranks higher. There is one context per module, because hypotheses
# differ by module (RepGen, arXiv 2512.14990).

_MOST = 4
_FIRST, _NEXT, _LEAST = 0.72, 0.5, 16
_PER_MODULE = 8
_FAINT = 0.12
_WEAK = 0.18
_CALLER_LINES = 12
_MOST_CALLED, _CALLED_LINES = 2, 40
_LONG_BODY = 40
_CONSTRUCTOR_LINES = 30
_MODULE_LINES, _TABLE_LINES, _MOST_USERS = 20_000, 12, 3
_BODIES = {"function", "method"}
_VALUES = (
    *(ast.Constant, ast.Dict, ast.List, ast.Set, ast.Tuple, ast.UnaryOp, ast.BinOp),
    *(ast.DictComp, ast.ListComp, ast.SetComp),
)
_MAKERS = {"dict", "frozenset", "list", "set", "tuple", "OrderedDict", "defaultdict"}
_HEAD = 0.5
_MOST_OTHERS = 3
_OVERLOADS = ("@overload", "@typing.overload", "@torch.jit._overload")


def contexts(
    bug: BugReport,
    issue: Issue,
    sources: SourceIndex,
    budget_lines: int = 130,
    *,
    lineage: Sequence[Chunk] = (),
    refined: Interpretation | None = None,
) -> tuple[Context, ...]:
    """At most four contexts, the most promising first, of about `budget_lines` lines in all; no
    line is in two. `lineage` are pieces that the history of the issue leads to (linked issues
    and pull requests), where someone knows it, `refined` a model's reading of the report.
    """
    ranked_chunks = ranking(bug, issue, sources, lineage, refined)
    words = hints.words_of(issue, refined)
    results: list[Context] = []
    lines_left = budget_lines
    for path, chunks in by_module(ranked_chunks)[:_MOST]:
        pieces = [piece for context in results for piece in context.chunks]
        closure = [*_tables(sources, chunks), *_closure(sources, chunks, first=not results)]
        ends, others = ((), ()) if results else _beyond_module(ranked_chunks, chunks)
        strongest = sorted([*chunks, *ends], key=lambda chunk: -chunk.score)
        candidates = _telling([*strongest, *closure, *others], pieces, words)
        most = lines_left * _FIRST if not results else lines_left * _NEXT
        fitting = fit_chunks(candidates, max(int(most), _LEAST))
        if not results:
            called = _telling(_called(ranked_chunks, chunks[0], fitting), fitting, words)
            room = min(lines_left - size(fitting), _CALLED_LINES)
            fitting = (*fitting, *(fit_chunks(called, room) if called and room >= _LEAST else ()))
        if fitting and (
            not results or chunks[0].score >= ranked_chunks[0].score * _WEAK * len(results)
        ):
            lines_left -= size(fitting)
            results.append(_context(len(results) + 1, path, chunks, fitting))
    return tuple(results)


def _beyond_module(
    ranked_chunks: Sequence[Chunk], chunks: Sequence[Chunk]
) -> tuple[Sequence[Chunk], Sequence[Chunk]]:
    """What belongs to the pieces of a module although it is in others: what raises the quoted
    message, and the strongest bodies of the package, for the room that is left. Tests raise
    nothing, and to what is installed more than words has to lead from a repository.
    """
    why = shared("why_message")
    words = {why, *map(shared, ("why_title", "why_error", "why_warning", "why_text"))}
    others = [chunk for chunk in ranked_chunks if chunk.path != chunks[0].path]
    ends = [
        chunk
        for chunk in others
        if why in chunk.why
        and not is_secondary(chunk.path)
        and (chunk.origin == chunks[0].origin or set(chunk.why) - words)
    ]
    bodies = [
        chunk for chunk in others if chunk.package == chunks[0].package and chunk.kind in _BODIES
    ]
    return ends[:2], bodies[:_MOST_OTHERS]


def _called(
    ranked_chunks: Sequence[Chunk], main: Chunk, visible_chunks: Sequence[Chunk]
) -> Sequence[Chunk]:
    """The strongest that the main piece calls and that is not shown yet: often it decides where
    the main one only passes on. A constructor seldom does.
    """
    why = shared("why_called", caller=short(main))
    called = [
        chunk
        for chunk in ranked_chunks
        if why in chunk.why and not chunk.name.endswith(".__init__")
    ][:_MOST_CALLED]
    names = {chunk.name for chunk in visible_chunks}
    return [chunk for chunk in called if chunk.name not in names]


def _telling(
    chunks: Sequence[Chunk], visible_chunks: Sequence[Chunk], words: Set[str]
) -> Sequence[Chunk]:
    """What of the chunks tells something and is not shown yet, neither these lines nor a copy of
    them; a long one with the line that shares most words with the report.
    """
    bodies = [piece for chunk in merge_chunks(chunks) for piece in body(chunk)]
    wordings = {_wording(piece) for piece in visible_chunks}
    new: list[Chunk] = []
    for piece in beyond(bodies, visible_chunks):
        if _wording(piece) not in wordings:
            wordings.add(_wording(piece))
            new.append(_focused(piece, words))
    return new


def _focused(chunk: Chunk, words: Set[str]) -> Chunk:
    """A long chunk without a focus, with the line around which most of these words stand; those
    that stand in many of its lines count less.
    """
    line_numbers = nonempty_lines(chunk.text)
    if chunk.focus or len(line_numbers) <= _LONG_BODY:
        return chunk
    lines = chunk.text.split("\n")
    words_by_line = [
        words & set(index_words(identifiers(lines[at])).split()) for at in line_numbers
    ]
    counts = Counter(word for line in words_by_line for word in line)
    worth = [sum(1 / counts[word] for word in line) for line in words_by_line]
    sums = [sum(worth[max(at - 4, 0) : at + 5]) for at in range(len(worth))]
    best = max(range(len(sums)), key=lambda at: (sums[at], worth[at], -at))
    return (
        chunk.model_copy(update={"focus": chunk.start + line_numbers[best]})
        if sums[best]
        else chunk
    )


def _wording(piece: Chunk) -> str:
    return " ".join(piece.text.split())


def _context(rank: int, path: str, chunks: Sequence[Chunk], pieces: Sequence[Chunk]) -> Context:
    first = max(chunks, key=lambda piece: piece.score)
    ordered = sorted(
        pieces,
        key=lambda piece: (piece.path != path, piece.origin != "clone", piece.path, piece.start),
    )
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


def _summed(all_hints: Iterable[Hint]) -> tuple[Chunk, ...]:
    """Pieces by the sum of what leads to them; more reasons of one kind count less each. However
    many pieces call one, it is worth what the strongest of these calls makes it.
    """
    hints_by_chunk: dict[tuple[str, int, int], list[Hint]] = {}
    for hint in all_hints:
        hints_by_chunk.setdefault((hint.chunk.path, hint.chunk.start, hint.chunk.end), []).append(
            hint
        )
    chunks = []
    for several in hints_by_chunk.values():
        if several[0].chunk.text.lstrip().startswith(_OVERLOADS):
            continue
        ordered = sorted(several, key=lambda hint: (-hint.weight, hint.why))
        calls = [hint for hint in ordered if hint.is_call][:1]
        counted = [hint for hint in ordered if hint in calls or not hint.is_call]
        score = hints.sum_weights(counted)
        if ordered[0].chunk.kind == "class":  # its methods tell more than its head
            score *= _HEAD
        why = tuple(dict.fromkeys(hint.why for hint in ordered))
        focus = next((hint.chunk.focus for hint in ordered if hint.chunk.focus), 0)
        changes = {"score": round(score, 4), "why": why, "focus": focus}
        chunks.append(ordered[0].chunk.model_copy(update=changes))
    return tuple(sorted(chunks, key=lambda chunk: (-chunk.score, chunk.path, chunk.start)))


def by_module(ranked_chunks: Sequence[Chunk]) -> list[tuple[str, list[Chunk]]]:
    """The pieces by module; a module is worth its best piece and a part of the others. Those of
    the repository itself come first, but for such as hardly anything leads to.
    """
    groups: dict[str, list[Chunk]] = {}
    for chunk in ranked_chunks:
        groups.setdefault(chunk.path, []).append(chunk)
    worth = {
        path: sum(c.score * 0.25**place for place, c in enumerate(group))
        for path, group in groups.items()
    }
    least = max(worth.values(), default=0.0) * _WEAK
    own = {path for path in groups if groups[path][0].origin == "clone" and worth[path] >= least}
    ordered = sorted(groups, key=lambda path: (path not in own, -worth[path], path))
    return [
        (path, [c for c in groups[path] if c.score >= groups[path][0].score * _FAINT][:_PER_MODULE])
        for path in ordered
    ]


def _closure(sources: SourceIndex, chunks: Sequence[Chunk], *, first: bool) -> list[Chunk]:
    """What is needed to build what the pieces are about: the first lines of the class, its
    constructor, and, for the `first`, one who calls it.
    """
    definitions: list[Chunk] = []
    owners = dict.fromkeys(filter(None, (_class_name(chunk) for chunk in chunks[:3])))
    for owner in list(owners)[:2]:
        heads = map(class_line, sources.symbol(owner, 1))
        definitions += [_with(head, shared("why_owner")) for head in heads]
        for chunk in sources.symbol(f"{owner}.__init__", 1):
            why = shared("why_constructor", name=owner.rpartition(".")[2])
            if chunk.package == chunks[0].package and size([chunk]) <= _CONSTRUCTOR_LINES:
                definitions.append(_with(chunk, why))
    main = chunks[0]
    callers = sources.callers(main, 4) if first else ()
    own = (one for one in callers if one.package == main.package and not is_secondary(one.path))
    for chunk in islice(own, 1):
        calling = _calling(chunk, short(main).rpartition(".")[2])
        definitions += [_with(piece, shared("why_calls", name=short(main))) for piece in calling]
    return [chunk.model_copy(update={"score": 0.0}) for chunk in definitions]


def _tables(sources: SourceIndex, chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """The tables and constants of the module that the strongest pieces use."""
    tree = tree_of(read_whole(sources, chunks[0].path))
    if tree is None:
        return
    constants = {
        name: node
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_table(node.value)
        for name in names_in(node, ast.Store)
    }
    listed_names = set[str]()
    for chunk in [one for one in chunks if one.kind in _BODIES][:_MOST_USERS]:
        inside = tree_of_lines(chunk.text)
        names = names_in(inside) - names_in(inside, ast.Store) if inside is not None else set()
        for name in sorted(names & constants.keys() - listed_names):
            listed_names.add(name)
            node = constants[name]
            piece = sources.read(chunk.path, node.lineno, node.end_lineno or node.lineno)
            if piece is not None:
                row = _with(piece, shared("why_constant", caller=short(chunk)))
                yield from cut(row.model_copy(update={"score": 0.0}), _TABLE_LINES)


def read_whole(sources: SourceIndex, path: str) -> str:
    """The text of a file, which the index gives in parts; "" where there is none."""
    parts: list[str] = []
    line = 1
    while line <= _MODULE_LINES and (part := sources.read(path, line, _MODULE_LINES)) is not None:
        parts.append(part.text)
        line = part.end + 1
    return "\n".join(parts)


def _is_table(value: ast.expr | None) -> bool:
    """Whether a value is written down where it is assigned."""
    return isinstance(value, _VALUES) or (
        isinstance(value, ast.Call) and name_of(value.func) in _MAKERS
    )


def _calling(chunk: Chunk, name: str) -> tuple[Chunk, ...]:
    """A caller, cut around the call."""
    lines = enumerate(chunk.text.split("\n"), chunk.start)
    at = next((number for number, line in lines if f"{name}(" in line), 0)
    return cut(chunk.model_copy(update={"focus": at}), _CALLER_LINES)


def _class_name(chunk: Chunk) -> str:
    if chunk.kind == "class":
        return chunk.name
    return chunk.name.rpartition(".")[0] if chunk.kind == "method" else ""


def _with(chunk: Chunk, why: str) -> Chunk:
    return chunk.model_copy(update={"why": (*chunk.why, why)})


# The cells of notebooks, which are no Python files and so in no index.

_NOTEBOOK = re.compile(r"(?<![\w./-])[\w./-]{1,200}\.ipynb\b")
_CELL_LINES = 40


def names_notebook(issue: Issue) -> bool:
    """Whether a report names a notebook."""
    return bool(_NOTEBOOK.search(f"{issue.title}\n{issue.body}"))


def with_notebooks(
    context_list: Sequence[Context], issue: Issue, bug: BugReport, tree: Tree
) -> tuple[Context, ...]:
    """The contexts after the cells of the notebooks that a report names, where one holds a
    statement that the report quotes.
    """
    text = f"{issue.title}\n{issue.body}"
    paths = [path for path in tree if path.endswith(".ipynb")]
    notebooks = (installed_file(name, paths) for name in _NOTEBOOK.findall(text))
    programs = (line for fence in bug.programs for line in fence.text.splitlines())
    quoted = {line.strip() for line in (*code_spans(text), *programs)}
    pieces = [
        piece
        for path in dict.fromkeys(filter(None, notebooks))
        for piece in _cell(path, quoted, tree)
    ]
    cells = [
        Context(rank=1, title=f"{path}: {one[0].why[0]}", module="", chunks=one)
        for path in dict.fromkeys(piece.path for piece in pieces)
        if (one := tuple(piece for piece in pieces if piece.path == path))
    ]
    ordered = enumerate((*cells, *context_list), 1)
    return tuple(context.model_copy(update={"rank": rank}) for rank, context in ordered)


def _cell(path: str, quoted: Set[str], tree: Tree) -> Sequence[Chunk]:
    """The lines of the cell in which the first of the quoted statements stands."""
    rows = [_cell_line(row) for row in tree[path].decode("utf-8", "replace").splitlines()]
    at = next((at for at, row in enumerate(rows) if row.strip() in quoted and row.strip()), None)
    if at is None:
        return ()
    start = next(first for first in range(at, -2, -1) if first < 0 or not rows[first]) + 1
    end = next(last for last in range(at, len(rows) + 1) if last == len(rows) or not rows[last])
    chunk = tree_programs.read_lines(path, start + 1, end, tree)
    why = shared("why_word", name=rows[at].strip(), where="the text")
    changes = {"focus": at + 1, "why": (why,)}
    return cut(chunk.model_copy(update=changes), _CELL_LINES) if chunk is not None else ()


def _cell_line(row: str) -> str:
    """What a line of a notebook's file holds of a cell; "" for any other line."""
    try:
        value = json.loads(row.strip().removesuffix(","))
    except (ValueError, RecursionError):
        return ""
    return value if isinstance(value, str) else ""


# A model's looks into the sources: what was found, and what has to be said about it.

MOST_LINES = 160
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


def look_up(
    sources: SourceIndex | None,
    wish: SearchAction | ReadAction,
    tree: Tree = MappingProxyType({}),
) -> LookUpResult:
    """The answer to one look into the sources, or into the other files of a repository's tree."""
    if isinstance(wish, ReadAction):
        end = min(max(wish.end, wish.start), wish.start + MOST_LINES - 1)
        chunk = tree_programs.read_lines(wish.path.lstrip("/"), wish.start, end, tree)
        if chunk is not None:
            return LookUpResult((chunk,))
    if sources is None:
        return LookUpResult(remark=shared("no_sources"))
    return (
        _read_lines(sources, wish) if isinstance(wish, ReadAction) else _search(sources, wish.query)
    )


def _read_lines(sources: SourceIndex, wish: ReadAction) -> LookUpResult:
    path = wish.path.lstrip("/")
    end = min(max(wish.end, wish.start), wish.start + MOST_LINES - 1)
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
