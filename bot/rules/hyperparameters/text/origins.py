"""Where a number really stands: at its use, or where what is used there was given."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import libcst as cst

from bot.rules.hyperparameters.text.arguments import argument, with_argument
from bot.rules.hyperparameters.text.lookups import given, supplied
from bot.rules.hyperparameters.text.numbers import number
from bot.rules.hyperparameters.text.program import ProgramTree, Statement
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import dotted, spelled

_DEEPEST, _MOST = 5, 20_000
_LAYERS = ("forward", "call", "__call__")
_DRAWING = re.compile(r"rand|normal|uniform|linspace|arange|make_")


@dataclass(frozen=True)
class NumberOrigin:
    """`node` is the number that an edit replaces. `value` is None where it is not known."""

    node: cst.CSTNode
    value: float | None


def origin(program: ProgramTree, node: cst.BaseExpression, *, divides: bool = True) -> NumberOrigin:
    """The one place that decides the value of an expression; its use where that cannot be told, or
    where the place also decides what is measured or which data there are. Unless it `divides`, it
    does no harm in a divisor: a mean over epochs is one over more epochs too.
    """
    found = _decided(program, node)
    drawn, divided = _measured(program)
    shared = found.node in drawn or (divides and found.node in divided)
    return NumberOrigin(node, found.value) if shared else found


def _decided(program: ProgramTree, node: cst.BaseExpression, depth: int = 0) -> NumberOrigin:
    known = program.known.get(node)
    if isinstance(known, NumberOrigin):
        return known
    found = NumberOrigin(node, number(node))
    if found.value is None and depth < _DEEPEST:
        inner = _converted(node)
        places = [inner] if inner else given(program, node)
        behind = _decided(program, places[0], depth + 1) if len(places) == 1 else None
        if behind is not None and (behind.value is not None or inner):
            found = behind
    if not depth or found.value is not None:
        program.known[node] = found
    return found


def witnessed(found: NumberOrigin, use: cst.CSTNode, seen: float | None) -> NumberOrigin:
    """The origin, or the use itself with the number that a trace saw there, where that is another
    one: then something decides it that the text does not show.
    """
    if seen is None or found.value is None or math.isclose(found.value, seen, rel_tol=1e-4):
        return found
    return NumberOrigin(use, seen)


_Nodes = frozenset[cst.CSTNode]


def _measured(program: ProgramTree) -> tuple[_Nodes, _Nodes]:
    """The numbers that also decide which data there are (so many rows are drawn), and those that
    something is divided by. An edit of one would change more than the training.
    """
    kept = program.known.get(program.module)
    if isinstance(kept, tuple):
        return kept
    program.known[program.module] = frozenset(), frozenset()  # no lookup below asks for it
    drawn = [x for x in program.calls if _draws(program, x)]
    divisors = [x.right for x in program.of(cst.BinaryOperation) if _divides(x)]
    found = _deciding(program, drawn), _deciding(program, divisors)
    program.known[program.module] = found
    return found


def _deciding(program: ProgramTree, parts: Sequence[cst.CSTNode]) -> _Nodes:
    inside = (x for part in parts for x in (part, *program.inside(part)))
    lookups = (x for x in islice(inside, _MOST) if spelled(x) and _decides(program, x))
    nodes = [x for x in lookups if isinstance(x, cst.BaseExpression)]
    return frozenset(_decided(program, x).node for x in nodes) - frozenset(nodes)


def _draws(program: ProgramTree, call: cst.Call) -> bool:
    """Whether a call draws data; a function of the program's own may be named like one."""
    name = dotted(call.func).rpartition(".")[2]
    return bool(_DRAWING.match(name)) and name not in program.functions


def _divides(node: cst.BinaryOperation) -> bool:
    return isinstance(node.operator, cst.Divide)


def _decides(program: ProgramTree, node: cst.CSTNode) -> bool:
    """Whether a lookup is a divisor or part of one, or an argument of what draws."""
    function = program.function(node)
    if function is not None and function.name.value in _LAYERS:
        return False  # such as the scale of an attention
    part, outer = node, program.parents.get(node)
    while outer is not None and not isinstance(outer, Statement | cst.Lambda):
        if isinstance(outer, cst.BinaryOperation) and _divides(outer) and outer.right is part:
            return True
        if isinstance(outer, cst.Call) and dotted(outer.func) not in ("int", "float"):
            return _draws(program, outer)
        part, outer = outer, program.parents.get(outer)
    return False


def _converted(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What `int(args.epochs)` converts."""
    converts = isinstance(node, cst.Call) and dotted(node.func) in ("int", "float")
    return node.args[0].value if isinstance(node, cst.Call) and converts and node.args else None


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
    rewriting: Rewriting,
    call: cst.Call,
    name: str,
    text: str,
    position: int = -1,
    *,
    divides: bool = True,
) -> None:
    """Writes the number of a parameter where it stands, or adds it to the call."""
    own = supplied(rewriting.program, call, name, position)
    found = origin(rewriting.program, own, divides=divides) if own else None
    if found is None or found.node is argument(call, name, position):
        rewriting.change(call, with_argument(name, text, position))
        return
    rewriting.replace(found.node, text)
