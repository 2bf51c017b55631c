"""The modules of a PyTorch program: their places, what `forward` does with them, dropout and
units.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from bot.kernel.training_types import Layer, TrainingTrace
from bot.program.keras_layers import KERNEL_SIZES, MOST_UNITS, bound_number
from bot.program.layers import WrittenLayer, of_function, of_module
from bot.program.parsed import ProgramTree
from bot.program.rewriting import HyperparameterPlace, Rewriting, Write, make_place
from bot.program.text import NotApplicable, argument, canonical_number, dotted
from bot.program.uses import number_used, supplied, write_argument

# The PyTorch modules that a program constructs, with their places in the model.

_CONTAINERS = frozenset({
    "Sequential", "ModuleList", "ModuleDict", "Module", "Parameter", "ParameterList",
    "ParameterDict", "DataParallel", "Transformer", "TransformerEncoder", "TransformerDecoder",
    "TransformerEncoderLayer", "TransformerDecoderLayer", "Buffer", "UninitializedParameter",
})  # fmt: skip


def torch_layers(program: ProgramTree, trace: TrainingTrace | None) -> list[WrittenLayer]:
    """In the order in which the model calls them, as far as that is known."""
    layer_calls = list(_layer_calls(program))
    models = [x.layers for x in trace.models if x.framework == "torch"] if trace else []
    if not models:
        return _number_layers(program, layer_calls)
    by_call: dict[int, WrittenLayer] = {}
    for layers in models:
        for layer, recorded in _match_layers(layer_calls, layers):
            by_call.setdefault(id(layer), layer.at(recorded.index, recorded))
    order = list(by_call.values())
    return sorted(order, key=lambda x: x.index)


def _layer_calls(program: ProgramTree) -> Iterator[WrittenLayer]:
    for call in program.calls:
        full = program.called(call)
        name = full.rpartition(".")[2]
        if not full.startswith("torch.nn.") or not name[:1].isupper() or name in _CONTAINERS:
            continue
        if name.endswith("Loss") or ".functional" in full or ".utils" in full or "init" in full:
            continue
        outer_call = program.parents.get(call)
        if isinstance(outer_call, cst.Call) and outer_call.func is call:
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


def _lists_modules(program: ProgramTree, module_list: cst.List) -> bool:
    """Whether a list is what a `Sequential` or a `ModuleList` is made of."""
    arg = program.parents.get(module_list)
    call = program.parents.get(arg) if isinstance(arg, cst.Arg) else None
    name = program.called(call) if isinstance(call, cst.Call) else ""
    return name.endswith((".Sequential", ".ModuleList"))


def _within(program: ProgramTree, outer: cst.Call, below: cst.CSTNode) -> str:
    """The place in a `Sequential`, or the name that `add_module` gives."""
    name = program.called(outer).rpartition(".")[2]
    if name == "Sequential":
        own, arg = next((n, x) for n, x in enumerate(outer.args) if x is below)
        return "" if arg.star or _is_dictionary(outer) else str(own)
    if name in ("add_module", "register_module"):
        key = outer.args[0].value if outer.args else None
        return str(key.evaluated_value) if isinstance(key, cst.SimpleString) else ""
    return ""


def _is_dictionary(call: cst.Call) -> bool:
    first = call.args[0].value if call.args else None
    return isinstance(first, cst.Call) and dotted(first.func).endswith("OrderedDict")


def _match_layers(
    layer_calls: Sequence[WrittenLayer], recorded: Sequence[Layer]
) -> Iterator[tuple[WrittenLayer, Layer]]:
    """Each layer of a trace with the text of its name, of the class that explains most of them;
    where names say nothing, with those that one place makes in the same order.
    """
    holders: Counter[cst.CSTNode | None] = Counter()
    fits: dict[int, list[WrittenLayer]] = defaultdict(list)
    for layer in recorded:
        for text in layer_calls:
            if _alike(text.type, layer.type) and _is_at_path(text.path, layer.name):
                fits[layer.index].append(text)
                holders[text.holder] += 1
    for layer in recorded:
        best = sorted(
            fits[layer.index], key=lambda x: (x.path == layer.name, holders[x.holder]), reverse=True
        )
        yield from ((text, layer) for text in best[:1])
    if not holders:
        for layers in _by_holder(layer_calls).values():
            same = len(layers) == len(recorded)
            if same and all(_alike(x.type, y.type) for x, y in zip(layers, recorded, strict=True)):
                yield from zip(layers, recorded, strict=True)


def _by_holder(layer_calls: Sequence[WrittenLayer]) -> dict[cst.CSTNode | None, list[WrittenLayer]]:
    groups: dict[cst.CSTNode | None, list[WrittenLayer]] = defaultdict(list)
    for layer in layer_calls:
        groups[layer.holder].append(layer)
    return groups


def _alike(one: str, other: str) -> bool:
    """Of one type; an activation may have become another."""
    return one == other or bool(of_module(one) and of_module(other))


def _is_at_path(path: str, name: str) -> bool:
    return bool(path) and (path == name or name.endswith(f".{path}") or path.endswith(f".{name}"))


def _number_layers(program: ProgramTree, layer_calls: Sequence[WrittenLayer]) -> list[WrittenLayer]:
    """Without a trace: each class by itself, in the order of its forward pass."""
    result: list[WrittenLayer] = []
    for holder, layers in _by_holder(layer_calls).items():
        order = _called_module(program, holder) if isinstance(holder, cst.ClassDef) else {}
        ordered_layers = sorted(
            layers, key=lambda x: order.get(x.path.partition(".")[0], len(order))
        )
        result += [layer.at(index) for index, layer in enumerate(ordered_layers)]
    return result


def _called_module(program: ProgramTree, holder: cst.ClassDef) -> dict[str, int]:
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


# What a `forward` method does with its modules: where each is called, and which function is
# applied to what it returns.

_MOST_DEEP = 40
_DROPOUTS = ("torch.nn.functional.dropout", "torch.dropout")


@dataclass
class Flow:
    """`uses` has the calls of each module, `applied` the activations and `dropped` the dropouts,
    each by the module whose output they get.
    """

    program: ProgramTree
    modules: dict[str, list[WrittenLayer]]
    uses: dict[WrittenLayer, list[cst.Call]] = field(default_factory=dict)
    applied: dict[WrittenLayer, cst.Call] = field(default_factory=dict)
    dropped: dict[WrittenLayer, cst.Call] = field(default_factory=dict)
    names: dict[str, WrittenLayer | None] = field(default_factory=dict)


def flows(program: ProgramTree, layers: Sequence[WrittenLayer]) -> dict[cst.CSTNode | None, Flow]:
    """The flow through each class that holds some of the layers."""
    holders = dict.fromkeys(x.holder for x in layers if isinstance(x.holder, cst.ClassDef))
    return {
        holder: flow(program, holder, [x for x in layers if x.holder is holder])
        for holder in holders
        if holder is not None
    }


def flow(program: ProgramTree, holder: cst.ClassDef, layers: Sequence[WrittenLayer]) -> Flow:
    """The flow through the `forward` of a class with these layers."""
    modules: dict[str, list[WrittenLayer]] = {}
    for layer in layers:
        modules.setdefault(layer.path.partition(".")[0], []).append(layer)
    result = Flow(program, modules)
    for method in program.within(holder, cst.FunctionDef):
        if method.name.value == "forward":
            for node in program.inside(method):
                _statement(result, node)
    return result


def _statement(result: Flow, node: cst.CSTNode) -> None:
    value = getattr(node, "value", None)
    if not isinstance(node, cst.BaseSmallStatement) or not isinstance(value, cst.BaseExpression):
        return
    layer = _through(result, value, 0)
    targets = [x.target for x in node.targets] if isinstance(node, cst.Assign) else []
    if isinstance(node, cst.AnnAssign):
        targets = [node.target]
    for target in targets:
        for name in _names(target):
            result.names[name] = layer


def _names(target: cst.BaseExpression) -> list[str]:
    if isinstance(target, cst.Tuple | cst.List):
        return [name for x in target.elements for name in _names(x.value)]
    return [dotted(target)] if dotted(target) else []


def _through(result: Flow, node: cst.BaseExpression, depth: int) -> WrittenLayer | None:
    """The module whose output an expression is, perhaps reshaped or normalised."""
    if depth > _MOST_DEEP:
        return None
    if isinstance(node, cst.Name | cst.Attribute) and dotted(node) in result.names:
        return result.names[dotted(node)]
    if isinstance(node, cst.Subscript | cst.Attribute):
        return _through(result, node.value, depth + 1)
    if isinstance(node, cst.Call):
        return _called_function(result, node, depth + 1)
    if isinstance(node, cst.Tuple | cst.List):
        layers = [_through(result, x.value, depth + 1) for x in node.elements]
        return layers[0] if layers else None
    if isinstance(node, cst.BinaryOperation):
        _through(result, node.left, depth + 1)
        _through(result, node.right, depth + 1)
    return None


def _called_function(result: Flow, call: cst.Call, depth: int) -> WrittenLayer | None:
    layers = [_through(result, x.value, depth) for x in call.args]
    own = _module(result, call)
    if own:
        for layer in own[-1:]:
            result.uses.setdefault(layer, []).append(call)
        if len(own) == 1 and own[0].passing:
            return layers[0] if layers else None
        return own[-1]
    receiver = None
    if isinstance(call.func, cst.Attribute) and not result.program.name(call.func).startswith(
        "torch"
    ):
        receiver = _through(result, call.func.value, depth)
    source = receiver or (layers[0] if layers else None)
    if activation(result.program, call) and source is not None:
        result.applied.setdefault(source, call)
    if result.program.called(call) in _DROPOUTS and source is not None:
        result.dropped.setdefault(source, call)
    return source


def _module(result: Flow, call: cst.Call) -> list[WrittenLayer]:
    name = dotted(call.func)
    if name.startswith("self."):
        return result.modules.get(name.split(".")[1], [])
    return []


def activation(program: ProgramTree, call: cst.Call) -> str:
    """The canonical name of the function that a call applies, "" for another call."""
    function = of_function(program.called(call))
    if function or not isinstance(call.func, cst.Call):
        return function
    return of_module(program.called(call.func).rpartition(".")[2])


def argument_of(call: cst.Call, *, method: bool) -> cst.BaseExpression:
    """What an activation is applied to."""
    if method and isinstance(call.func, cst.Attribute):
        return call.func.value
    return call.args[0].value


# Dropout rates and units of PyTorch modules.

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
    for flow in flows(program, layers).values():
        for layer, call in flow.dropped.items():
            yield from _dropout(program, layer, call, 1)
    for number, layer in enumerate(layers):
        if "Dropout" in layer.type:
            yield from _dropout(program, layer, layer.call, 0)
        elif layer.type in _OUTPUTS:
            yield from _units(program, layer, layers[number + 1 :], widths)
            yield from _kernel_size(program, layer)


def _dropout(
    program: ProgramTree, layer: WrittenLayer, call: cst.Call, position: int
) -> Iterator[HyperparameterPlace]:
    value_node = supplied(program, call, "p", position)
    rate = number_used(program, value_node)
    if value_node and rate is None:
        return

    def write(rewriting: Rewriting, value: str) -> None:
        write_argument(rewriting, call, "p", bound_number(value, _RATES), position)

    value = canonical_number(rate) if rate is not None else "default"
    yield make_place(
        "dropout", value, program.line(value_node or call), write, layer=layer.index, bounds=_RATES,
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
    value_node = supplied(program, layer.call, _OUTPUTS[layer.type], 1)
    units = number_used(program, value_node, _recorded_units(layer))
    nodes = _following(program, layer, units, after) if value_node else []
    if value_node is not None and units is not None and nodes and value_node not in widths:
        widths.add(value_node)
        yield make_place(
            "units", canonical_number(units), program.line(value_node),
            _everywhere([value_node, *nodes]), layer=layer.index, bounds=_UNITS,
        )  # fmt: skip


def _kernel_size(program: ProgramTree, layer: WrittenLayer) -> Iterator[HyperparameterPlace]:
    """The size of square filters. The padding grows with it: the outputs keep their shape."""
    if not layer.type.startswith("Conv") or argument(layer.call, "dilation", 5) is not None:
        return
    value_node = supplied(program, layer.call, "kernel_size", 2)
    size = number_used(program, value_node)
    padding_node = supplied(program, layer.call, "padding", 4)
    padding = 0.0 if padding_node is None else number_used(program, padding_node)
    if value_node is None or size is None or padding is None:
        return

    def write(rewriting: Rewriting, value: str) -> None:
        wider = (float(value) - size) / 2
        if wider % 1 or padding + wider < 0:
            raise NotApplicable(f"Filters of size {value} would change the shape of the outputs.")
        rewriting.replace(value_node, bound_number(value, KERNEL_SIZES))
        write_argument(rewriting, layer.call, "padding", f"{padding + wider:.0f}", 4)

    yield make_place(
        "kernel_size", canonical_number(size), program.line(value_node), write,
        layer=layer.index, bounds=KERNEL_SIZES,
    )  # fmt: skip


def _recorded_units(layer: WrittenLayer) -> float | None:
    units = layer.seen.units if layer.seen is not None else None
    return float(units) if units else None


def _following(
    program: ProgramTree,
    layer: WrittenLayer,
    units: float | None,
    after: Sequence[WrittenLayer],
) -> list[cst.CSTNode]:
    """Where the next layers say how many inputs they get; none where that is not as many."""
    nodes: list[cst.CSTNode] = []
    for other in after:
        if other.type not in _INPUTS or other.holder is not layer.holder:
            if other.type in _OUTPUTS or other.holder is not layer.holder:
                return []
            continue
        value_node = supplied(program, other.call, _INPUTS[other.type], 0)
        if value_node is None or number_used(program, value_node) != units:
            return []
        nodes.append(value_node)
        if other.type in _OUTPUTS:
            return nodes
    return []


def _everywhere(nodes: Sequence[cst.CSTNode]) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        for node in dict.fromkeys(nodes):
            rewriting.replace(node, bound_number(value, _UNITS))

    return write
