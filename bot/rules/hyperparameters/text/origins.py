"""Where a number really stands: at its use, or where what is used there was given."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import libcst as cst

from bot.rules.hyperparameters.text.arguments import argument, with_argument
from bot.rules.hyperparameters.text.expressions import expression
from bot.rules.hyperparameters.text.lookups import given, supplied
from bot.rules.hyperparameters.text.numbers import number
from bot.rules.hyperparameters.text.program import ProgramTree, Statement, dotted
from bot.rules.hyperparameters.text.rewriting import Change, Rewriting

_DEEPEST = 5
_LAYERS = ("forward", "call", "__call__")
_DRAWING = re.compile(r"rand|normal|uniform|linspace|arange|make_")


@dataclass(frozen=True)
class NumberOrigin:
    """`node` is the number that an edit replaces. `value` is None where it is not known."""

    node: cst.CSTNode
    value: float | None


def origin(program: ProgramTree, node: cst.BaseExpression, depth: int = 0) -> NumberOrigin:
    """The one place that decides the value of an expression; its use where that cannot be told."""
    value = number(node)
    if value is not None:
        return NumberOrigin(node, value)
    if depth < _DEEPEST:
        shifted = _shifted(program, node, depth)
        if shifted:
            return shifted
        places = given(program, node)
        if len(places) == 1:
            found = origin(program, places[0], depth + 1)
            if found.value is not None:
                return NumberOrigin(node, found.value) if _is_shared(program, node) else found
    return NumberOrigin(node, None)


def witnessed(found: NumberOrigin, use: cst.CSTNode, seen: float | None) -> NumberOrigin:
    """The origin, or the use itself with the number that a trace saw there, where that is another
    one: then something decides it that the text does not show.
    """
    if seen is None or found.value is None or math.isclose(found.value, seen, rel_tol=1e-4):
        return found
    return NumberOrigin(use, seen)


def _is_shared(program: ProgramTree, node: cst.BaseExpression) -> bool:
    """Whether a constant also decides what is measured or which data there are: something is
    divided by it, or so many rows are drawn. An edit of it would change more than the training.
    """
    if not isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
        return False
    others = program.uses.get(program.text(node), [])
    return any(_decides(program, x) for x in others if x is not node)


def _decides(program: ProgramTree, node: cst.CSTNode) -> bool:
    function = program.function(node)
    if function is not None and function.name.value in _LAYERS:
        return False  # such as the scale of an attention
    for part in program.above(node):
        outer = program.parents.get(part)
        if _is_divisor(part, outer):
            return True
        if isinstance(part, cst.Call) and dotted(part.func) not in ("int", "float"):
            return bool(_DRAWING.match(dotted(part.func).rpartition(".")[2]))
        if isinstance(part, Statement | cst.Lambda):
            return False
    return False


def _is_divisor(node: cst.CSTNode, outer: cst.CSTNode | None) -> bool:
    divided = isinstance(outer, cst.BinaryOperation) and isinstance(outer.operator, cst.Divide)
    return isinstance(outer, cst.BinaryOperation) and divided and outer.right is node


def _shifted(program: ProgramTree, node: cst.BaseExpression, depth: int) -> NumberOrigin | None:
    """`EPOCHS + 1`, as the end of a range from one is written, and `int(args.epochs)`."""
    if isinstance(node, cst.Call) and dotted(node.func) in ("int", "float") and len(node.args) == 1:
        return origin(program, node.args[0].value, depth + 1)
    return None


def resolved(program: ProgramTree, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What a name was assigned once, anywhere; otherwise the expression itself."""
    for _ in range(_DEEPEST):
        if not isinstance(node, cst.Name | cst.Attribute):
            break
        known = given(program, node)
        if len(known) != 1:
            break
        node = known[0]
    return node


def write_number(
    rewriting: Rewriting, call: cst.Call, name: str, text: str, position: int = -1
) -> None:
    """Writes the number of a parameter where it stands, or adds it to the call."""
    own = supplied(rewriting.program, call, name, position)
    found = origin(rewriting.program, own) if own else None
    if found is None or found.node is argument(call, name, position):
        rewriting.change(call, with_argument(name, text, position))
        return
    rewriting.change(found.node, _constant(text))


def _constant(text: str) -> Change:
    return lambda _: expression(text)
