"""Initial weights and biases changed, regularisers added (WCI, BCI, RAW)."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.mutants import edits
from benchmarks.mutants.family import Family, Mark
from benchmarks.mutants.mutant import Mutant, edited

_LAYERS = {"Dense", "Conv1D", "Conv2D", "LSTM", "GRU", "SimpleRNN", "Embedding"}
_KERAS_WEIGHTS = (
    '"zeros"',
    '"ones"',
    "keras.initializers.RandomNormal(stddev=5.0)",
    "keras.initializers.Constant(0.5)",
)
_TORCH_WEIGHTS = (
    "nn.init.zeros_({}.weight)",
    "nn.init.ones_({}.weight)",
    "nn.init.normal_({}.weight, std=5.0)",
    "nn.init.constant_({}.weight, 0.5)",
)
_KERAS_BIASES = (
    "keras.initializers.Constant(-5.0)",
    "keras.initializers.RandomNormal(stddev=10.0)",
    "keras.initializers.Constant(-20.0)",
)
_TORCH_BIASES = (
    "nn.init.constant_({}.bias, -5.0)",
    "nn.init.normal_({}.bias, std=10.0)",
    "nn.init.constant_({}.bias, -20.0)",
)
_REGULARIZERS = (
    '"l1"',
    "keras.regularizers.L1(0.1)",
    "keras.regularizers.L2(1.0)",
    "keras.regularizers.L1L2(l1=0.05, l2=0.05)",
)
_PENALTIES = ("0.1 * {}.weight.abs().sum()", "1.0 * {}.weight.pow(2).sum()")
_DECAYS = ("0.5", "3.0")


def weights_changed(family: Family) -> Iterator[Mutant]:
    """Constant or far too large initial weights in one layer."""
    texts = _KERAS_WEIGHTS if family.framework == "keras" else _TORCH_WEIGHTS
    yield from _initialised(family, "WCI", "kernel_initializer", texts)


def biases_changed(family: Family) -> Iterator[Mutant]:
    """Far too low or far too scattered initial biases in one layer."""
    texts = _KERAS_BIASES if family.framework == "keras" else _TORCH_BIASES
    yield from _initialised(family, "BCI", "bias_initializer", texts)


def regularizers_added(family: Family) -> Iterator[Mutant]:
    """An L1 or L2 penalty on one layer; in PyTorch also weight decay on all of them."""
    for mark in family.marked("layer"):
        for text in _REGULARIZERS if family.framework == "keras" else _PENALTIES:
            change = _keyword(family, mark, "kernel_regularizer", text) or _penalty(
                family, mark, text
            )
            words = f"penalty on layer {mark.layer}: {text}"
            if change:
                yield edited(family, f"RAW({mark.layer})", [change], words, group="layer")
    yield from _decayed(family)


def _initialised(family: Family, code: str, name: str, texts: tuple[str, ...]) -> Iterator[Mutant]:
    for mark in family.marked("layer"):
        for text in texts:
            change = _keyword(family, mark, name, text) or _statement(family, mark, text)
            words = f"initial values of layer {mark.layer}: {text.format('layer')}"
            if change:
                yield edited(family, f"{code}({mark.layer})", [change], words)


def _keyword(family: Family, mark: Mark, name: str, text: str) -> edits.Edit | None:
    """Keras: an argument of the layer."""
    if family.framework == "keras":
        for call in edits.calls(family.tree, mark.line, _LAYERS.__contains__):
            return edits.with_keyword(family.source, call, name, text)
    return None


def _statement(family: Family, mark: Mark, text: str) -> edits.Edit | None:
    """PyTorch: a statement after the line that is marked `init`."""
    member = mark.option("as")
    for place in family.marked("init"):
        if member:
            layer = place.options[0] + member
            return edits.after_line(family.source, place.line, text.format(layer))
    return None


def _penalty(family: Family, mark: Mark, text: str) -> edits.Edit | None:
    """PyTorch: a term of the loss on the line that is marked `objective`."""
    member = mark.option("as")
    for place in family.marked("objective"):
        if member:
            end = edits.offset(family.source, place.line + 1, 0) - 1
            return edits.Edit(end, end, " + " + text.format(place.options[0] + member))
    return None


def _decayed(family: Family) -> Iterator[Mutant]:
    layers = tuple(f"RAW({mark.layer})" for mark in family.marked("layer"))
    for mark in family.marked("optimizer") if family.framework == "torch" else ():
        for call in edits.calls(family.tree, mark.line, {"Adam", "SGD", "RMSprop"}.__contains__):
            for text in _DECAYS:
                change = edits.with_keyword(family.source, call, "weight_decay", text)
                yield edited(
                    family,
                    "RAW",
                    [change],
                    f"weight decay {text}",
                    alternatives=layers,
                    group="decay",
                )
