"""Fits chunks into a number of lines: the strongest whole, then the heads of the others. Lines of
docstrings that no prompt shows do not count.
"""

import ast
from collections.abc import Iterable, Sequence

from bot.models.environment import Chunk
from bot.rules.code import syntax

LONGEST_BODY = 120
_WHOLE = 0.3
_SHORTEST = 12
_BEFORE = 0.6


def head_lines(text: str) -> int:
    """How many lines of a definition are its decorators, its signature and the first words of
    its docstring; all of them for what is no definition.
    """
    total = text.count("\n") + (not text.endswith("\n"))
    tree = syntax.tree_of_lines(text)
    first = tree.body[0] if tree is not None and tree.body else None
    if not isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return total
    body = first.body[0]
    end = max(body.lineno - 1, first.lineno)
    if (
        isinstance(body, ast.Expr)
        and isinstance(body.value, ast.Constant)
        and isinstance(body.value.value, str)
    ):
        blank = len(body.value.value) - len(body.value.value.lstrip())
        end = min(
            body.lineno + body.value.value[:blank].count("\n"), body.end_lineno or body.lineno
        )
    return max(1, min(end, total))


def trimmed(chunk: Chunk) -> Chunk:
    """The chunk without its body."""
    return part(chunk, 0, head_lines(chunk.text))


def part(chunk: Chunk, first: int, end: int) -> Chunk:
    """The lines of a chunk from offset `first` to before `end`."""
    lines = chunk.text.split("\n")[first:end]
    start = chunk.start + first
    changes = {"start": start, "end": start + len(lines) - 1, "text": "\n".join(lines)}
    return chunk.model_copy(update=changes)


def shown(text: str) -> list[int]:
    """The offsets of the lines of a source that a prompt shows."""
    left_out = syntax.docstrings(text)
    return [at for at in range(text.count("\n") + 1) if at not in left_out]


def size(chunks: Iterable[Chunk]) -> int:
    """Lines shown in all."""
    return sum(len(shown(chunk.text)) for chunk in chunks)


def cut(chunk: Chunk, lines: int) -> tuple[Chunk, ...]:
    """The chunk in at most so many lines: whole, or its head and the lines around its focus."""
    kept = shown(chunk.text)
    if len(kept) <= lines:
        return (chunk,)
    lines_of_head = head_lines(chunk.text)
    head = sum(at < lines_of_head for at in kept)
    head = head if head < len(kept) else 0  # no definition
    focus = sum(at < chunk.focus - chunk.start for at in kept)
    if head >= lines or focus < lines:
        return (part(chunk, 0, kept[lines - 1] + 1),)
    room = lines - head
    first = min(max(focus - int(room * _BEFORE), head), len(kept) - room)
    window = part(chunk, kept[first], kept[first + room - 1] + 1)
    return (part(chunk, 0, kept[head - 1] + 1), window) if head else (window,)


def fitted(chunks: Sequence[Chunk], lines: int) -> tuple[Chunk, ...]:
    """The chunks, given most important first, in about so many lines: the bodies of those that
    count nearly as much as the first, then the heads of the others.
    """
    best = max((chunk.score for chunk in chunks), default=0.0)
    kept: dict[int, tuple[Chunk, ...]] = {}
    for heads in (False, True):
        for at, chunk in enumerate(chunks):
            strong = chunk.score >= best * _WHOLE
            left = lines - size(piece for pieces in kept.values() for piece in pieces)
            if at not in kept and (heads or strong):
                kept |= _room(at, trimmed(chunk) if heads else chunk, left, not kept)
    return tuple(piece for at in sorted(kept) for piece in kept[at])


def _room(at: int, chunk: Chunk, left: int, first: bool) -> dict[int, tuple[Chunk, ...]]:
    """What of a chunk has room in the lines that are left; the first always has some."""
    most = min(max(left, 1 if first else 0), LONGEST_BODY)
    needed = min(size([chunk]), _SHORTEST + head_lines(chunk.text))
    return {at: cut(chunk, most)} if needed <= most or first else {}


def merged(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """The chunks without those that lie within others; their reasons are kept."""
    kept: list[Chunk] = []
    for chunk in chunks:
        at = next(
            (i for i, each in enumerate(kept) if _within(chunk, each) or _within(each, chunk)), None
        )
        if at is None:
            kept.append(chunk)
            continue
        other = kept[at]
        wide = other if _within(chunk, other) else chunk
        why = tuple(dict.fromkeys((*other.why, *chunk.why)))
        known = {"why": why, "score": max(other.score, chunk.score)}
        kept[at] = wide.model_copy(update=known | {"focus": other.focus or chunk.focus})
    return tuple(kept)


def beyond(
    chunks: Iterable[Chunk], known: Iterable[Chunk], least: float = 0.5
) -> tuple[Chunk, ...]:
    """What of the chunks is not among the known lines, in as many parts as it takes; a chunk of
    which less than the share `least` is new is left out.
    """
    seen = list(known)
    kept: list[Chunk] = []
    for chunk in chunks:
        free = [at for at in range(chunk.start, chunk.end + 1) if not _holds(seen, chunk.path, at)]
        if not free or len(free) < least * (chunk.end - chunk.start + 1):
            continue
        ends = [at for at in free if at + 1 not in free]
        starts = [at for at in free if at - 1 not in free]
        runs = zip(starts, ends, strict=True)
        new = [part(chunk, a - chunk.start, b + 1 - chunk.start) for a, b in runs]
        kept += new
        seen += new
    return tuple(kept)


def _holds(chunks: Iterable[Chunk], path: str, line: int) -> bool:
    return any(chunk.path == path and chunk.start <= line <= chunk.end for chunk in chunks)


def _within(inner: Chunk, outer: Chunk) -> bool:
    return (
        (inner.path, inner.origin) == (outer.path, outer.origin)
        and outer.start <= inner.start
        and inner.end <= outer.end
    )
