"""The one door to Python's parser for text from outside: bounded in size and depth, and never an
error but a SyntaxError.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libcst import Module

LONGEST = 1_500_000
DEEPEST = 150
"""Levels of a tree. Code that people write has 60 at most; what walks a tree by recursion takes
several calls a level.
"""
MAX_TOKENS = 150_000
"""Names, numbers, operators and strings. A statement of one name takes 1.7 kB of a tree, so this
many take 260 MB and a second; of 40,000 installed files, three have more.
"""
MAX_CONCRETE_TOKENS = 30_000
"""A concrete tree takes five times as much."""
NOT_CODE = (
    r"""\\\n|\#[^\n]*+"""
    r'''|"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:"""|\Z)'''
    r"""|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+(?:'''|\Z)"""
    r"""|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?"""
)
"""A joined line, a comment or a string, in a pattern with DOTALL."""
_KEPT = 300_000
_TOKEN = re.compile(rf"{NOT_CODE}|\w+|[^\w\s]", re.DOTALL)


class Unreadable(SyntaxError):
    """Text that no parser should be asked to read, or that this one cannot."""


def parse(text: str, longest: int = LONGEST, tokens: int = MAX_TOKENS) -> ast.Module:
    """The tree of a program. Raises SyntaxError, its subclass Unreadable where the text is too
    long, nested too deeply or no text.
    """
    if len(text) > longest:
        raise Unreadable(f"it has more than {longest} characters")
    if len(text) > tokens and sum(1 for _ in _TOKEN.finditer(text)) > tokens:
        raise Unreadable(f"it has more than {tokens} tokens")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except (ValueError, MemoryError, RecursionError) as error:
            raise Unreadable(str(error) or "it is nested too deeply") from None
    if _is_deep(tree):
        raise Unreadable("it is nested too deeply")
    return tree


def tree_of(text: str) -> ast.Module | None:
    """The tree as `parse` gives it; None for what does not parse or no parser should be asked to
    read. Those of large files, hundreds of megabytes, are not kept.
    """
    return _cached(text) if len(text) <= _KEPT else _tree(text)


def _tree(text: str) -> ast.Module | None:
    try:
        return parse(text)
    except SyntaxError:
        return None


_cached = lru_cache(maxsize=64)(_tree)


def parse_concrete(text: str, longest: int = LONGEST) -> Module:
    """The tree of a program with comments and formatting. Raises SyntaxError as `parse` does."""
    # Its import takes 0.2 s, and most commands have no use for it.
    import libcst as cst

    parse(text, longest, MAX_CONCRETE_TOKENS)
    try:
        return cst.parse_module(text)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, UnicodeError) as error:
        raise Unreadable(str(error)) from None


def _is_deep(tree: ast.AST) -> bool:
    level, depth = [tree], 0
    while level and depth <= DEEPEST:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return bool(level)
