"""Loops and comprehensions over data, without the data: a loop that goes round twice, a list of one element."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.mends.edits import Text
from bot.rules.reduce.edits import Edit, Files, Piece, programs
from bot.rules.reduce.expressions import name_of


def edits(files: Files) -> tuple[Edit, ...]:
    """Every loop and comprehension whose data are not read within it. What fails in the second turn often does in any loop."""
    return tuple(edit for path, source, tree in programs(files) for edit in _in(path, Text(source), tree))


def _in(path: str, text: Text, tree: ast.Module) -> Iterator[Edit]:
    inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            yield from _turns(path, text, node)
        elif isinstance(node, ast.ListComp | ast.GeneratorExp) and node not in inside and not _uses(node.elt, *_targets(node)):
            yield Edit("one element", (Piece(path, *text.span(node), f"[{text.of(node.elt)}]"),), bold=True)


def _targets(node: ast.ListComp | ast.GeneratorExp) -> list[ast.expr]:
    return [each.target for each in node.generators]


def _turns(path: str, text: Text, node: ast.For) -> Iterator[Edit]:
    if isinstance(node.iter, ast.Call) and name_of(node.iter.func) == "range":
        return
    used = any(_uses(each, node.target) for each in node.body)
    if not used or isinstance(node.target, ast.Name):
        span = text.span(node.target)[0], text.span(node.iter)[1]
        yield Edit("two turns", (Piece(path, *span, f"{text.of(node.target) if used else '_'} in range(2)"),), bold=True)


def _uses(node: ast.AST, *targets: ast.expr) -> bool:
    """Whether anything reads what a loop sets."""
    names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))
