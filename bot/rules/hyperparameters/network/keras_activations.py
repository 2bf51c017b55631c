"""Activations of Keras layers: of their keyword, and of layers that are one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.network.functions import CHOICES, canonical, of_keras_layer
from bot.rules.hyperparameters.network.keras_layers import keras_layers
from bot.rules.hyperparameters.network.layer import WrittenLayer
from bot.rules.hyperparameters.place import HyperparameterPlace, Write, place
from bot.rules.hyperparameters.text.arguments import argument
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import dotted
from bot.rules.hyperparameters.text.uses import worded, write_argument

_ABLE = ("Dense", "Conv", "SeparableConv", "DepthwiseConv", "EinsumDense", "LocallyConnected")
_RECURRENT = ("LSTM", "GRU", "SimpleRNN")


def keras_activations(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """The function of every layer that has one or could have one, none where the next layer is
    its activation.
    """
    layers = keras_layers(program, trace)
    for number, layer in enumerate(layers):
        if layer.type == "Activation":
            yield _place(program, layer, "activation", 0)
        elif of_keras_layer(layer.type):
            yield _own(program, layer)
        elif layer.type.startswith((*_ABLE, *_RECURRENT, "TimeDistributed", "Bidirectional")):
            position = _position(program, layer)
            given = argument(layer.call, "activation", position)
            if given is not None or not _followed(layers[number + 1 :], layer):
                yield _place(program, layer, "activation", position)


def _position(program: ProgramTree, layer: WrittenLayer) -> int:
    name = program.called(layer.call).rpartition(".")[2]
    return 1 if name in ("Dense", *_RECURRENT) else -1


def _followed(after: Sequence[WrittenLayer], layer: WrittenLayer) -> bool:
    """Whether an activation comes next, perhaps after a normalisation."""
    for other in after:
        if other.holder is not layer.holder:
            return False
        if other.type == "Activation" or of_keras_layer(other.type):
            return True
        if not other.passing:
            return False
    return False


def _value(program: ProgramTree, layer: WrittenLayer, given: cst.BaseExpression | None) -> str:
    value = worded(program, given)
    if value is None or (isinstance(value, cst.Name) and value.value == "None"):
        recurrent = program.called(layer.call).rpartition(".")[2] in _RECURRENT
        return "tanh" if recurrent and value is None else "linear"
    if isinstance(value, cst.SimpleString) and isinstance(value.evaluated_value, str):
        return canonical(value.evaluated_value)
    name = program.called(value) if isinstance(value, cst.Call) else program.name(value)
    return canonical((name or dotted(value)).rpartition(".")[2] or "function")


def _place(
    program: ProgramTree, layer: WrittenLayer, name: str, position: int
) -> HyperparameterPlace:
    given = argument(layer.call, name, position)
    line = program.line(given or layer.call)

    def write(rewriting: Rewriting, value: str) -> None:
        text = _text(rewriting, given, value)
        write_argument(rewriting, layer.call, name, text, position)

    value = _value(program, layer, given)
    return place("activation", value, line, write, layer=layer.index, choices=CHOICES)


def _text(rewriting: Rewriting, given: cst.BaseExpression | None, value: str) -> str:
    if value not in CHOICES:
        raise NotApplicable(f"There is no activation named {value!r}.")
    quote = given.quote if isinstance(given, cst.SimpleString) else rewriting.quote
    return f"{quote}{value}{quote}"


def _own(program: ProgramTree, layer: WrittenLayer) -> HyperparameterPlace:
    """A layer that is an activation becomes the general one."""
    return place(
        "activation", of_keras_layer(layer.type), program.line(layer.call), _general(layer),
        layer=layer.index, choices=CHOICES,
    )  # fmt: skip


def _general(layer: WrittenLayer) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        text = _text(rewriting, None, value)
        func = layer.call.func
        name = (
            f"{rewriting.program.text(func.value)}.Activation"
            if isinstance(func, cst.Attribute)
            else rewriting.named("keras.layers.Activation")
        )
        rewriting.replace(layer.call, f"{name}({text})")

    return write
