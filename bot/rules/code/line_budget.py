"""Fits chunks into a number of lines: bodies are dropped before whole chunks, and the least
relevant first.
"""

import ast
from collections.abc import Sequence

from bot.models.environment import Chunk
from bot.rules.code import syntax

_SHORTEST = 12


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
    return cut(chunk, head_lines(chunk.text))


def cut(chunk: Chunk, lines: int) -> Chunk:
    """The first lines of a chunk."""
    if lines >= chunk.end - chunk.start + 1:
        return chunk
    text = "\n".join(chunk.text.split("\n")[:lines])
    return chunk.model_copy(update={"end": chunk.start + lines - 1, "text": text})


def size(chunks: Sequence[Chunk]) -> int:
    """Lines in all."""
    return sum(chunk.end - chunk.start + 1 for chunk in chunks)


def fitted(chunks: Sequence[Chunk], lines: int) -> tuple[Chunk, ...]:
    """The chunks, given most important first, in at most so many lines: heads of as many as fit,
    then bodies in order.
    """
    kept: list[Chunk] = []
    left = lines
    for chunk in chunks:
        head = trimmed(chunk) if kept or size([chunk]) > left else cut(trimmed(chunk), left)
        if size([head]) <= left or not kept:
            kept.append(cut(head, max(left, 1)))
            left -= size(kept[-1:])
    whole = {(chunk.path, chunk.start): chunk for chunk in chunks}
    for at, head in enumerate(kept):
        full = whole[head.path, head.start]
        more = size([full]) - size([head])
        if more > left and left >= _SHORTEST:
            full = cut(full, size([head]) + left)
            more = left
        if more <= left:
            kept[at] = full
            left -= more
    return tuple(kept)


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
        kept[at] = wide.model_copy(update={"why": why, "score": max(other.score, chunk.score)})
    return tuple(kept)


def _within(inner: Chunk, outer: Chunk) -> bool:
    return (
        (inner.path, inner.origin) == (outer.path, outer.origin)
        and outer.start <= inner.start
        and inner.end <= outer.end
    )
