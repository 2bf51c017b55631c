"""Statements that the failure does not depend on by name, with all that only they depend on: usually gone in one try."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.mends.edits import Text
from bot.rules.reduce.edits import Files, Node, programs
from bot.rules.reduce.statements import node_of

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody")


Stack = frozenset[tuple[str, int]]


def idle(files: Files, stack: Stack = frozenset()) -> tuple[Node, ...]:
    """Definitions, assignments and imports whose names nothing else reads, found again and again until there are no more.

    `stack` are the lines (path, number) on which the failure arises, from the outermost call to the innermost: what they
    belong to stays, and where they are known, calls made for their effect alone are taken to have no part in it.
    """
    found = programs(files)
    own = {path.removesuffix(".py").replace("/", ".") for path in files}
    gone = set[int]()
    while True:
        read = {name for _, _, tree in found for name in _read(tree, gone, own)}
        more = {
            id(each)
            for path, _, tree in found
            for each in _statements(tree, gone)
            if not _on(path, each, stack) and _unread(each, read, gone, loose=bool(stack))
        }
        if not more:
            break
        gone |= more
    return tuple(node for path, source, tree in found for node in _outermost(path, Text(source), tree.body, "", gone))


def _read(tree: ast.AST, gone: set[int], own: set[str]) -> Iterator[str]:
    """Every name that is read by what is left: variables, attributes, what is imported from another file."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if id(node) in gone:
            continue
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.ImportFrom) and node.module in own:
            yield from (alias.name for alias in node.names)
        stack.extend(ast.iter_child_nodes(node))


def _statements(tree: ast.AST, gone: set[int]) -> Iterator[ast.stmt]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if id(node) not in gone:
            if isinstance(node, ast.stmt):
                yield node
            stack.extend(ast.iter_child_nodes(node))


def _on(path: str, node: ast.stmt, stack: Stack) -> bool:
    return any(each == path and node.lineno <= line <= (node.end_lineno or node.lineno) for each, line in stack)


def _unread(node: ast.stmt, read: set[str], gone: set[int], *, loose: bool) -> bool:
    if isinstance(node, _DEFINES):
        return node.name not in read and not node.name.startswith("__") and node.name != "forward"
    if isinstance(node, ast.Import | ast.ImportFrom):
        return all((alias.asname or alias.name).split(".")[0] not in read for alias in node.names)
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name for target in targets for name in _bound(target)]
        return bool(names) and not any(name in read or (name == "*" and not loose) for name in names)
    if isinstance(node, ast.Expr):
        plain = isinstance(node.value, ast.Constant | ast.Name | ast.Attribute)
        return plain or (loose and not ast.unparse(node).startswith("super()"))
    if isinstance(node, ast.If | ast.For | ast.With | ast.While):
        return all(id(each) in gone or isinstance(each, ast.Pass) for each in [*node.body, *getattr(node, "orelse", [])])
    return False


def _bound(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Attribute):
        return [target.attr]
    if isinstance(target, ast.Tuple | ast.List):
        return [name for each in target.elts for name in _bound(each)]
    return ["*"]  # an entry of something: who reads it is not to be seen


def _outermost(path: str, text: Text, body: list[ast.stmt], label: str, gone: set[int]) -> Iterator[Node]:
    for statement in body:
        if id(statement) in gone:
            yield node_of(path, text, statement, label, len(body))
            continue
        for name in _BLOCKS:
            inner = getattr(statement, name, [])
            if inner and isinstance(inner[0], ast.stmt):
                yield from _outermost(path, text, inner, f"{statement.lineno}.{name}", gone)
