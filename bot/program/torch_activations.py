"""Activations and initialisers of PyTorch modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from bot.kernel.training_types import HyperparameterKind, TrainingTrace
from bot.program.layers import CHOICES, MODULES, WrittenLayer, functions_named, of_module
from bot.program.parsed import ProgramTree
from bot.program.rewriting import Change, HyperparameterPlace, Rewriting, Write, make_place
from bot.program.text import (
    dotted,
    expression,
    positional,
    read_number,
)
from bot.program.torch_layers import Flow, activation, argument_of, flows, torch_layers

# Activations of PyTorch modules: modules of their own, and functions in `forward`.

_OWN_ACTIVATIONS = ("Linear", "LazyLinear", "Bilinear", "Conv", "LazyConv")


def torch_activations(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """The function of every module that is one, or after which one stands or could stand."""
    layers = torch_layers(program, trace)
    flows_by_holder = flows(program, layers)
    for number, layer in enumerate(layers):
        if of_module(layer.type):
            yield _own(program, layer)
        elif layer.type.startswith(_OWN_ACTIVATIONS):
            yield from _after(
                program, layer, flows_by_holder.get(layer.holder), layers[number + 1 :]
            )


def _own(program: ProgramTree, layer: WrittenLayer) -> HyperparameterPlace:
    value = of_module(layer.type)
    return make_place(
        "activation", value, program.line(layer.call), _module_writer(layer),
        layer=layer.index, choices=CHOICES,
    )  # fmt: skip


def _module_writer(layer: WrittenLayer) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        rewriting.replace(layer.call, module(rewriting, layer, value))

    return write


def module(rewriting: Rewriting, layer: WrittenLayer, value: str) -> str:
    """An activation module, named as the layer's own module is."""
    text = MODULES[value].format(dim=_dim(layer))
    func = layer.call.func
    if isinstance(func, cst.Attribute):
        return f"{rewriting.program.text(func.value)}.{text}"
    name, _, rest = text.partition("(")
    return f"{rewriting.named(f'torch.nn.{name}')}({rest}"


def _dim(layer: WrittenLayer) -> int:
    return 1 if layer.type.startswith(("Conv", "LazyConv")) or "2d" in layer.type else -1


def _after(
    program: ProgramTree, layer: WrittenLayer, flow: Flow | None, after: Sequence[WrittenLayer]
) -> Iterator[HyperparameterPlace]:
    """What is applied to the output of a module: the next one of its `Sequential` or a call."""
    following = _following(layer, after)
    if following is not None and of_module(following.type):
        return
    call = flow.applied.get(layer) if flow else None
    if call is not None:
        yield _apply_activation(program, layer, call)
        return
    uses = flow.uses.get(layer, []) if flow else []
    element = program.parents.get(layer.call)
    if following is None and len(uses) == 1 and _used_by_class(flow, layer):
        write = _wrapper(layer, uses[0])
        yield _linear(program, layer, write)
    elif isinstance(element, cst.Arg | cst.Element) and "." in f".{layer.path}":
        yield _linear(program, layer, _inserter(layer, element))


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


def _used_by_class(flow: Flow | None, layer: WrittenLayer) -> bool:
    return flow is not None and layer in flow.uses


def _linear(program: ProgramTree, layer: WrittenLayer, write: Write) -> HyperparameterPlace:
    return make_place(
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


def _apply_activation(
    program: ProgramTree, layer: WrittenLayer, call: cst.Call
) -> HyperparameterPlace:
    value = activation(program, call)

    def write(rewriting: Rewriting, value: str) -> None:
        rewriting.change(call, _change_activation(rewriting, layer, call, value))

    return make_place(
        "activation", value, program.line(call), write, layer=layer.index, choices=CHOICES
    )


def _change_activation(
    rewriting: Rewriting, layer: WrittenLayer, call: cst.Call, value: str
) -> Change:
    method = rewriting.program.called(call).startswith(".")
    if value == "linear":
        return lambda updated: _bare(argument_of(updated, method=method))
    name, extra = function(rewriting, layer, value, rewriting.program.text(call.func))
    return lambda updated: _call(name, argument_of(updated, method=method), extra)


def function(
    rewriting: Rewriting, layer: WrittenLayer, value: str, before: str = ""
) -> tuple[str, str]:
    """The function as the program can name it, and its further argument."""
    names = functions_named(value)
    spellings = [x for x in map(rewriting.imports.spelled, names) if x]
    package = before.rpartition(".")[0]
    alike = [x for x in spellings if x.rpartition(".")[0] == package]
    extra = f"dim={_dim(layer)}" if value.endswith("softmax") else ""
    return (*alike, *spellings, "")[0] or rewriting.named(names[-1]), extra


def _call(name: str, inner: cst.BaseExpression, extra: str) -> cst.Call:
    text = f"{name}(x, {extra})" if extra else f"{name}(x)"
    call = cst.ensure_type(expression(text), cst.Call)
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


# How a PyTorch program initialises weights and biases: calls of `nn.init` and of tensors.

_FUNCTIONS = {
    "glorot_uniform": "xavier_uniform_", "glorot_normal": "xavier_normal_",
    "he_uniform": "kaiming_uniform_", "he_normal": "kaiming_normal_", "orthogonal": "orthogonal_",
    "random_normal": "normal_", "random_uniform": "uniform_", "zeros": "zeros_", "ones": "ones_",
}  # fmt: skip
_NAMES = {text: name for name, text in _FUNCTIONS.items()} | {
    "trunc_normal_": "truncated_normal", "constant_": "constant", "sparse_": "sparse",
    "xavier_uniform": "glorot_uniform", "xavier_normal": "glorot_normal", "eye_": "identity",
    "kaiming_uniform": "he_uniform", "kaiming_normal": "he_normal",
}  # fmt: skip
_METHODS = {
    "zero_": "zeros", "fill_": "constant", "normal_": "random_normal", "uniform_": "random_uniform"
}  # fmt: skip
_ADDED_ARGUMENTS = {"random_normal": ", std=0.05", "random_uniform": ", -0.05, 0.05"}
"""As Keras draws: PyTorch's own defaults are far too wide."""
_KERNELS = ("default", *_FUNCTIONS)
_BIASES = ("default", "zeros", "ones", "random_normal", "random_uniform")
_INITIALIZED = ("Linear", "Conv")


def torch_initializers(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """What is initialised, and the layers that could be."""
    layers = torch_layers(program, trace)
    initialised: set[tuple[str, int | None]] = set()
    for call in program.calls:
        target = _target(program, call)
        if target is None:
            continue
        kind = _kind(target)
        layer = _layer(program, target, layers)
        initialised.add((kind, layer.index if layer else None))
        yield _present(program, call, target, kind, layer)
    for layer in layers:
        kinds: tuple[HyperparameterKind, ...] = ("kernel_initializer", "bias_initializer")
        for kind in kinds if layer.type.startswith(_INITIALIZED) else ():
            if not initialised & {(kind, None), (kind, layer.index)}:
                yield from _absent(program, layer, kind)


def _target(program: ProgramTree, call: cst.Call) -> cst.BaseExpression | None:
    """The tensor that a call initialises."""
    full = program.called(call)
    name = full.rpartition(".")[2]
    if full.startswith("torch.nn.init.") and name in _NAMES and call.args:
        return call.args[0].value
    if name in _METHODS and isinstance(call.func, cst.Attribute):
        receiver = call.func.value
        if isinstance(receiver, cst.Attribute) and receiver.attr.value == "data":
            receiver = receiver.value
        if isinstance(receiver, cst.Attribute) and receiver.attr.value in ("weight", "bias"):
            return receiver
    return None


def _kind(target: cst.BaseExpression) -> HyperparameterKind:
    bias = isinstance(target, cst.Attribute) and target.attr.value == "bias"
    return "bias_initializer" if bias else "kernel_initializer"


def _layer(
    program: ProgramTree, target: cst.BaseExpression, layers: Sequence[WrittenLayer]
) -> WrittenLayer | None:
    """The layer that a tensor belongs to, by its name: `self.fc.weight`, `model[0].weight`."""
    owner = target.value if isinstance(target, cst.Attribute) else None
    if owner is None:
        return None
    text = program.text(owner).replace("[", ".").replace("]", "")
    layers_at_path = [x for x in layers if x.path and text.endswith(f".{x.path}")]
    return layers_at_path[0] if len(layers_at_path) == 1 else None


def _value(program: ProgramTree, call: cst.Call) -> str:
    name = program.called(call).rpartition(".")[2]
    value = _NAMES.get(name, "") if ".init." in program.called(call) else _METHODS.get(name, "")
    arguments = positional(call)
    if value == "constant" and arguments:
        return {0.0: "zeros", 1.0: "ones"}.get(read_number(arguments[-1]) or 0.0, value)
    return value


def _present(
    program: ProgramTree,
    call: cst.Call,
    target: cst.BaseExpression,
    kind: HyperparameterKind,
    layer: WrittenLayer | None,
) -> HyperparameterPlace:
    choices = _BIASES if kind == "bias_initializer" else _KERNELS

    def write(rewriting: Rewriting, value: str) -> None:
        if value == "default":
            rewriting.remove(call)
            return
        rewriting.replace(call, _text(rewriting, program.text(target), value, call))

    return make_place(
        kind, _value(program, call), program.line(call), write,
        layer=layer.index if layer else None, choices=choices,
    )  # fmt: skip


def _text(rewriting: Rewriting, target: str, value: str, before: cst.Call | None = None) -> str:
    name = _FUNCTIONS[value]
    func = before.func if before else None
    if isinstance(func, cst.Attribute) and ".init." in rewriting.program.name(func):
        spelling = f"{rewriting.program.text(func.value)}.{name}"
    else:
        spelling = rewriting.named(f"torch.nn.init.{name}")
    return f"{spelling}({target}{_ADDED_ARGUMENTS.get(value, '')})"


def _absent(
    program: ProgramTree, layer: WrittenLayer, kind: HyperparameterKind
) -> Iterator[HyperparameterPlace]:
    """One that the framework initialises: a statement after the module is made."""
    name = _owner(program, layer)
    if not name:
        return
    tensor = "bias" if kind == "bias_initializer" else "weight"
    choices = _BIASES if tensor == "bias" else _KERNELS
    yield make_place(
        kind, "default", program.line(layer.call), _adder(layer, f"{name}.{tensor}"),
        layer=layer.index, choices=choices,
    )  # fmt: skip


def _owner(program: ProgramTree, layer: WrittenLayer) -> str:
    """How the statement after a module's construction can name the module."""
    statement = program.statement(layer.call)
    body = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    target = dotted(body.targets[0].target) if isinstance(body, cst.Assign) else ""
    own = target.removeprefix("self.")
    if not target or not isinstance(body, cst.Assign):
        return ""
    rest = layer.path.removeprefix(own) if target.startswith("self.") else f".{layer.path}"
    parts = [x for x in rest.split(".") if x]
    if any(not x.isidentifier() and not x.isdecimal() for x in parts):
        return ""
    if body.value is layer.call:
        return target
    return target + "".join(f"[{x}]" if x.isdecimal() else f".{x}" for x in parts) if parts else ""


def _adder(layer: WrittenLayer, tensor: str) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        text = _text(rewriting, tensor, value)
        element = rewriting.program.parents.get(layer.call)
        number = layer.path.rpartition(".")[2]
        if element is None or not number.isdecimal() or f"[{number}]" not in tensor:
            rewriting.after(layer.call, text)
            return
        before, _, behind = text.rpartition(f"[{number}]")
        rewriting.after_naming(layer.call, element, lambda at: f"{before}[{at}]{behind}")

    return write
