"""The operation that a program fails in, and whether a changed program still does the same one.

For an exception it is the statement of the program on which it arose; for a value, a warning or a hang it is every call of what
the report names, and of objects of the classes that it names. Such a statement may change in the arguments of its calls and
nowhere else.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from bot.rules.patches import shape

# What is only there to be given to an operation: another way to make it is what a patch may consist of.
MAKES = frozenset(
    {"tensor", "array", "asarray", "as_tensor", "zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "eye"}
    | {"linspace", "normal", "uniform", "range", "list", "tuple", "dict", "float", "int", "str", "bool"}
)
_PRINTERS = frozenset({"print", "write", "writelines"})


@dataclass(frozen=True, slots=True)
class Operation:
    """`at` are the statements, each with the text that must stay and the calls that must; `calls` are the names by which the
    operation is called, empty where only the statement is known. `valued` when what it gives is the failure, so that nothing
    may be done to that afterwards; `free` are the calls of which the arguments may change in what is printed or checked too.
    """

    at: tuple[tuple[str, Counter[str]], ...]
    calls: frozenset[str] = frozenset()
    valued: bool = False
    free: frozenset[str] = frozenset()


def raising(tree: ast.Module, line: int, entered: str = "") -> Operation | None:
    """The operation of an exception that arose on a line, in a function of that name where one was entered; None when there
    is no such statement.
    """
    here = [each for each in shape.statements(tree) if line in shape.lines(each)]
    if not here:
        return None

    def entering(statement: ast.stmt) -> frozenset[str]:
        names = (shape.called(call) for call in shape.calls(statement))
        return frozenset(name for name in names if entered and name.rsplit(".", 1)[-1] == entered.rsplit(".", 1)[-1])

    # Of several on one line, such as a loop and its block, the one that makes the call, else the innermost.
    statement = min(here, key=lambda each: (len(shape.lines(each)), not entering(each), -each.col_offset))
    calls = entering(statement)
    return Operation(at=(_spine(statement, calls),), calls=calls)


def named(tree: ast.Module, api: tuple[str, ...], ran: Collection[int]) -> Operation | None:
    """The operation behind a value: the calls of names that the report mentions, as far as their lines ran; when it mentions
    none that the program calls, all calls into packages. None when there is none.
    """
    held = shape.imported(tree)
    foreign = {name for name, dotted in held.items() if not shape.standard(dotted)}
    wanted = {name.rsplit(".", 1)[-1] for name in api}

    def reported(call: ast.Call) -> bool:
        dotted = shape.called(call)
        if shape.root(call.func) not in foreign:
            return False
        return dotted.rsplit(".", 1)[-1] in wanted or held.get(dotted, "").rsplit(".", 1)[-1] in wanted

    every = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    makers = [each for each in shape.statements(tree) if any(reported(call) and _makes(call) for call in shape.calls(each))]
    made = {name for each in makers for name in _bound(each)}
    ours = [call for call in every if reported(call) or shape.root(call.func) in made]
    free = frozenset(shape.called(call) for call in ours)
    texts = free or frozenset(shape.called(call) for call in every if shape.root(call.func) in foreign)
    places = [each for each in shape.statements(tree) if any(shape.called(call) in texts for call in shape.calls(each))]
    ran_ones = [each for each in places if set(shape.lines(each)) & set(ran)]
    at = tuple((bare(each, texts), Counter[str]()) for each in ran_ones)
    return Operation(at=at, calls=texts, valued=True, free=free) if at else None


def kept(operation: Operation, tree: ast.Module) -> tuple[ast.stmt, ...] | str:
    """The statements of a changed program that do the operation, or why it does not do it any more."""
    found: list[ast.stmt] = []
    for text, wanted in operation.at:
        here = [each for each in shape.statements(tree) if _matches(operation, each, text, wanted) and each not in found]
        if not here:
            return f"the operation `{_short(text)}` is not there any more: its statement may change in its arguments only"
        found.append(here[0])
    return tuple(found)


def places(operation: Operation, tree: ast.Module) -> list[ast.stmt]:
    """Every statement that is of the form of one of the operation's, in order of the text."""
    texts = dict(operation.at)
    found = [each for each in shape.statements(tree) if any(_matches(operation, each, *row) for row in texts.items())]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def said(tree: ast.Module) -> list[ast.stmt]:
    """The statements that print or check, in order of the text."""
    rows = (
        each
        for each in shape.statements(tree)
        if isinstance(each, ast.Assert) or any(shape.last(call.func) in _PRINTERS for call in shape.calls(each))
    )
    return sorted(rows, key=lambda each: each.lineno)


def bare(statement: ast.stmt, calls: frozenset[str]) -> str:
    """A statement without what it hands to the operation."""
    return shape.skeleton(statement, lambda call: shape.called(call) in calls)


def results(operation: Operation, tree: ast.Module) -> set[str]:
    """The names that hold what the operation gave, or what was made of it."""
    found: set[str] = set()
    while True:
        more = {name for each in shape.statements(tree) if _depends(operation, each, found) for name in _bound(each)} - found
        if not more:
            return found
        found |= more


def _matches(operation: Operation, statement: ast.stmt, text: str, wanted: Counter[str]) -> bool:
    if operation.valued:
        return bare(statement, operation.calls) == text
    now, has = _spine(statement, operation.calls)
    return now == text and not wanted - has


def _spine(statement: ast.stmt, calls: frozenset[str]) -> tuple[str, Counter[str]]:
    """A statement without the arguments of the operation (of its outermost calls where that is not known), and the calls that
    stand in it.
    """
    # By place and not by name: `f(f(x))` has one outermost call.
    outer = {_place(call) for call in shape.spine(statement)}
    text = bare(statement, calls) if calls else shape.skeleton(statement, lambda call: _place(call) in outer)
    names = Counter(shape.called(call) for call in shape.calls(statement))
    return text, Counter({name: n for name, n in names.items() if name.rsplit(".", 1)[-1] not in MAKES})


def _place(call: ast.Call) -> tuple[int, int, int | None, int | None]:
    return call.lineno, call.col_offset, call.end_lineno, call.end_col_offset


def _makes(call: ast.Call) -> bool:
    """Whether a call makes an object of a class, by the looks of its name."""
    return shape.called(call).rsplit(".", 1)[-1][:1].isupper()


def _depends(operation: Operation, statement: ast.stmt, names: set[str]) -> bool:
    parts = [node for part in shape.expressions(statement) for node in ast.walk(part)]
    reads = {node.id for node in parts if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return bool(reads & names) or any(shape.called(call) in operation.calls for call in shape.calls(statement))


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement itself sets."""
    parts = (node for part in shape.expressions(statement) for node in ast.walk(part))
    places = (node for node in parts if isinstance(node, ast.Name | ast.Attribute | ast.Subscript))
    return {shape.root(node) for node in places if isinstance(node.ctx, ast.Store)}


def _short(text: str) -> str:
    first = text.splitlines()[0] if text else ""
    return first if len(first) <= 100 else f"{first[:100]}\u2026"
