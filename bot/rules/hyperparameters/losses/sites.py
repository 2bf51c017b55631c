"""Where a PyTorch program computes its loss: the calls that get predictions and targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import libcst as cst

from bot.rules.hyperparameters.losses.torch_names import of_class, of_function
from bot.rules.hyperparameters.text.loops import function_named
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.spelling import dotted
from bot.rules.hyperparameters.text.uses import resolved

_DEEPEST = 4
_MOST = 50  # more gradients than a program that somebody wrote computes


@dataclass(frozen=True)
class LossSite:
    """`node` is the computation. `made` is the construction of the loss, if it is an object; `swap`
    says that predictions and targets of a written-out difference stand the other way round.
    """

    name: str
    node: cst.Call | cst.BinaryOperation
    made: cst.Call | None = None
    difference: cst.BinaryOperation | None = None
    swap: bool = False


def sites(program: ProgramTree) -> list[LossSite]:
    """Those that a gradient is computed of, each once."""
    found: dict[cst.CSTNode, LossSite] = {}
    for call in islice(program.method("backward"), _MOST):
        if isinstance(call.func, cst.Attribute):
            for site in _in(program, call.func.value, call, 0):
                found.setdefault(site.node, site)
    for site in list(found.values()):
        for other in _same(program, site):
            found.setdefault(other.node, other)
    return list(found.values())


def _same(program: ProgramTree, site: LossSite) -> Iterator[LossSite]:
    """The other calls of the same object, as validation makes them."""
    if site.made is None:
        return
    for call in program.calls:
        if call is not site.node and resolved(program, call.func) is site.made:
            yield LossSite(site.name, call, site.made)


def _in(
    program: ProgramTree, node: cst.BaseExpression, at: cst.CSTNode, depth: int
) -> Iterator[LossSite]:
    """The first loss in an expression, in what a name in it was assigned, or in a function of the
    program that it calls.
    """
    if depth > _DEEPEST:
        return
    if isinstance(node, cst.Name | cst.Attribute):
        value = _last(program, dotted(node), at)
        yield from _in(program, value, at, depth + 1) if value else ()
        return
    calls = [x for x in (node, *program.inside(node)) if isinstance(x, cst.Call)]
    for call in calls:
        site = _called(program, call)
        if site:
            yield site
            return
    for call in calls:
        for value in _returned(program, call):
            inner = list(_in(program, value, value, depth + 1))
            if inner:
                yield from inner
                return
    written = _difference(program, node)
    if written:
        yield written


def _last(program: ProgramTree, name: str, at: cst.CSTNode) -> cst.BaseExpression | None:
    """What a name was assigned last before a place of the same function, else anywhere."""
    values = program.values.get(name, [])
    own = [x for x in values if program.function(x) is program.function(at)]
    before = [x for x in own if program.line(x) <= program.line(at)]
    return (*reversed(before), *own, *values)[0] if values else None


def _called(program: ProgramTree, call: cst.Call) -> LossSite | None:
    if len(call.args) < 2:
        return None
    name = of_function(program.called(call))
    if name:
        return LossSite(name, call)
    made = call.func if isinstance(call.func, cst.Call) else resolved(program, call.func)
    name = of_class(program.called(made)) if isinstance(made, cst.Call) else ""
    return LossSite(name, call, made) if name and isinstance(made, cst.Call) else None


def _returned(program: ProgramTree, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What a function or lambda of the program returns."""
    function = function_named(program, dotted(call.func).rpartition(".")[2])
    if function:
        for node in program.within(function, cst.Return):
            if node.value and program.function(node) is function:
                yield node.value
        return
    value = resolved(program, call.func)
    if isinstance(value, cst.Lambda):
        yield value.body


def _difference(program: ProgramTree, node: cst.BaseExpression) -> LossSite | None:
    """A loss that is written out around the difference of predictions and targets."""
    for part in (node, *program.inside(node)):
        if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Subtract):
            left, right = (_predicted(program, x, 0) for x in (part.left, part.right))
            if left != right and isinstance(node, cst.Call | cst.BinaryOperation):
                return LossSite("expression", node, difference=part, swap=right)
    return None


def _predicted(program: ProgramTree, node: cst.BaseExpression, depth: int) -> bool:
    """Whether an expression is made of the output of a model."""
    if isinstance(node, cst.Name) and depth < _DEEPEST:
        values = [x for x in program.values.get(node.value, []) if x is not node]
        return any(_predicted(program, x, depth + 1) for x in values)
    return any(
        _is_model(program, x) for x in (node, *program.inside(node)) if isinstance(x, cst.Call)
    )


def _is_model(program: ProgramTree, call: cst.Call) -> bool:
    made = resolved(program, call.func) if dotted(call.func) else None
    if not isinstance(made, cst.Call):
        return dotted(call.func) in ("self", "self.forward", "net", "model")
    classes = {x.name.value for x in program.of(cst.ClassDef)}
    own = {dotted(x.func) for x in (made, *program.inside(made)) if isinstance(x, cst.Call)}
    return bool(own & classes) or program.called(made).startswith("torch.nn.")
