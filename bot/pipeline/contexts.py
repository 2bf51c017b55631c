"""BugReport + the sources at hand → ranked contexts: the code that bears on the report, each line with why it was taken.

What the report points at comes first (frames, linked lines, names), then what that calls, then what its words are like. Pieces
that several of these lead to rank higher. One context a module, as hypotheses differ by module (RepGen, arXiv 2512.14990).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from bot.models.bug import BugReport, FenceKind, Frame, Role, Symptom, Traceback
from bot.models.context import Chunk, Context
from bot.models.issue import Issue
from bot.ports import Shelf
from bot.rules.code import imports, links, pointers, syntax
from bot.rules.code.fitting import fitted, merged
from bot.rules.code.heads import cut, trimmed

_MOST = 4
_SHARES = (0.4, 0.25, 0.2, 0.15)
_FRAMES = 12
_PER_MODULE = 8
_OWN_CODE = 60
_FAINT = 0.12
_OVERLOADS = ("@overload", "@typing.overload", "@torch.jit._overload")
_LEARNING = {Symptom.NOT_LEARNING, Symptom.NONFINITE}


class Hint(NamedTuple):
    """A piece that something in the report leads to, how strongly, and why."""

    chunk: Chunk
    weight: float
    why: str


def contexts(
    bug: BugReport, issue: Issue, shelf: Shelf, budget_lines: int = 400, *, lineage: Sequence[Chunk] = ()
) -> tuple[Context, ...]:
    """At most four contexts, the most promising first, of about `budget_lines` lines in all. `lineage` are pieces that the
    history of the issue leads to (linked issues and pull requests), where someone knows it.
    """
    ranked = ranking(bug, issue, shelf, lineage)
    made: list[Context] = []
    for rank, (path, chunks) in enumerate(_modules(ranked)[:_MOST], 1):
        lines = max(int(budget_lines * _SHARES[rank - 1]), 30)
        own = _own_code(bug, min(_OWN_CODE, lines // 4)) if rank == 1 else ()
        needed = _closure(shelf, chunks)
        kept = fitted(merged([*chunks, *needed]), lines - sum(each.end - each.start + 1 for each in own))
        ordered = sorted(kept, key=lambda each: (each.path != path, each.path, each.start))
        first = max(chunks, key=lambda each: each.score)
        title = f"{first.name or path}: {first.why[0]}"
        made.append(Context(rank=rank, title=title, module=_module(path), chunks=(*own, *ordered)))
    return tuple(made)


def ranking(bug: BugReport, issue: Issue, shelf: Shelf, lineage: Sequence[Chunk] = ()) -> tuple[Chunk, ...]:
    """Every piece that bears on the report, best first, each with its score and reasons."""
    pointed = [
        *(Hint(chunk, 7.0, "the history of the issue") for chunk in lineage),
        *_framed(bug, shelf),
        *_linked(bug, issue, shelf),
        *_named(bug, issue, shelf),
    ]
    alike = list(_worded(bug, issue, shelf))
    strongest = sorted(pointed, key=lambda hint: -hint.weight)[:6]
    return _summed([*pointed, *alike, *_called(shelf, strongest), *_learning(bug, shelf)])


def _framed(bug: BugReport, shelf: Shelf) -> Iterator[Hint]:
    """Frames of packages, the innermost first."""
    for traceback in bug.tracebacks[:4]:
        for weight, each in ((12.0, traceback), *((7.0, cause) for cause in traceback.chained[:2])):
            inside = [frame for frame in reversed(each.frames) if frame.module_path]
            for depth, frame in enumerate(inside[:_FRAMES]):
                chunk = _of_frame(frame, shelf)
                if chunk is not None:
                    said = f"frame of the reported {_last(each)}, {depth} above where it was raised" if depth else (
                        f"raised the reported {_last(each)}")  # fmt: skip
                    yield Hint(chunk, weight * 0.85**depth, said)


def _of_frame(frame: Frame, shelf: Shelf) -> Chunk | None:
    """The definition of a frame: where its source line stands now, else where its function does, else at its line."""
    if frame.code:
        moved = _line_of((frame.code.strip(),), frame.module_path, frame.line or 1, shelf)
        if moved:
            return shelf.around(frame.module_path, moved)
    there = shelf.around(frame.module_path, frame.line) if frame.line else None
    last = frame.function.rpartition(".")[2]
    if there is None or not last.isidentifier() or there.name.endswith(f".{last}"):
        return there
    same = [chunk for chunk in shelf.symbol(last, 20) if chunk.path == there.path]
    return min(same, key=lambda chunk: abs(chunk.start - (frame.line or 0)), default=there)


def _linked(bug: BugReport, issue: Issue, shelf: Shelf) -> Iterator[Hint]:
    """Lines that the report links to; where it quotes them, they are found although they have moved."""
    quoted = pointers.quoted_lines(bug)
    for link in islice(links.links(issue.body), 8):
        line = _line_of(quoted, link.path, link.start or 1, shelf) or link.start or 1
        chunk = shelf.around(link.path, line)
        if chunk is not None:
            where = f"line {link.start}" if link.start else "the file"
            yield Hint(chunk, 9.0 if link.start else 5.0, f"the report links to {where}")


def _line_of(quoted: Sequence[str], path: str, near: int, shelf: Shelf) -> int:
    """Where one of the quoted lines stands in a file, the nearest to where it stood; 0 when none does."""
    best: tuple[int, int] | None = None
    for first in range(1, 12_001, 2_000):
        part = shelf.read(path, first, first + 1_999)
        if part is None:
            break
        wanted = set(quoted)
        for number, line in enumerate(part.text.split("\n"), first):
            if line.strip() in wanted and (best is None or abs(number - near) < best[0]):
                best = (abs(number - near), number)
    return best[1] if best is not None else 0


def _named(bug: BugReport, issue: Issue, shelf: Shelf) -> Iterator[Hint]:
    """Definitions of the names in the report; a name with many definitions says little about each, and one with none is an
    attribute or an argument: whoever holds the word.
    """
    for name in pointers.names(bug, issue):
        found = [each for each in shelf.symbol(name.text, 5) if each.kind != "module" or "." in name.text]
        share = _share(name.text, len(found))
        for place, chunk in enumerate(found[:3]):
            yield Hint(chunk, name.weight * share / (1 + place), f"`{name.text}` in {name.where}")
        for part in name.text.split(".") if not found else ():
            if "_" in part.strip("_") or not (part.islower() or part.isupper()):
                for place, chunk in enumerate(shelf.search(part, 4)):
                    yield Hint(chunk, name.weight * 0.6 / (1 + 0.4 * place), f"holds `{part}`, named in {name.where}")


def _share(name: str, definitions: int) -> float:
    if "." in name or definitions == 1:
        return 1.0
    plain = name.islower() and "_" not in name
    return 1 / (1 + definitions) if plain else 0.8 if definitions < 4 else 0.5


def _worded(bug: BugReport, issue: Issue, shelf: Shelf) -> Iterator[Hint]:
    """What the words are like: of the title, of what was raised or warned, of the whole text."""
    raised = " ".join(f"{each.exception} {each.message[:300]}" for each in bug.tracebacks[:2])
    warned = " ".join(each.message[:300] for each in bug.warnings[:2])
    asked = (
        (issue.title, 5.0, "the words of the title"),
        (raised, 4.0, "the words of the error"),
        (warned, 5.0, "the words of the warning"),
        (f"{issue.title} {pointers.prose(issue)}", 4.0, "the words of the report"),
    )
    for words, weight, why in asked:
        for place, chunk in enumerate(shelf.search(words, 12) if words.strip() else ()):
            yield Hint(chunk, weight * chunk.score / (1 + 0.2 * place), why)


def _called(shelf: Shelf, strongest: Sequence[Hint]) -> Iterator[Hint]:
    for hint in strongest:
        for place, chunk in enumerate(shelf.callees(hint.chunk, 6)):
            yield Hint(chunk, hint.weight * 0.3 / (1 + 0.2 * place), f"{_short(hint.chunk)} calls it")


def _learning(bug: BugReport, shelf: Shelf) -> Iterator[Hint]:
    if bug.symptom in _LEARNING:
        for place, chunk in enumerate(shelf.loops(3)):
            yield Hint(chunk, 2.0 / (1 + place), "a training loop")


def _summed(hints: Iterable[Hint]) -> tuple[Chunk, ...]:
    """Pieces by the sum of what leads to them; more reasons of one kind count less each."""
    gathered: dict[tuple[str, int, int], list[Hint]] = {}
    for hint in hints:
        gathered.setdefault((hint.chunk.path, hint.chunk.start, hint.chunk.end), []).append(hint)
    made = []
    for several in gathered.values():
        if several[0].chunk.text.lstrip().startswith(_OVERLOADS):
            continue
        ordered = sorted(several, key=lambda hint: (-hint.weight, hint.why))
        score = sum(hint.weight * 0.6**place for place, hint in enumerate(ordered))
        why = tuple(dict.fromkeys(hint.why for hint in ordered))
        made.append(ordered[0].chunk.model_copy(update={"score": round(score, 4), "why": why}))
    return tuple(sorted(made, key=lambda chunk: (-chunk.score, chunk.path, chunk.start)))


def _modules(ranked: Sequence[Chunk]) -> list[tuple[str, list[Chunk]]]:
    """The pieces by module; a module is worth its best piece and a part of the others."""
    groups: dict[str, list[Chunk]] = {}
    for chunk in ranked:
        groups.setdefault(chunk.path, []).append(chunk)
    worth = {path: sum(c.score * 0.25**place for place, c in enumerate(group)) for path, group in groups.items()}
    ordered = sorted(groups, key=lambda path: (-worth[path], path))
    return [(path, [c for c in groups[path] if c.score >= groups[path][0].score * _FAINT][:_PER_MODULE]) for path in ordered]


def files(bug: BugReport, issue: Issue, shelf: Shelf) -> tuple[str, ...]:
    """Files that bear on the report, best first."""
    return tuple(path for path, _ in _modules(ranking(bug, issue, shelf)))


def _closure(shelf: Shelf, chunks: Sequence[Chunk]) -> list[Chunk]:
    """What is needed to build what the pieces are about: heads of the class and its constructor, and one who calls it."""
    found: list[Chunk] = []
    for owner in list(dict.fromkeys(_class_name(chunk) for chunk in chunks[:3] if _class_name(chunk)))[:2]:
        for name, why in ((owner, "the class it belongs to"), (f"{owner}.__init__", f"constructs {owner.rpartition('.')[2]}")):
            found += [_with(trimmed(chunk), why) for chunk in shelf.symbol(name, 1)]
        found += _bases(shelf, owner)
    main = chunks[0]
    for chunk in shelf.callers(main, 2):
        found.append(_with(cut(chunk, 24), f"calls {_short(main)}"))
    return list({chunk.text: chunk for chunk in reversed(found) if chunk.text.strip()}.values())[::-1]


def _bases(shelf: Shelf, owner: str) -> list[Chunk]:
    """Heads of the bases of a class that are of its own package."""
    found = []
    for chunk in shelf.symbol(owner, 1):
        tree = syntax.tree_of_piece(chunk.text)
        named = imports.bases(tree, owner.rpartition(".")[2]) if tree is not None else ()
        for base in named[:3]:
            known = shelf.symbol(f"{imports.module_of(chunk.path)}.{base}", 1)
            found += [_with(trimmed(each), f"a base of {_short(chunk)}") for each in known if each.package == chunk.package]
    return found


def _class_name(chunk: Chunk) -> str:
    if chunk.kind == "class":
        return chunk.name
    return chunk.name.rpartition(".")[0] if chunk.kind == "method" else ""


def _own_code(bug: BugReport, lines: int) -> tuple[Chunk, ...]:
    """The report's own program, the one meant to reproduce it first."""
    programs = sorted(bug.programs, key=lambda fence: (fence.role is not Role.REPRODUCER, fence.index))
    blocks = [fence for fence in programs if fence.kind is FenceKind.PROGRAM and fence.text.strip()][:1]
    return tuple(
        cut(Chunk(path="issue", start=fence.line + 1, end=fence.line + 1 + fence.text.rstrip("\n").count("\n"),
                  text=fence.text.rstrip("\n"), origin="issue", why=("a program in the report",)), lines)
        for fence in blocks if lines > 0
    )  # fmt: skip


def _with(chunk: Chunk, why: str) -> Chunk:
    return chunk.model_copy(update={"why": (*chunk.why, why)})


def _short(chunk: Chunk) -> str:
    return ".".join(chunk.name.split(".")[-2:]) if chunk.kind == "method" else chunk.name.rpartition(".")[2]


def _last(traceback: Traceback) -> str:
    return traceback.exception.rpartition(".")[2] or "error"


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").removeprefix("src/").replace("/", ".")
