"""What a `forward` method does with its modules: where each is called, and which function is
applied to what it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from bot.rules.hyperparameters.network.functions import of_function, of_module
from bot.rules.hyperparameters.network.layer import WrittenLayer
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.spelling import dotted

_MOST_DEEP = 40
_DROPOUTS = ("torch.nn.functional.dropout", "torch.dropout")


@dataclass
class Flow:
    """`uses` has the calls of each module, `applied` the activations and `dropped` the dropouts,
    each by the module whose output they get.
    """

    program: ProgramTree
    modules: dict[str, list[WrittenLayer]]
    uses: dict[WrittenLayer, list[cst.Call]] = field(default_factory=dict)
    applied: dict[WrittenLayer, cst.Call] = field(default_factory=dict)
    dropped: dict[WrittenLayer, cst.Call] = field(default_factory=dict)
    names: dict[str, WrittenLayer | None] = field(default_factory=dict)


def flows(program: ProgramTree, layers: Sequence[WrittenLayer]) -> dict[cst.CSTNode | None, Flow]:
    """The flow through each class that holds some of the layers."""
    holders = dict.fromkeys(x.holder for x in layers if isinstance(x.holder, cst.ClassDef))
    return {
        holder: flow(program, holder, [x for x in layers if x.holder is holder])
        for holder in holders
        if holder is not None
    }


def flow(program: ProgramTree, holder: cst.ClassDef, layers: Sequence[WrittenLayer]) -> Flow:
    """The flow through the `forward` of a class with these layers."""
    modules: dict[str, list[WrittenLayer]] = {}
    for layer in layers:
        modules.setdefault(layer.path.partition(".")[0], []).append(layer)
    found = Flow(program, modules)
    for method in program.within(holder, cst.FunctionDef):
        if method.name.value == "forward":
            for node in program.inside(method):
                _statement(found, node)
    return found


def _statement(found: Flow, node: cst.CSTNode) -> None:
    value = getattr(node, "value", None)
    if not isinstance(node, cst.BaseSmallStatement) or not isinstance(value, cst.BaseExpression):
        return
    layer = _through(found, value, 0)
    targets = [x.target for x in node.targets] if isinstance(node, cst.Assign) else []
    if isinstance(node, cst.AnnAssign):
        targets = [node.target]
    for target in targets:
        for name in _names(target):
            found.names[name] = layer


def _names(target: cst.BaseExpression) -> list[str]:
    if isinstance(target, cst.Tuple | cst.List):
        return [name for x in target.elements for name in _names(x.value)]
    return [dotted(target)] if dotted(target) else []


def _through(found: Flow, node: cst.BaseExpression, depth: int) -> WrittenLayer | None:
    """The module whose output an expression is, perhaps reshaped or normalised."""
    if depth > _MOST_DEEP:
        return None
    if isinstance(node, cst.Name | cst.Attribute) and dotted(node) in found.names:
        return found.names[dotted(node)]
    if isinstance(node, cst.Subscript | cst.Attribute):
        return _through(found, node.value, depth + 1)
    if isinstance(node, cst.Call):
        return _called(found, node, depth + 1)
    if isinstance(node, cst.Tuple | cst.List):
        kept = [_through(found, x.value, depth + 1) for x in node.elements]
        return kept[0] if kept else None
    if isinstance(node, cst.BinaryOperation):
        _through(found, node.left, depth + 1)
        _through(found, node.right, depth + 1)
    return None


def _called(found: Flow, call: cst.Call, depth: int) -> WrittenLayer | None:
    given = [_through(found, x.value, depth) for x in call.args]
    own = _module(found, call)
    if own:
        for layer in own[-1:]:
            found.uses.setdefault(layer, []).append(call)
        if len(own) == 1 and own[0].passing:
            return given[0] if given else None
        return own[-1]
    receiver = None
    if isinstance(call.func, cst.Attribute) and not found.program.name(call.func).startswith(
        "torch"
    ):
        receiver = _through(found, call.func.value, depth)
    source = receiver or (given[0] if given else None)
    if activation(found.program, call) and source is not None:
        found.applied.setdefault(source, call)
    if found.program.called(call) in _DROPOUTS and source is not None:
        found.dropped.setdefault(source, call)
    return source


def _module(found: Flow, call: cst.Call) -> list[WrittenLayer]:
    name = dotted(call.func)
    if name.startswith("self."):
        return found.modules.get(name.split(".")[1], [])
    return []


def activation(program: ProgramTree, call: cst.Call) -> str:
    """The canonical name of the function that a call applies, "" for another call."""
    named = of_function(program.called(call))
    if named or not isinstance(call.func, cst.Call):
        return named
    return of_module(program.called(call.func).rpartition(".")[2])


def argument_of(call: cst.Call, *, method: bool) -> cst.BaseExpression:
    """What an activation is applied to."""
    if method and isinstance(call.func, cst.Attribute):
        return call.func.value
    return call.args[0].value
