"""Statements that the failure does not depend on by name, with all that only they depend on:
usually gone in one try.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.reduce.edits import Files, ReductionNode
from bot.rules.reduce.parsed_file import blocks, parsed_files
from bot.rules.reduce.statements import DEFINITIONS, outermost

Stack = frozenset[tuple[str, int]]
_Nodes = set[ast.AST]


def unread(files: Files, stack: Stack = frozenset()) -> tuple[ReductionNode, ...]:
    """Definitions, assignments and imports whose names nothing else reads, transitively.

    `stack` holds the lines (path, number) on which the failure arises, from the outermost call to
    the innermost. What they belong to stays. Where they are known, calls made for their effect
    alone are assumed to have no part in the failure.
    """
    found, dropped = parsed_files(files), _Nodes()
    own = {path.removesuffix(".py").replace("/", ".") for path in files}
    while True:
        live = [(file.path, node) for file in found for node in _live(file.tree, dropped)]
        read = {name for _, node in live for name in _read(node, own)}
        more = {
            node
            for path, node in live
            if isinstance(node, ast.stmt)
            and not _on_stack(path, node, stack)
            and _unread(node, read, dropped, loose=bool(stack))
        }
        if not more:
            break
        dropped |= more
    return tuple(node for file in found for node in outermost(file, dropped.__contains__))


def _live(tree: ast.AST, dropped: _Nodes) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node not in dropped:
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _read(node: ast.AST, own: set[str]) -> Iterator[str]:
    """The names that a node itself reads: variables, attributes, imports from another file."""
    if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Store):
        yield node.id if isinstance(node, ast.Name) else node.attr
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg
    elif isinstance(node, ast.ImportFrom) and node.module in own:
        yield from (alias.name for alias in node.names)


def _on_stack(path: str, node: ast.stmt, stack: Stack) -> bool:
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return any(frame_path == path and line in lines for frame_path, line in stack)


def _unread(node: ast.stmt, read: set[str], dropped: _Nodes, *, loose: bool) -> bool:
    if isinstance(node, DEFINITIONS):
        return node.name not in read and not node.name.startswith("__") and node.name != "forward"
    if isinstance(node, ast.Import | ast.ImportFrom):
        return all((alias.asname or alias.name).split(".")[0] not in read for alias in node.names)
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {name for target in targets for name in _bound(target)}
        return bool(names) and not names & read and (loose or "*" not in names)
    if isinstance(node, ast.Expr):
        plain = isinstance(node.value, ast.Constant | ast.Name | ast.Attribute)
        return plain or (loose and not ast.unparse(node).startswith("super()"))
    if isinstance(node, ast.If | ast.For | ast.With | ast.While):
        inner = [statement for body in blocks(node) for statement in body]
        return all(one in dropped or isinstance(one, ast.Pass) for one in inner)
    return False


def _bound(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name | ast.Attribute):
        return [target.id if isinstance(target, ast.Name) else target.attr]
    if isinstance(target, ast.Tuple | ast.List):
        return [name for element in target.elts for name in _bound(element)]
    return ["*"]  # an item of a container: its readers cannot be seen
