"""Initialisers, regularisers, dropout rates and units of Keras layers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from bot.models.repair import HyperparameterKind
from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.network.keras_layers import keras_layers
from bot.rules.hyperparameters.network.layer import WrittenLayer
from bot.rules.hyperparameters.place import HyperparameterPlace, Write, place
from bot.rules.hyperparameters.text.arguments import argument, with_argument, without
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.numbers import canonical, parsed
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import snake
from bot.rules.hyperparameters.text.uses import (
    number_used,
    resolved,
    supplied,
    worded,
    write_argument,
)

_KERNELS = ("Dense", "Conv", "SeparableConv", "LSTM", "GRU", "SimpleRNN", "EinsumDense")
_UNITS = ("Dense", "LSTM", "GRU", "SimpleRNN", "Conv")
MOST_UNITS = 4096
INITIALIZERS = (
    "default", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform",
    "lecun_normal", "random_normal", "random_uniform", "orthogonal", "zeros", "ones",
)  # fmt: skip
BIASES = ("default", "zeros", "ones", "random_normal", "random_uniform")
REGULARIZERS = ("none", "l1(0.001)", "l2(0.0001)", "l2(0.001)", "l2(0.01)", "l1(0.01)")
_ALIASES = {"normal": "random_normal", "uniform": "random_uniform", "zero": "zeros", "one": "ones"}


def keras_settings(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """What else the layers are given."""
    layers = keras_layers(program, trace)
    last = max(
        (n for n, x in enumerate(layers) if _name(program, x).startswith(_UNITS)), default=-1
    )
    for number, layer in enumerate(layers):
        name = _name(program, layer)
        if name.startswith(_KERNELS):
            yield _initializer(program, layer, "kernel_initializer", INITIALIZERS)
            yield _initializer(program, layer, "bias_initializer", BIASES)
            yield _regularizer(program, layer)
        if name.startswith(_UNITS) and number != last:
            position = "filters" if name.startswith("Conv") else "units"
            yield from _number(program, layer, "units", position, (1, MOST_UNITS))
        if "Dropout" in name:
            yield from _number(program, layer, "dropout", "rate", (0.0, 0.9))


def _name(program: ProgramTree, layer: WrittenLayer) -> str:
    return program.called(layer.call).rpartition(".")[2]


def _initializer(
    program: ProgramTree,
    layer: WrittenLayer,
    kind: HyperparameterKind,
    choices: tuple[str, ...],
) -> HyperparameterPlace:
    given = argument(layer.call, kind)
    value = _written(program, given) or "default"
    line = program.line(given or layer.call)

    def write(rewriting: Rewriting, wanted: str) -> None:
        if wanted not in choices:
            raise NotApplicable(f"There is no initialiser named {wanted!r}.")
        if wanted == "default":
            rewriting.change(layer.call, without({kind}))
            return
        quote = given.quote if isinstance(given, cst.SimpleString) else rewriting.quote
        rewriting.change(layer.call, with_argument(kind, f"{quote}{wanted}{quote}"))

    return place(kind, value, line, write, layer=layer.index, choices=choices)


def _written(program: ProgramTree, given: cst.BaseExpression | None) -> str:
    """The canonical name of what a keyword is given, "" for nothing."""
    value = worded(program, given)
    if value is None or (isinstance(value, cst.Name) and value.value == "None"):
        return ""
    if isinstance(value, cst.SimpleString):
        name = str(value.evaluated_value)
    else:
        full = program.called(value) if isinstance(value, cst.Call) else program.name(value)
        name = full.rpartition(".")[2]
    return _ALIASES.get(snake(name), snake(name)) or "function"


def _regularizer(program: ProgramTree, layer: WrittenLayer) -> HyperparameterPlace:
    given = argument(layer.call, "kernel_regularizer")
    line = program.line(given or layer.call)

    def write(rewriting: Rewriting, wanted: str) -> None:
        if wanted == "none":
            rewriting.change(layer.call, without({"kernel_regularizer"}))
            return
        name, _, rest = wanted.partition("(")
        if name not in ("l1", "l2") or parsed(rest.rstrip(")")) is None:
            raise NotApplicable(f"There is no regulariser {wanted!r}.")
        spelled = rewriting.imports.spelled(f"keras.regularizers.{name}")
        spelled = spelled or rewriting.named(f"keras.regularizers.{name.upper()}")
        rewriting.change(
            layer.call, with_argument("kernel_regularizer", f"{spelled}({rest.rstrip(')')})")
        )

    value = _penalty(program, given)
    choices = tuple(dict.fromkeys((*REGULARIZERS, value)))
    return place("weight_regularizer", value, line, write, layer=layer.index, choices=choices)


def _penalty(program: ProgramTree, given: cst.BaseExpression | None) -> str:
    name = _written(program, given)
    value = resolved(program, given)
    if not name:
        return "none"
    number = "0.01"
    if isinstance(value, cst.Call) and value.args:
        known = number_used(program, value.args[0].value)
        number = canonical(known) if known is not None else "?"
    return f"{name}({number})"


def _number(
    program: ProgramTree,
    layer: WrittenLayer,
    kind: HyperparameterKind,
    name: str,
    bounds: tuple[float, float],
) -> Iterator[HyperparameterPlace]:
    given = supplied(program, layer.call, name, 0)
    known = number_used(program, given)
    if given is None or known is None:
        return
    seen = layer.seen.units if layer.seen is not None and kind == "units" else None
    if seen and seen != known:
        return  # something decides it that the text does not show
    yield place(
        kind, canonical(known), program.line(given), _writer(layer, name, bounds),
        layer=layer.index, bounds=bounds,
    )  # fmt: skip


def _writer(layer: WrittenLayer, name: str, bounds: tuple[float, float]) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        write_argument(rewriting, layer.call, name, bounded(value, bounds), 0)

    return write


def bounded(value: str, bounds: tuple[float, float]) -> str:
    """The text of a number within its bounds, whole where they are. Raises NotApplicable."""
    number = parsed(value)
    whole = isinstance(bounds[0], int)
    if number is None or not bounds[0] <= number <= bounds[1] or (whole and number % 1):
        raise NotApplicable(f"{value!r} is not a number from {bounds[0]} to {bounds[1]}.")
    return str(int(number)) if whole else value
