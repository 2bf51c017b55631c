"""How a PyTorch program initialises weights and biases: calls of `nn.init` and of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from bot.models.repair import HyperparameterKind
from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.network.layer import WrittenLayer
from bot.rules.hyperparameters.network.torch_layers import torch_layers
from bot.rules.hyperparameters.place import HyperparameterPlace, Write, place
from bot.rules.hyperparameters.text.arguments import positional
from bot.rules.hyperparameters.text.expressions import NotApplicable, expression
from bot.rules.hyperparameters.text.numbers import number
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import dotted

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
_ADDED = {"random_normal": ", std=0.05", "random_uniform": ", -0.05, 0.05"}
"""As Keras draws: PyTorch's own defaults are far too wide."""
_KERNELS = ("default", *_FUNCTIONS)
_BIASES = ("default", "zeros", "ones", "random_normal", "random_uniform")
_ABLE = ("Linear", "Conv")


def torch_initializers(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """What is initialised, and the layers that could be."""
    layers = torch_layers(program, trace)
    done: set[tuple[str, int | None]] = set()
    for call in program.calls:
        target = _target(program, call)
        if target is None:
            continue
        kind = _kind(target)
        layer = _layer(program, target, layers)
        done.add((kind, layer.index if layer else None))
        yield _present(program, call, target, kind, layer)
    for layer in layers:
        kinds: tuple[HyperparameterKind, ...] = ("kernel_initializer", "bias_initializer")
        for kind in kinds if layer.type.startswith(_ABLE) else ():
            if not done & {(kind, None), (kind, layer.index)}:
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
    named = [x for x in layers if x.path and text.endswith(f".{x.path}")]
    return named[0] if len(named) == 1 else None


def _value(program: ProgramTree, call: cst.Call) -> str:
    name = program.called(call).rpartition(".")[2]
    value = _NAMES.get(name, "") if ".init." in program.called(call) else _METHODS.get(name, "")
    given = positional(call)
    if value == "constant" and given:
        return {0.0: "zeros", 1.0: "ones"}.get(number(given[-1]) or 0.0, value)
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

    return place(
        kind, _value(program, call), program.line(call), write,
        layer=layer.index if layer else None, choices=choices,
    )  # fmt: skip


def _text(rewriting: Rewriting, target: str, value: str, before: cst.Call | None = None) -> str:
    if value not in _FUNCTIONS:
        raise NotApplicable(f"There is no initialiser named {value!r}.")
    name = _FUNCTIONS[value]
    func = before.func if before else None
    if isinstance(func, cst.Attribute) and ".init." in rewriting.program.name(func):
        spelled = f"{rewriting.program.text(func.value)}.{name}"
    else:
        spelled = rewriting.named(f"torch.nn.init.{name}")
    text = f"{spelled}({target}{_ADDED.get(value, '')})"
    expression(text)
    return text


def _absent(
    program: ProgramTree, layer: WrittenLayer, kind: HyperparameterKind
) -> Iterator[HyperparameterPlace]:
    """One that the framework initialises: a statement after the module is made."""
    name = _owner(program, layer)
    if not name:
        return
    tensor = "bias" if kind == "bias_initializer" else "weight"
    choices = _BIASES if tensor == "bias" else _KERNELS
    yield place(
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
