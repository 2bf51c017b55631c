"""The loops around a node, also those of the functions that call the one it stands in."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.spelling import dotted

_DEEPEST = 4


def loops_around(
    program: ProgramTree, node: cst.CSTNode, depth: int = 0
) -> Iterator[cst.For | cst.While]:
    """Every loop that repeats a node, inside out."""
    for outer in program.above(program.parents.get(node, node)):
        if isinstance(outer, cst.For | cst.While):
            yield outer
        elif isinstance(outer, cst.FunctionDef):
            if depth < _DEEPEST:
                for call in called_at(program, outer):
                    yield from loops_around(program, call, depth + 1)
            return


def called_at(program: ProgramTree, function: cst.FunctionDef) -> list[cst.Call]:
    """The calls of a function or method by its name, none from within itself."""
    name = function.name.value
    return [
        x
        for x in program.calls
        if dotted(x.func).rpartition(".")[2] == name and program.function(x) is not function
    ]


def function_named(program: ProgramTree, name: str) -> cst.FunctionDef | None:
    """The one function of a name."""
    found = [x for x in program.of(cst.FunctionDef) if x.name.value == name]
    return found[0] if len(found) == 1 else None


def iterated(loop: cst.For) -> cst.BaseExpression:
    """What a loop goes through, without `enumerate`, `tqdm` and their like around it."""
    node = loop.iter
    while isinstance(node, cst.Call) and node.args:
        if dotted(node.func).rpartition(".")[2] not in ("enumerate", "tqdm", "track", "list"):
            break
        node = node.args[0].value
    return node
