"""Dropout rates and units of PyTorch modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.network.forward import flows
from bot.rules.hyperparameters.network.keras_settings import MOST_UNITS, bounded
from bot.rules.hyperparameters.network.layer import WrittenLayer
from bot.rules.hyperparameters.network.torch_layers import torch_layers
from bot.rules.hyperparameters.place import HyperparameterPlace, Write, place
from bot.rules.hyperparameters.text.arguments import argument
from bot.rules.hyperparameters.text.numbers import canonical
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.uses import (
    number_used,
    supplied,
    write_argument,
)

_RATES, _UNITS = (0.0, 0.9), (1, MOST_UNITS)
_OUTPUTS = {
    "Linear": "out_features", "Conv1d": "out_channels", "Conv2d": "out_channels",
    "LSTM": "hidden_size", "GRU": "hidden_size", "RNN": "hidden_size",
}  # fmt: skip
_INPUTS = {
    "Linear": "in_features", "Conv1d": "in_channels", "Conv2d": "in_channels",
    "LSTM": "input_size", "GRU": "input_size", "RNN": "input_size",
    "BatchNorm1d": "num_features", "BatchNorm2d": "num_features", "LayerNorm": "normalized_shape",
}  # fmt: skip
_WIDE = ("bidirectional", "proj_size", "groups")


def torch_settings(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """What the modules are given."""
    layers = torch_layers(program, trace)
    widths: set[cst.CSTNode] = set()
    for found in flows(program, layers).values():
        for layer, call in found.dropped.items():
            yield from _dropout(program, layer, call, 1)
    for number, layer in enumerate(layers):
        if "Dropout" in layer.type:
            yield from _dropout(program, layer, layer.call, 0)
        elif layer.type in _OUTPUTS:
            yield from _units(program, layer, layers[number + 1 :], widths)


def _dropout(
    program: ProgramTree, layer: WrittenLayer, call: cst.Call, position: int
) -> Iterator[HyperparameterPlace]:
    given = supplied(program, call, "p", position)
    known = number_used(program, given)
    if given and known is None:
        return

    def write(rewriting: Rewriting, value: str) -> None:
        write_argument(rewriting, call, "p", bounded(value, _RATES), position)

    value = canonical(known) if known is not None else "default"
    yield place(
        "dropout", value, program.line(given or call), write, layer=layer.index, bounds=_RATES,
    )  # fmt: skip


def _units(
    program: ProgramTree,
    layer: WrittenLayer,
    after: Sequence[WrittenLayer],
    widths: set[cst.CSTNode],
) -> Iterator[HyperparameterPlace]:
    """The units of a layer that another one follows, whose inputs are as many. A constant that
    gives the width of several layers is one hyperparameter.
    """
    if any(argument(layer.call, x) for x in _WIDE):
        return
    given = supplied(program, layer.call, _OUTPUTS[layer.type], 1)
    known = number_used(program, given, _seen(layer))
    nodes = _following(program, layer, known, after) if given else []
    if given is not None and known is not None and nodes and given not in widths:
        widths.add(given)
        yield place(
            "units", canonical(known), program.line(given),
            _everywhere([given, *nodes]), layer=layer.index, bounds=_UNITS,
        )  # fmt: skip


def _seen(layer: WrittenLayer) -> float | None:
    units = layer.seen.units if layer.seen is not None else None
    return float(units) if units else None


def _following(
    program: ProgramTree,
    layer: WrittenLayer,
    known: float | None,
    after: Sequence[WrittenLayer],
) -> list[cst.CSTNode]:
    """Where the next layers say how many inputs they get; none where that is not as many."""
    found: list[cst.CSTNode] = []
    for other in after:
        if other.type not in _INPUTS or other.holder is not layer.holder:
            if other.type in _OUTPUTS or other.holder is not layer.holder:
                return []
            continue
        given = supplied(program, other.call, _INPUTS[other.type], 0)
        if given is None or number_used(program, given) != known:
            return []
        found.append(given)
        if other.type in _OUTPUTS:
            return found
    return []


def _everywhere(nodes: Sequence[cst.CSTNode]) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        for node in dict.fromkeys(nodes):
            rewriting.replace(node, bounded(value, _UNITS))

    return write
