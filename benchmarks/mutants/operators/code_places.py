"""Where a program of PyTorch has its training loop: the statements that code operators change."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from benchmarks.mutants import edits
from benchmarks.mutants.family import Family
from benchmarks.mutants.mutant import Mutant

Loop = ast.For | ast.While
Place = Callable[[ast.Module], int]
"""Finds the line of a fault in the text of a mutant; 0 where there is none."""


class TrainingLoop(NamedTuple):
    """The statements of one pass: each call alone on its lines. `loops` are the loops around the
    backward pass, outermost first; `model` is how the program calls the model, "" where unknown.
    """

    backward: ast.stmt
    step: ast.stmt
    reset: ast.stmt | None
    loops: tuple[Loop, ...]
    optimizer: str
    model: str


def training_loop(family: Family) -> TrainingLoop | None:
    """The loop of a family that has exactly one backward pass and one step beside it."""
    blocks = [
        (block, loops)
        for block, loops in _blocks(family.tree, ())
        if any(method(one) == "backward" for one in block)
    ]
    if len(blocks) != 1 or not blocks[0][1]:
        return None
    (block, loops), *_ = blocks
    makers = optimizer_calls(family)
    names = {_target(statement) for statement, _ in makers}
    steps = [x for x in block if method(x) == "step" and receiver(family, x) in names]
    if len(steps) != 1:
        return None
    resets = [x for x in block if method(x) == "zero_grad"]
    backward = next(x for x in block if method(x) == "backward")
    optimizer = receiver(family, steps[0])
    reset = resets[0] if len(resets) == 1 else None
    return TrainingLoop(backward, steps[0], reset, loops, optimizer, model_name(family))


def _blocks(
    node: ast.AST, loops: tuple[Loop, ...]
) -> Iterator[tuple[list[ast.stmt], tuple[Loop, ...]]]:
    """Each block of statements, and the loops of its function around it."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if not isinstance(block, list):
            continue
        yield block, loops
        for inner in block:
            is_function = isinstance(inner, ast.FunctionDef | ast.ClassDef)
            around = () if is_function else (*loops, inner) if isinstance(inner, Loop) else loops
            yield from _blocks(inner, around)


def method(statement: ast.stmt) -> str:
    """The method that a statement calls and does nothing else: "step" of `optimizer.step()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return call.func.attr
    return ""


def receiver(family: Family, statement: ast.stmt) -> str:
    """What the method of a statement is called on, as it is written."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return edits.text_of(family.source, call.func.value)
    return ""


def optimizer_calls(family: Family) -> list[tuple[ast.Assign, ast.Call]]:
    """Each assignment of what is made of the parameters of a model, and the call."""
    return [
        (node, node.value)
        for node in ast.walk(family.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and node.value.args
        and _parameters(node.value) is not None
    ]


def _parameters(call: ast.Call) -> ast.Call | None:
    """The `model.parameters()` that a call is given first."""
    first = call.args[0]
    is_call = isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute)
    return first if is_call and edits.name_of(first) == "parameters" else None  # type: ignore[arg-type, return-value]


def parameters_of_optimizer(family: Family) -> ast.Call | None:
    """The `model.parameters()` of the only optimizer."""
    makers = optimizer_calls(family)
    return _parameters(makers[0][1]) if len(makers) == 1 else None


def model_name(family: Family) -> str:
    """How the program calls the model whose parameters the only optimizer gets."""
    call = parameters_of_optimizer(family)
    return edits.text_of(family.source, call.func.value) if _has_owner(call) else ""  # type: ignore[union-attr]


def _has_owner(call: ast.Call | None) -> bool:
    return call is not None and isinstance(call.func, ast.Attribute)


def _target(statement: ast.Assign) -> str:
    target = statement.targets[0]
    return ast.unparse(target)


def assignments(family: Family, name: str) -> list[ast.Assign]:
    """The statements that assign a name."""
    return [
        node
        for node in ast.walk(family.tree)
        if isinstance(node, ast.Assign) and _target(node) == name
    ]


# Edits of whole lines.


def removal(source: str, statement: ast.stmt) -> edits.Edit:
    """Without the lines of a statement."""
    start = edits.offset(source, statement.lineno, 0)
    end = edits.offset(source, (statement.end_lineno or statement.lineno), 0)
    return edits.Edit(start, source.index("\n", end) + 1, "")


def insertion(source: str, statement: ast.stmt, text: str, *, before: bool = False) -> edits.Edit:
    """New lines after or before a statement, indented as it is."""
    rows = source.splitlines(keepends=True)
    indent = rows[statement.lineno - 1][: statement.col_offset]
    block = "".join(f"{indent}{row}\n" for row in text.splitlines())
    line = statement.lineno if before else (statement.end_lineno or statement.lineno) + 1
    at = edits.offset(source, line, 0) if line <= len(rows) else len(source)
    return edits.Edit(at, at, block)


def mutant(
    family: Family,
    slug: str,
    changes: Iterable[edits.Edit],
    places: Iterable[str],
    change: str,
) -> Iterator[Mutant]:
    """A mutant whose fault is code. `places` are texts of its lines, the first that of the truth,
    the others those that may be named as well; none for a text that is no longer a program.
    """
    source = edits.apply(family.source, changes)
    try:
        ast.parse(source)
    except SyntaxError:
        return
    lines = list(dict.fromkeys(_line(source, text) for text in places))
    codes = [f"{slug}:{line}" if line else slug for line in lines]
    yield Mutant(family, slug, (codes[0],), source, change, tuple((x,) for x in codes[1:]), slug)


def _line(source: str, text: str) -> int:
    """The line that a text is the last to stand in; 0 for none."""
    lines = [at for at, row in enumerate(source.splitlines(), 1) if text and text in row]
    return lines[-1] if lines else 0
