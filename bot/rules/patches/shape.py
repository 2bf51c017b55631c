"""Statements of a program as they are compared: each by itself, without its block, the arguments of some calls left out."""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def changed_lines(before: str, after: str) -> int:
    """How many lines were replaced, added or taken away; a line that was replaced counts once."""
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return sum(max(b - a, d - c) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal")


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement, at any depth."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def around(tree: ast.Module, statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement stands in, from the inside out; a loop's `else` counts as in the loop."""
    outer = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    node: ast.AST | None = outer.get(id(statement))
    while node is not None:
        yield node
        node = outer.get(id(node))


def lines(statement: ast.stmt) -> range:
    """The lines of a statement without those of its block."""
    block = getattr(statement, "body", None)
    last = block[0].lineno - 1 if isinstance(block, list) and block else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def expressions(statement: ast.stmt) -> list[ast.expr]:
    """The outermost expressions of a statement itself."""
    found: list[ast.expr] = []
    for name, value in ast.iter_fields(statement):
        parts = [] if name in _BLOCKS else value if isinstance(value, list) else [value]
        for part in parts:
            if isinstance(part, ast.expr):
                found.append(part)
            elif isinstance(part, ast.AST):
                found += [each for each in ast.iter_child_nodes(part) if isinstance(each, ast.expr)]
    return found


def calls(statement: ast.stmt) -> list[ast.Call]:
    """Every call in a statement itself."""
    return [node for part in expressions(statement) for node in ast.walk(part) if isinstance(node, ast.Call)]


def spine(statement: ast.stmt) -> list[ast.Call]:
    """The calls of a statement that are no argument of another one: `f(g(x)).h()` has `h` and `f`."""
    found: list[ast.Call] = []

    def look(node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            found.append(node)
            look(node.func)
            return
        for child in ast.iter_child_nodes(node):
            look(child)

    for part in expressions(statement):
        look(part)
    return found


def skeleton(statement: ast.stmt, emptied: Callable[[ast.Call], bool]) -> str:
    """A statement as text, without its block and without the arguments of some of its calls."""
    bare = copy.deepcopy(statement)
    for node in [call for call in calls(bare) if emptied(call)]:
        node.args, node.keywords = [], []
    for name in _BLOCKS:
        if isinstance(getattr(bare, name, None), list):
            setattr(bare, name, [ast.Pass()] if name == "body" else [])
    return ast.unparse(ast.fix_missing_locations(bare))


def root(node: ast.expr) -> str:
    """The name that a chain of attributes, calls and subscripts begins with, or ""."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def called(call: ast.Call) -> str:
    """What is called, without what any call on the way there is given: `f(x).g(y)` calls `f().g`."""

    def told(node: ast.expr) -> str:
        match node:
            case ast.Attribute(value=inner, attr=name):
                return f"{told(inner)}.{name}"
            case ast.Call(func=inner):
                return f"{told(inner)}()"
            case ast.Subscript(value=inner):
                return f"{told(inner)}[]"
            case _:
                return ast.unparse(node)

    return told(call.func)


def last(node: ast.expr) -> str:
    """The last name of what is called, or ""."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def imported(tree: ast.AST) -> dict[str, str]:
    """What every imported name stands for, as a dotted name; of one that is imported more than once, the innermost."""
    return dict(imports(tree))


def imports(tree: ast.AST) -> list[tuple[str, str]]:
    """Every name that is imported, each time, with what it then stands for."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(each.asname or each.name.split(".")[0], each.name if each.asname else each.name.split(".")[0])
                      for each in node.names]  # fmt: skip
        elif isinstance(node, ast.ImportFrom):
            package = "." * node.level + (node.module or "")
            found += [(each.asname or each.name, f"{package}.{each.name}") for each in node.names]
    return found


def standard(dotted: str) -> bool:
    """Whether a dotted name lies in the standard library."""
    return dotted.split(".")[0] in sys.stdlib_module_names


def handlers(tree: ast.AST) -> set[int]:
    """The lines of handlers of exceptions; those of handlers round imports alone are left out."""
    tries = (node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.TryStar))
    acting = (node for node in tries if not all(isinstance(each, ast.Import | ast.ImportFrom) for each in node.body))
    parts = (each for node in acting for handler in node.handlers for each in handler.body)
    return {line for each in parts for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)}
