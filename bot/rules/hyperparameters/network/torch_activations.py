"""Activations of PyTorch modules: modules of their own, and functions in `forward`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.network.forward import Flow, activation, argument_of, flows
from bot.rules.hyperparameters.network.functions import (
    CHOICES,
    MODULES,
    functions_named,
    of_module,
)
from bot.rules.hyperparameters.network.layer import WrittenLayer
from bot.rules.hyperparameters.network.torch_layers import torch_layers
from bot.rules.hyperparameters.place import HyperparameterPlace, Write, place
from bot.rules.hyperparameters.text.expressions import NotApplicable, expression
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Change, Rewriting

_ABLE = ("Linear", "LazyLinear", "Bilinear", "Conv", "LazyConv")


def torch_activations(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """The function of every module that is one, or after which one stands or could stand."""
    layers = torch_layers(program, trace)
    found = flows(program, layers)
    for number, layer in enumerate(layers):
        if of_module(layer.type):
            yield _own(program, layer)
        elif layer.type.startswith(_ABLE):
            yield from _after(program, layer, found.get(layer.holder), layers[number + 1 :])


def _own(program: ProgramTree, layer: WrittenLayer) -> HyperparameterPlace:
    value = of_module(layer.type)
    return place(
        "activation", value, program.line(layer.call), _module_writer(layer),
        layer=layer.index, choices=CHOICES,
    )  # fmt: skip


def _module_writer(layer: WrittenLayer) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        rewriting.replace(layer.call, module(rewriting, layer, value))

    return write


def module(rewriting: Rewriting, layer: WrittenLayer, value: str) -> str:
    """An activation module, named as the layer's own module is."""
    text = MODULES.get(value, "").format(dim=_dim(layer))
    if not text:
        raise NotApplicable(f"There is no activation named {value!r}.")
    func = layer.call.func
    if isinstance(func, cst.Attribute):
        return f"{rewriting.program.text(func.value)}.{text}"
    name, _, rest = text.partition("(")
    return f"{rewriting.named(f'torch.nn.{name}')}({rest}"


def _dim(layer: WrittenLayer) -> int:
    return 1 if layer.type.startswith(("Conv", "LazyConv")) or "2d" in layer.type else -1


def _after(
    program: ProgramTree, layer: WrittenLayer, found: Flow | None, after: Sequence[WrittenLayer]
) -> Iterator[HyperparameterPlace]:
    """What is applied to the output of a module: the next one of its `Sequential` or a call."""
    following = _following(layer, after)
    if following is not None and of_module(following.type):
        return
    call = found.applied.get(layer) if found else None
    if call is not None:
        yield _applied(program, layer, call)
        return
    uses = found.uses.get(layer, []) if found else []
    element = program.parents.get(layer.call)
    unseen = _unseen(program, element)
    if unseen is not None:
        yield _own(program, replace(layer, type=unseen[0], call=unseen[1]))
        return
    if following is None and len(uses) == 1 and _used_by_class(found, layer):
        write = _wrapper(layer, uses[0])
        yield _linear(program, layer, write)
    elif isinstance(element, cst.Arg | cst.Element) and "." in f".{layer.path}":
        yield _linear(program, layer, _inserter(layer, element))


def _unseen(program: ProgramTree, element: cst.CSTNode | None) -> tuple[str, cst.Call] | None:
    """An activation that is next in the list and that the trace, which is older, does not have."""
    holder = program.parents.get(element) if element else None
    listed: Sequence[Any] = getattr(holder, "args", getattr(holder, "elements", ()))
    after = next((n for n, x in enumerate(listed, 1) if x is element), len(listed))
    value = listed[after].value if after < len(listed) else None
    name = program.called(value).rpartition(".")[2] if isinstance(value, cst.Call) else ""
    return (name, value) if isinstance(value, cst.Call) and of_module(name) else None


def _following(layer: WrittenLayer, after: Sequence[WrittenLayer]) -> WrittenLayer | None:
    """The module that comes next in the same container, past those that only pass on."""
    parent = layer.path.rpartition(".")[0]
    for other in after:
        if other.holder is not layer.holder or other.path.rpartition(".")[0] != parent:
            return None
        if not parent and isinstance(layer.holder, cst.ClassDef) and not of_module(other.type):
            return None
        if of_module(other.type) or not other.passing:
            return other
    return None


def _used_by_class(found: Flow | None, layer: WrittenLayer) -> bool:
    return found is not None and layer in found.uses


def _linear(program: ProgramTree, layer: WrittenLayer, write: Write) -> HyperparameterPlace:
    return place(
        "activation", "linear", program.line(layer.call), write, layer=layer.index, choices=CHOICES
    )


def _inserter(layer: WrittenLayer, element: cst.Arg | cst.Element) -> Write:
    """One more entry of a `Sequential`."""

    def write(rewriting: Rewriting, value: str) -> None:
        rewriting.after_element(element, module(rewriting, layer, value))

    return write


def _wrapper(layer: WrittenLayer, call: cst.Call) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        name, extra = function(rewriting, layer, value)
        rewriting.change(call, lambda updated: _call(name, updated, extra))

    return write


def _applied(program: ProgramTree, layer: WrittenLayer, call: cst.Call) -> HyperparameterPlace:
    value = activation(program, call)

    def write(rewriting: Rewriting, wanted: str) -> None:
        rewriting.change(call, _changed(rewriting, layer, call, wanted))

    return place("activation", value, program.line(call), write, layer=layer.index, choices=CHOICES)


def _changed(rewriting: Rewriting, layer: WrittenLayer, call: cst.Call, wanted: str) -> Change:
    method = rewriting.program.called(call).startswith(".")
    if wanted == "linear":
        return lambda updated: _bare(argument_of(updated, method=method))
    name, extra = function(rewriting, layer, wanted, rewriting.program.text(call.func))
    return lambda updated: _call(name, argument_of(updated, method=method), extra)


def function(
    rewriting: Rewriting, layer: WrittenLayer, value: str, before: str = ""
) -> tuple[str, str]:
    """The function as the program can name it, and its further argument."""
    if value not in CHOICES or value == "linear":
        raise NotApplicable(f"There is no activation named {value!r}.")
    names = functions_named(value)
    spelled = [x for x in map(rewriting.imports.spelled, names) if x]
    package = before.rpartition(".")[0]
    alike = [x for x in spelled if x.rpartition(".")[0] == package]
    extra = f"dim={_dim(layer)}" if value.endswith("softmax") else ""
    return (*alike, *spelled, "")[0] or rewriting.named(names[-1]), extra


def _call(name: str, inner: cst.BaseExpression, extra: str) -> cst.Call:
    text = f"{name}(x, {extra})" if extra else f"{name}(x)"
    call = expression(text)
    if not isinstance(call, cst.Call):
        raise NotApplicable(f"{text!r} is no call.")
    return call.with_changes(args=[call.args[0].with_changes(value=inner), *call.args[1:]])


def _bare(inner: cst.BaseExpression) -> cst.BaseExpression:
    """With brackets where an expression could fall apart in its new place."""
    if isinstance(inner, cst.BinaryOperation | cst.IfExp | cst.Comparison | cst.BooleanOperation):
        return (
            inner
            if inner.lpar
            else inner.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        )
    return inner
