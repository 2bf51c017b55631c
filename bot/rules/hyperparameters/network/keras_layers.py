"""The Keras layers that a program constructs, with their places in the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import libcst as cst

from bot.models.training import Layer, TrainingTrace
from bot.rules.hyperparameters.network.functions import of_keras_layer
from bot.rules.hyperparameters.network.layer import WrittenLayer
from bot.rules.hyperparameters.text.program import ProgramTree

_WRAPPERS = ("TimeDistributed", "Bidirectional", "SpectralNormalization")
_NO_LAYERS = ("Input", "InputLayer", "InputSpec", "Layer", "Wrapper", "RNN")
_MERGES = ("add", "concatenate", "multiply", "average", "maximum", "minimum", "dot", "subtract")
_MOST_REPEATS = 64


def keras_layers(program: ProgramTree, trace: TrainingTrace | None) -> list[WrittenLayer]:
    """In the order of the text. A trace's models say which index each has, otherwise its place
    among those of its model.
    """
    written = list(_written(program))
    models = [x.layers for x in trace.models if x.framework == "keras"] if trace else []
    if not models:
        return list(_counted(written))
    found: dict[int, WrittenLayer] = {}
    for layers in _forms(models):
        left = [x for x in written if id(x) not in found]
        for layer, seen in _aligned(program, left, layers):
            found.setdefault(id(layer), layer.at(seen.index, seen))
    return [found[id(x)] for x in written if id(x) in found]


def _written(program: ProgramTree) -> Iterator[WrittenLayer]:
    inner: set[cst.CSTNode] = set()
    for call in program.calls:
        full = program.called(call)
        name = full.rpartition(".")[2]
        if call in inner or not full.startswith("keras.layers.") or name in _NO_LAYERS:
            continue
        if name.islower() and name not in _MERGES:
            continue
        wrapped = call.args[0].value if name in _WRAPPERS and call.args else None
        own = wrapped if isinstance(wrapped, cst.Call) else call
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


def _counted(written: Sequence[WrittenLayer]) -> Iterator[WrittenLayer]:
    counts: Counter[cst.CSTNode | None] = Counter()
    for layer in written:
        yield layer.at(counts[layer.holder])
        counts[layer.holder] += 1


def _forms(models: Sequence[tuple[Layer, ...]]) -> list[tuple[Layer, ...]]:
    """Models of different forms; cross-validation makes one form many times."""
    forms = {tuple((x.type, x.units) for x in layers): layers for layers in reversed(models)}
    return list(reversed(forms.values()))


def _aligned(
    program: ProgramTree, written: Sequence[WrittenLayer], seen: Sequence[Layer]
) -> Iterator[tuple[WrittenLayer, Layer]]:
    own = [x for x in seen if x.type not in _NO_LAYERS]
    texts = _repeated(program, written, len(own))
    matcher = SequenceMatcher(
        None, [_token(x.type) for x in texts], [_token(x.type) for x in own], autojunk=False
    )
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            yield texts[block.a + offset], own[block.b + offset]


def _token(kind: str) -> str:
    """What tells layers apart; an activation may have become another."""
    return "activation" if of_keras_layer(kind) else kind.lower()


def _repeated(
    program: ProgramTree, written: Sequence[WrittenLayer], count: int
) -> Sequence[WrittenLayer]:
    """The layers of a loop as often as the model has them."""
    inside = [x for x in written if program.around(x.call, cst.For, cst.ListComp)]
    times, rest = divmod(count - len(written) + len(inside), len(inside)) if inside else (0, 1)
    if rest or not 1 < times <= _MOST_REPEATS:
        return written
    first = next(n for n, x in enumerate(written) if x is inside[0])
    before = [x for x in written[:first] if x not in inside]
    return [*before, *inside * times, *(x for x in written[first:] if x not in inside)]
