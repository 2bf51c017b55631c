"""The PyTorch modules that a program constructs, with their places in the model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import libcst as cst

from bot.models.training import Layer, TrainingTrace
from bot.rules.hyperparameters.network.functions import of_module
from bot.rules.hyperparameters.network.layer import WrittenLayer
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.spelling import dotted

_CONTAINERS = frozenset({
    "Sequential", "ModuleList", "ModuleDict", "Module", "Parameter", "ParameterList",
    "ParameterDict", "DataParallel", "Transformer", "TransformerEncoder", "TransformerDecoder",
    "TransformerEncoderLayer", "TransformerDecoderLayer", "Buffer", "UninitializedParameter",
})  # fmt: skip


def torch_layers(program: ProgramTree, trace: TrainingTrace | None) -> list[WrittenLayer]:
    """In the order in which the model calls them, as far as that is known."""
    written = list(_written(program))
    models = [x.layers for x in trace.models if x.framework == "torch"] if trace else []
    if not models:
        return _counted(program, written)
    found: dict[int, WrittenLayer] = {}
    for layers in models:
        for layer, seen in _matched(written, layers):
            found.setdefault(id(layer), layer.at(seen.index, seen))
    order = list(found.values())
    return sorted(order, key=lambda x: x.index)


def _written(program: ProgramTree) -> Iterator[WrittenLayer]:
    for call in program.calls:
        full = program.called(call)
        name = full.rpartition(".")[2]
        if not full.startswith("torch.nn.") or not name[:1].isupper() or name in _CONTAINERS:
            continue
        if name.endswith("Loss") or ".functional" in full or ".utils" in full or "init" in full:
            continue
        applied = program.parents.get(call)
        if isinstance(applied, cst.Call) and applied.func is call:
            continue
        path, holder = _path(program, call)
        yield WrittenLayer("torch", name, call, path=path, holder=holder)


def _path(program: ProgramTree, call: cst.Call) -> tuple[str, cst.CSTNode | None]:
    """The name of a module within the class, or the `Sequential`, that holds it."""
    parts: list[str] = []
    holder: cst.CSTNode | None = None
    below: cst.CSTNode = call
    for outer in program.above(program.parents.get(call, call)):
        if isinstance(outer, cst.List) and _lists_modules(program, outer):
            parts += [str(n) for n, x in enumerate(outer.elements) if x is below]
        elif isinstance(outer, cst.Call):
            name = _within(program, outer, below)
            parts += [name] if name else []
            holder = outer if program.called(outer).endswith(".Sequential") else holder
        elif isinstance(outer, cst.Assign):
            target = dotted(_target(outer, below))
            parts += [target.removeprefix("self.")] if target.startswith("self.") else []
        elif isinstance(outer, cst.ClassDef):
            return ".".join(reversed(parts)), outer
        elif isinstance(outer, cst.FunctionDef) and holder is None:
            holder = None if program.around(outer, cst.ClassDef) else outer
        if isinstance(outer, cst.Arg | cst.Element):
            below = outer
    return ".".join(reversed(parts)), holder or program.module


def _target(assign: cst.Assign, below: cst.CSTNode) -> cst.BaseExpression:
    """What gets the part of the value that `below` is: one of several names, or the only one."""
    target, value = assign.targets[0].target, assign.value
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        pairs = zip(target.elements, value.elements, strict=False)
        return next((x.value for x, part in pairs if part is below), target)
    return target


def _lists_modules(program: ProgramTree, listed: cst.List) -> bool:
    """Whether a list is what a `Sequential` or a `ModuleList` is made of."""
    arg = program.parents.get(listed)
    call = program.parents.get(arg) if isinstance(arg, cst.Arg) else None
    name = program.called(call) if isinstance(call, cst.Call) else ""
    return name.endswith((".Sequential", ".ModuleList"))


def _within(program: ProgramTree, outer: cst.Call, below: cst.CSTNode) -> str:
    """The place in a `Sequential`, or the name that `add_module` or an `OrderedDict` gives."""
    name = program.called(outer).rpartition(".")[2]
    if name == "Sequential":
        own, arg = next((n, x) for n, x in enumerate(outer.args) if x is below)
        return "" if arg.star or _is_dictionary(outer) else str(own)
    if name in ("add_module", "register_module"):
        key = outer.args[0].value if outer.args else None
        return str(key.evaluated_value) if isinstance(key, cst.SimpleString) else ""
    if name == "OrderedDict":
        pair = below.value if isinstance(below, cst.Element) else None
        return _key(program, outer, pair)
    return ""


def _is_dictionary(call: cst.Call) -> bool:
    first = call.args[0].value if call.args else None
    return isinstance(first, cst.Call) and dotted(first.func).endswith("OrderedDict")


def _key(program: ProgramTree, outer: cst.Call, below: cst.CSTNode | None) -> str:
    del program, outer
    first = below.elements[0].value if isinstance(below, cst.Tuple) and below.elements else None
    return str(first.evaluated_value) if isinstance(first, cst.SimpleString) else ""


def _matched(
    written: Sequence[WrittenLayer], seen: Sequence[Layer]
) -> Iterator[tuple[WrittenLayer, Layer]]:
    """Each layer of a trace with the text of its name, of the class that explains most of them;
    where names say nothing, with those that one place makes in the same order.
    """
    holders: Counter[cst.CSTNode | None] = Counter()
    fits: dict[int, list[WrittenLayer]] = defaultdict(list)
    for layer in seen:
        for text in written:
            if _alike(text.type, layer.type) and _named(text.path, layer.name):
                fits[layer.index].append(text)
                holders[text.holder] += 1
    for layer in seen:
        best = sorted(
            fits[layer.index], key=lambda x: (x.path == layer.name, holders[x.holder]), reverse=True
        )
        yield from ((text, layer) for text in best[:1])
    if not holders:
        for layers in _by_holder(written).values():
            same = len(layers) == len(seen)
            if same and all(_alike(x.type, y.type) for x, y in zip(layers, seen, strict=True)):
                yield from zip(layers, seen, strict=True)


def _by_holder(written: Sequence[WrittenLayer]) -> dict[cst.CSTNode | None, list[WrittenLayer]]:
    groups: dict[cst.CSTNode | None, list[WrittenLayer]] = defaultdict(list)
    for layer in written:
        groups[layer.holder].append(layer)
    return groups


def _alike(one: str, other: str) -> bool:
    """Of one type; an activation may have become another."""
    return one == other or bool(of_module(one) and of_module(other))


def _named(path: str, name: str) -> bool:
    return bool(path) and (path == name or name.endswith(f".{path}") or path.endswith(f".{name}"))


def _counted(program: ProgramTree, written: Sequence[WrittenLayer]) -> list[WrittenLayer]:
    """Without a trace: each class by itself, in the order of its forward pass."""
    found: list[WrittenLayer] = []
    for holder, layers in _by_holder(written).items():
        order = _called(program, holder) if isinstance(holder, cst.ClassDef) else {}
        ranked = sorted(layers, key=lambda x: order.get(x.path.partition(".")[0], len(order)))
        found += [layer.at(index) for index, layer in enumerate(ranked)]
    return found


def _called(program: ProgramTree, holder: cst.ClassDef) -> dict[str, int]:
    """The attributes of a class in the order in which `forward` calls them, inside out."""
    forward = next(
        (x for x in program.within(holder, cst.FunctionDef) if x.name.value == "forward"), None
    )
    if forward is None:
        return {}
    walk = _Calls()
    forward.visit(walk)
    return {name: n for n, name in enumerate(dict.fromkeys(walk.names))}


class _Calls(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def on_leave(self, original_node: cst.CSTNode) -> None:
        name = dotted(original_node.func) if isinstance(original_node, cst.Call) else ""
        if name.startswith("self."):
            self.names.append(name.split(".")[1])
