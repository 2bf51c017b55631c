"""The layers of a Keras model: their places, activations, initialisers, regularisers,
dropout and units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import libcst as cst

from bot.kernel.training_types import HyperparameterKind, Layer, TrainingTrace
from bot.program.layers import CHOICES, WrittenLayer, canonical, of_keras_layer
from bot.program.parsed import ProgramTree
from bot.program.rewriting import HyperparameterPlace, Rewriting, Write, make_place
from bot.program.text import (
    argument,
    canonical_number,
    dotted,
    snake,
    with_argument,
    without,
)
from bot.program.uses import number_used, resolved, supplied, worded, write_argument

# The Keras layers that a program constructs, with their places in the model.

_WRAPPERS = ("TimeDistributed", "Bidirectional", "SpectralNormalization")
_NO_LAYERS = ("Input", "InputLayer", "InputSpec", "Layer", "Wrapper", "RNN")
_MERGES = ("add", "concatenate", "multiply", "average", "maximum", "minimum", "dot", "subtract")
_MOST_REPEATS = 64


def keras_layers(program: ProgramTree, trace: TrainingTrace | None) -> list[WrittenLayer]:
    """In the order of the text. A trace's models say which index each has, otherwise its place
    among those of its model.
    """
    layer_calls = list(_layer_text(program))
    models = [x.layers for x in trace.models if x.framework == "keras"] if trace else []
    if not models:
        return list(_number_layers(layer_calls))
    by_call: dict[int, WrittenLayer] = {}
    for layers in _forms(models):
        remaining = [x for x in layer_calls if id(x) not in by_call]
        for layer, recorded in _aligned(program, remaining, layers):
            by_call.setdefault(id(layer), layer.at(recorded.index, recorded))
    return [by_call[id(x)] for x in layer_calls if id(x) in by_call]


def _layer_text(program: ProgramTree) -> Iterator[WrittenLayer]:
    inner: set[cst.CSTNode] = set()
    for call in program.calls:
        full = program.called(call)
        name = full.rpartition(".")[2]
        if call in inner or not full.startswith("keras.layers.") or name in _NO_LAYERS:
            continue
        if name.islower() and name not in _MERGES:
            continue
        inner_call = call.args[0].value if name in _WRAPPERS and call.args else None
        own = inner_call if isinstance(inner_call, cst.Call) else call
        inner.add(own)
        kind = name.title() if name.islower() else name
        yield WrittenLayer("keras", kind, own, holder=_holder(program, call))


def _holder(program: ProgramTree, call: cst.Call) -> cst.CSTNode | None:
    for outer in program.above(program.parents.get(call, call)):
        if isinstance(outer, cst.Call) and program.called(outer).endswith(".Sequential"):
            return outer
        if isinstance(outer, cst.FunctionDef | cst.ClassDef | cst.Module):
            return outer
    return None


def _number_layers(layer_calls: Sequence[WrittenLayer]) -> Iterator[WrittenLayer]:
    counts: Counter[cst.CSTNode | None] = Counter()
    for layer in layer_calls:
        yield layer.at(counts[layer.holder])
        counts[layer.holder] += 1


def _forms(models: Sequence[tuple[Layer, ...]]) -> list[tuple[Layer, ...]]:
    """Models of different forms; cross-validation makes one form many times."""
    forms = {tuple((x.type, x.units) for x in layers): layers for layers in reversed(models)}
    return list(reversed(forms.values()))


def _aligned(
    program: ProgramTree, layer_calls: Sequence[WrittenLayer], recorded: Sequence[Layer]
) -> Iterator[tuple[WrittenLayer, Layer]]:
    own = [x for x in recorded if x.type not in _NO_LAYERS]
    texts = _repeat_layers(program, layer_calls, len(own))
    matcher = SequenceMatcher(
        None, [_token(x.type) for x in texts], [_token(x.type) for x in own], autojunk=False
    )
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            yield texts[block.a + offset], own[block.b + offset]


def _token(kind: str) -> str:
    """What tells layers apart; an activation may have become another."""
    return "activation" if of_keras_layer(kind) else kind.lower()


def _repeat_layers(
    program: ProgramTree, layer_calls: Sequence[WrittenLayer], count: int
) -> Sequence[WrittenLayer]:
    """The layers of a loop as often as the model has them."""
    inside = [x for x in layer_calls if program.around(x.call, cst.For, cst.ListComp)]
    times, rest = divmod(count - len(layer_calls) + len(inside), len(inside)) if inside else (0, 1)
    if rest or not 1 < times <= _MOST_REPEATS:
        return layer_calls
    first = next(n for n, x in enumerate(layer_calls) if x is inside[0])
    before = [x for x in layer_calls[:first] if x not in inside]
    return [*before, *inside * times, *(x for x in layer_calls[first:] if x not in inside)]


# Activations of Keras layers: of their keyword, and of layers that are one.

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
            value = argument(layer.call, "activation", position)
            if value is not None or not _is_followed(layers[number + 1 :], layer):
                yield _place(program, layer, "activation", position)


def _position(program: ProgramTree, layer: WrittenLayer) -> int:
    name = program.called(layer.call).rpartition(".")[2]
    return 1 if name in ("Dense", *_RECURRENT) else -1


def _is_followed(after: Sequence[WrittenLayer], layer: WrittenLayer) -> bool:
    """Whether an activation comes next, perhaps after a normalisation."""
    for other in after:
        if other.holder is not layer.holder:
            return False
        if other.type == "Activation" or of_keras_layer(other.type):
            return True
        if not other.passing:
            return False
    return False


def _value(program: ProgramTree, layer: WrittenLayer, value_node: cst.BaseExpression | None) -> str:
    value = worded(program, value_node)
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
    value_node = argument(layer.call, name, position)
    line = program.line(value_node or layer.call)

    def write(rewriting: Rewriting, value: str) -> None:
        text = _text(rewriting, value_node, value)
        write_argument(rewriting, layer.call, name, text, position)

    value = _value(program, layer, value_node)
    return make_place("activation", value, line, write, layer=layer.index, choices=CHOICES)


def _text(rewriting: Rewriting, value_node: cst.BaseExpression | None, value: str) -> str:
    quote = value_node.quote if isinstance(value_node, cst.SimpleString) else rewriting.quote
    return f"{quote}{value}{quote}"


def _own(program: ProgramTree, layer: WrittenLayer) -> HyperparameterPlace:
    """A layer that is an activation becomes the general one."""
    return make_place(
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


# Initialisers, regularisers, dropout rates and units of Keras layers.

_KERNELS = ("Dense", "Conv", "SeparableConv", "LSTM", "GRU", "SimpleRNN", "EinsumDense")
_UNITS = ("Dense", "LSTM", "GRU", "SimpleRNN", "Conv")
MOST_UNITS = 4096
KERNEL_SIZES = (1, 31)
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
        if name.startswith("Conv") and "Transpose" not in name:
            yield from _number(program, layer, "kernel_size", "kernel_size", KERNEL_SIZES, 1)
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
    value_node = argument(layer.call, kind)
    value = _setting_text(program, value_node) or "default"
    line = program.line(value_node or layer.call)

    def write(rewriting: Rewriting, value: str) -> None:
        if value == "default":
            rewriting.change(layer.call, without({kind}))
            return
        quote = value_node.quote if isinstance(value_node, cst.SimpleString) else rewriting.quote
        rewriting.change(layer.call, with_argument(kind, f"{quote}{value}{quote}"))

    return make_place(kind, value, line, write, layer=layer.index, choices=choices)


def _setting_text(program: ProgramTree, node: cst.BaseExpression | None) -> str:
    """The canonical name of what a keyword is given, "" for nothing."""
    value = worded(program, node)
    if value is None or (isinstance(value, cst.Name) and value.value == "None"):
        return ""
    if isinstance(value, cst.SimpleString):
        name = str(value.evaluated_value)
    else:
        full = program.called(value) if isinstance(value, cst.Call) else program.name(value)
        name = full.rpartition(".")[2]
    return _ALIASES.get(snake(name), snake(name)) or "function"


def _regularizer(program: ProgramTree, layer: WrittenLayer) -> HyperparameterPlace:
    value_node = argument(layer.call, "kernel_regularizer")
    line = program.line(value_node or layer.call)

    def write(rewriting: Rewriting, value: str) -> None:
        if value == "none":
            rewriting.change(layer.call, without({"kernel_regularizer"}))
            return
        name, _, rest = value.partition("(")
        spelling = rewriting.imports.spelled(f"keras.regularizers.{name}")
        spelling = spelling or rewriting.named(f"keras.regularizers.{name.upper()}")
        rewriting.change(layer.call, with_argument("kernel_regularizer", f"{spelling}({rest}"))

    value = _penalty(program, value_node)
    choices = tuple(dict.fromkeys((*REGULARIZERS, value)))
    return make_place("weight_regularizer", value, line, write, layer=layer.index, choices=choices)


def _penalty(program: ProgramTree, node: cst.BaseExpression | None) -> str:
    name = _setting_text(program, node)
    value = resolved(program, node)
    if not name:
        return "none"
    number = "0.01"
    if isinstance(value, cst.Call) and value.args:
        amount = number_used(program, value.args[0].value)
        number = canonical_number(amount) if amount is not None else "?"
    return f"{name}({number})"


def _number(
    program: ProgramTree,
    layer: WrittenLayer,
    kind: HyperparameterKind,
    name: str,
    bounds: tuple[float, float],
    position: int = 0,
) -> Iterator[HyperparameterPlace]:
    value_node = supplied(program, layer.call, name, position)
    amount = number_used(program, value_node)
    if value_node is None or amount is None:
        return
    units = layer.seen.units if layer.seen is not None and kind == "units" else None
    if units and units != amount:
        return  # something decides it that the text does not show
    yield make_place(
        kind, canonical_number(amount), program.line(value_node),
        _writer(layer, name, bounds, position),
        layer=layer.index, bounds=bounds,
    )  # fmt: skip


def _writer(layer: WrittenLayer, name: str, bounds: tuple[float, float], position: int) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        write_argument(rewriting, layer.call, name, bound_number(value, bounds), position)

    return write


def bound_number(value: str, bounds: tuple[float, float]) -> str:
    """The text of a number, whole where its bounds are."""
    return str(int(float(value))) if isinstance(bounds[0], int) else value
