"""How much of a piece must be shown to know how to call it: its signature and the first line of
its docstring.
"""

from __future__ import annotations

import ast

from bot.models.context import Chunk
from bot.rules.code import syntax


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
    kept = head_lines(chunk.text)
    return cut(chunk, kept)


def cut(chunk: Chunk, lines: int) -> Chunk:
    """The first lines of a chunk."""
    if lines >= chunk.end - chunk.start + 1:
        return chunk
    text = "\n".join(chunk.text.split("\n")[:lines])
    return chunk.model_copy(update={"end": chunk.start + lines - 1, "text": text})
