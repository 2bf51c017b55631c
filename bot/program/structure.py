"""Layers taken out of a stack of layers, and layers added to it.

The value is "kept". "removed" takes the layer out; "dense_after" adds a hidden layer of the same
width with a relu behind it, "batch_norm_after" a normalisation, "dropout_after" a dropout of 0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from bot.kernel.training_types import TrainingTrace
from bot.program.keras_layers import keras_layers
from bot.program.layers import WrittenLayer, of_keras_layer, of_module
from bot.program.parsed import ProgramTree
from bot.program.rewriting import HyperparameterPlace, Rewriting, Write, make_place
from bot.program.text import NotApplicable, argument, keywords, with_argument
from bot.program.torch_layers import torch_layers

_ADDITIONS = ("dense_after", "batch_norm_after", "dropout_after")
_SHAPE_ARGUMENTS = {"input_shape", "input_dim", "batch_input_shape"}
_KERAS = {"batch_norm_after": "BatchNormalization()", "dropout_after": "Dropout(0.2)"}


def structure(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """The layers of every stack."""
    for layers in (keras_layers(program, trace), torch_layers(program, trace)):
        layers_with_width = [x for x in layers if _width(x)]
        for number, layer in enumerate(layers):
            if _element(program, layer) is None and _added_by(program, layer) is None:
                continue
            own = _choices(layer, layers_with_width)
            if own:
                after = layers[number + 1 :]
                yield make_place(
                    "layers", "kept", program.line(layer.call), _writer(layer, after),
                    layer=layer.index, choices=own,
                )  # fmt: skip


def _width(layer: WrittenLayer) -> cst.BaseExpression | None:
    """The units of a dense layer as they are written."""
    if layer.type == "Dense":
        return argument(layer.call, "units", 0)
    return argument(layer.call, "out_features", 1) if layer.type == "Linear" else None


def _choices(layer: WrittenLayer, layers_with_width: Sequence[WrittenLayer]) -> tuple[str, ...]:
    hidden = layer in layers_with_width and layer is not layers_with_width[-1]
    shape_arguments = _SHAPE_ARGUMENTS & set(keywords(layer.call))
    if hidden:
        return _ADDITIONS if shape_arguments else ("removed", *_ADDITIONS)
    side = layer.passing and not layer.type.startswith(("Flatten", "Reshape", "Unflatten"))
    return ("removed",) if side and not shape_arguments and "ool" not in layer.type else ()


def _element(program: ProgramTree, layer: WrittenLayer) -> cst.CSTNode | None:
    """The entry of a list of layers, as an argument or in brackets."""
    entry = program.parents.get(layer.call)
    holder = program.parents.get(entry) if entry else None
    if isinstance(holder, cst.Call) and program.called(holder).endswith(".Sequential"):
        return entry if layer.framework == "torch" else None
    inside = program.around(holder, cst.Call) if isinstance(holder, cst.List) else None
    is_in_sequential = isinstance(inside, cst.Call) and program.called(inside).endswith(
        ".Sequential"
    )
    return entry if is_in_sequential else None


def _added_by(program: ProgramTree, layer: WrittenLayer) -> cst.Call | None:
    """The `model.add` of a layer."""
    call = program.parents.get(program.parents.get(layer.call, layer.call))
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return call if call.func.attr.value == "add" and len(call.args) == 1 else None
    return None


def _writer(layer: WrittenLayer, after: Sequence[WrittenLayer]) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        program = rewriting.program
        added_statement = _added_by(program, layer)
        element = _element(program, layer)
        if value == "removed":
            _bridge(rewriting, layer, after)
            if added_statement:
                rewriting.remove(added_statement)
            else:
                rewriting.remove_element(element)
            return
        texts = _texts(rewriting, layer, value)
        # What is new comes behind the activation that belongs to the layer.
        last = _last(layer, after)
        if added_statement and isinstance(added_statement.func, cst.Attribute):
            end = _added_by(program, last) or added_statement
            name = program.text(added_statement.func)
            rewriting.after(end, "\n".join(f"{name}({text})" for text in texts))
        else:
            rewriting.after_element(_element(program, last) or element, *texts)

    return write


def _last(layer: WrittenLayer, after: Sequence[WrittenLayer]) -> WrittenLayer:
    for other in after[:1]:
        own = other.type == "Activation" or of_keras_layer(other.type) or of_module(other.type)
        if own and other.holder is layer.holder:
            return other
    return layer


def _bridge(rewriting: Rewriting, layer: WrittenLayer, after: Sequence[WrittenLayer]) -> None:
    """The layer after a removed one of PyTorch gets its inputs."""
    if layer.type != "Linear":
        return
    following = next((x for x in after if x.type == "Linear"), None)
    inputs = argument(layer.call, "in_features", 0)
    between = [x for x in after if following and x.index < following.index]
    unsure = any("Norm" in x.type for x in between) or rewriting.widths
    if following is None or inputs is None or unsure:
        raise NotApplicable("The layer cannot be removed, as the next ones depend on its width.")
    text = rewriting.program.text(inputs)
    rewriting.change(following.call, with_argument("in_features", text, 0))


def _texts(rewriting: Rewriting, layer: WrittenLayer, value: str) -> list[str]:
    """The constructions of what is added."""
    width = _width(layer)
    if value not in _ADDITIONS or width is None:
        raise NotApplicable(f"This layer does not support {value!r}.")
    units = rewriting.widths.get(layer.index, rewriting.program.text(width))
    if layer.framework == "keras":
        quote = rewriting.quote
        text = _KERAS.get(value, f"Dense({units}, activation={quote}relu{quote})")
        return [_spell(rewriting, layer, "keras.layers", text)]
    texts = {
        "batch_norm_after": [f"BatchNorm1d({units})"],
        "dropout_after": ["Dropout(0.2)"],
        "dense_after": [f"Linear({units}, {units})", "ReLU()"],
    }
    return [_spell(rewriting, layer, "torch.nn", text) for text in texts[value]]


def _spell(rewriting: Rewriting, layer: WrittenLayer, package: str, text: str) -> str:
    func = layer.call.func
    if isinstance(func, cst.Attribute):
        return f"{rewriting.program.text(func.value)}.{text}"
    name, _, rest = text.partition("(")
    return f"{rewriting.named(f'{package}.{name}')}({rest}"
