"""Syntax trees of sources that may be damaged or hostile: bounded, and None instead of an error."""

import ast
import re
import textwrap
from collections.abc import Iterator
from typing import TypeVar

from bot.rules.parsing import tree_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Node = TypeVar("_Node", bound=ast.AST)
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_DOCSTRING = re.compile(
    r"""(?s)(?:\A|:[ \t]*(?:\#[^\n]*)?\n)\s*[rRuU]?(?P<quote>\"{3}|'{3})"""
    r"""(?P<text>.*?)(?:(?P=quote)|\Z)"""
)


def tree_of_lines(text: str) -> ast.Module | None:
    """The tree of some lines of a module: dedented, and with a body where only the head is
    shown.
    """
    plain = textwrap.dedent(text)
    tree = tree_of(plain)
    if tree is None and plain.rstrip().endswith(":"):
        tree = tree_of(f"{plain.rstrip()}\n    pass\n")
    return tree


def nodes(tree: ast.AST, kind: type[_Node]) -> list[_Node]:
    """The nodes of one kind in a tree, outer ones before those within."""
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of a tree, outer ones before those within. Far fewer than the nodes."""
    level = [tree]
    while level:
        yield from level
        level = [
            child for node in level for held in _BLOCKS for child in getattr(node, held, None) or ()
        ]


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text; "" for anything that is no plain chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < 20:
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join([node.id, *reversed(parts)])
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
        and parts
    ):
        return ".".join(["super", *reversed(parts)])
    return ""


def calls(tree: ast.AST) -> Iterator[str]:
    """Dotted names of what is called, in the order of the source, with repeats."""
    for node in sorted(nodes(tree, ast.Call), key=lambda call: (call.lineno, call.col_offset)):
        name = dotted(node.func)
        if name:
            yield name
        elif isinstance(node.func, ast.Attribute):
            yield f"?.{node.func.attr}"


def docstrings(text: str) -> frozenset[int]:
    """The offsets of the lines of docstrings, but for the first line with words. Found by their
    place, so that lines cut out of a definition need not parse.
    """
    found = set[int]()
    for literal in _DOCSTRING.finditer(text):
        blank = len(literal["text"]) - len(literal["text"].lstrip())
        first = text.count("\n", 0, literal.start("text") + blank)
        found |= set(range(first + 1, text.count("\n", 0, literal.end()) + 1))
    return frozenset(found)
