"""Preprocessing: the arrays that a program trains and tests with, and how they are scaled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from bot.kernel.training_types import TrainingTrace
from bot.program.epochs_and_batches import fits, steps
from bot.program.parsed import ProgramTree
from bot.program.rewriting import HyperparameterPlace, Rewriting, make_place
from bot.program.text import argument, dotted, positional, read_number

# The arrays of a program: inputs and labels, for training and for testing.

_TRAIN, _TESTS = "train", ("test", "val", "valid", "validation", "dev", "eval")


@dataclass(frozen=True)
class Arrays:
    """Names within one function, or within the module. `tests` are in the order of the text."""

    train: str
    tests: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    scope: cst.FunctionDef | None = None


def arrays(program: ProgramTree, trace: TrainingTrace | None) -> Arrays | None:
    """Those of a split, otherwise what `fit` or the model gets."""
    for candidate in (*_split(program), *_arrays_of_fit(program, trace), *_passed_to_fit(program)):
        if assignments(program, candidate.train, candidate.scope):
            return candidate
    return None


def assignments(
    program: ProgramTree, name: str, scope: cst.FunctionDef | None
) -> list[cst.CSTNode]:
    """The statements of a scope that give a name its value, in the order of the text."""
    nodes: list[cst.CSTNode] = []
    for node in program.nodes:
        targets = [x.target for x in node.targets] if isinstance(node, cst.Assign) else []
        if isinstance(node, cst.AugAssign):
            targets = [node.target]
        names = {name for x in targets for name in _names(x)}
        if name in names and program.function(node) is scope:
            nodes.append(program.statement(node))
    return nodes


def _names(target: cst.BaseExpression) -> Iterator[str]:
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _names(element.value)
    elif dotted(target):
        yield dotted(target)


def _split(program: ProgramTree) -> Iterator[Arrays]:
    for node in program.of(cst.Assign):
        call = node.value
        if not isinstance(call, cst.Call) or not dotted(call.func).endswith("train_test_split"):
            continue
        names = list(_names(node.targets[0].target))
        if len(names) >= 2 and len(names) == 2 * len(positional(call)):
            yield Arrays(names[0], (names[1],), tuple(names[2:4]), program.function(node))


def _arrays_of_fit(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[Arrays]:
    for call in fits(program, trace):
        train = base(argument(call, "x", 0) or argument(call, "X"))
        labels = base(argument(call, "y", 1))
        tests = [_validation(call)]
        for method in ("evaluate", "predict"):
            tests += [base(argument(x, "x", 0)) for x in program.method(method)]
        test_names = tuple(dict.fromkeys(x for x in tests if x and x != train))
        if train:
            yield Arrays(train, test_names, (labels,) if labels else (), program.function(call))
            yield Arrays(train, test_names, (labels,) if labels else ())


def _validation(call: cst.Call) -> str:
    value = argument(call, "validation_data")
    return base(value.elements[0].value) if isinstance(value, cst.Tuple) else ""


def _passed_to_fit(program: ProgramTree) -> Iterator[Arrays]:
    """What a data set of tensors holds, or what the model is called with."""
    sets = [
        base(x.args[0].value)
        for x in program.calls
        if dotted(x.func).endswith("TensorDataset") and x.args
    ]
    calls = [base(x.args[0].value) for x in program.calls if is_model_call(program, x)]
    names = [x for x in dict.fromkeys((*sets, *calls)) if x and assignments(program, x, None)]
    train = [x for x in names if _TRAIN in x.lower()] or names
    if train:
        yield Arrays(train[0], tuple(x for x in names if x != train[0] and x not in train[1:]))


def is_model_call(program: ProgramTree, call: cst.Call) -> bool:
    """Whether a network of the program is given something."""
    calls = program.values.get(dotted(call.func), [])
    classes = {x.name.value for x in program.of(cst.ClassDef)}
    return bool(call.args) and any(
        isinstance(x, cst.Call)
        and (program.called(x).startswith("torch.nn.") or dotted(x.func) in classes)
        for x in calls
    )


def base(node: cst.BaseExpression | None) -> str:
    """The array that an expression takes rows of, "" for anything else."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def sibling(program: ProgramTree, name: str) -> str:
    """The test array that belongs to a training array by its name, "" for none."""
    for test in _TESTS:
        for train in (_TRAIN, _TRAIN.title(), _TRAIN.upper()):
            as_written = test.title() if train[0] != train[0].lower() else test
            other = name.replace(train, as_written)
            if other != name and other in program.values:
                return other
    return ""


# Inputs that are standardised, or brought between zero and one, where their arrays are ready.

CHOICES = ("standardise", "min-max")
_SCALERS = {
    "StandardScaler": "standardise", "RobustScaler": "standardise", "scale": "standardise",
    "Normalization": "standardise", "MinMaxScaler": "min-max", "MaxAbsScaler": "min-max",
}  # fmt: skip
_DEEPEST = 4
_COMPUTING = (cst.BinaryOperation, cst.Comparison, cst.BooleanOperation)
_REDUCING = frozenset((
    "sum", "mean", "std", "var", "min", "max", "prod", "norm", "argmax", "argmin", "any", "all",
    "dot", "matmul", "mm", "einsum", "where", "sign", "sin", "cos", "exp", "log", "sqrt", "abs",
    "square", "power", "median", "digitize", "round",
))  # fmt: skip


def scaling(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """How the inputs are scaled; ids of an embedding are not."""
    array_names = arrays(program, trace)
    if array_names is None or (trace and any(x.ids for x in trace.data)):
        return
    at = _ready(program, array_names)
    if at is None or _reconstructs(array_names, trace):
        return
    columns = _columns(trace)
    value = _scaled_inputs(program, array_names.train, 0) or "none"

    def write(rewriting: Rewriting, value: str) -> None:
        _write(rewriting, array_names, at, value, columns=columns)

    yield make_place("preprocessing", value, program.line(at), write, choices=CHOICES)


def _reconstructs(array_names: Arrays, trace: TrainingTrace | None) -> bool:
    """Whether the inputs are the targets too, which would be scaled with them."""
    rows = [(x.inputs, x.targets) for x in trace.data if x.targets] if trace else []
    return array_names.train in array_names.labels or any(
        inputs.shape == targets.shape and (inputs.mean, inputs.std) == (targets.mean, targets.std)
        for inputs, targets in rows
    )


def _columns(trace: TrainingTrace | None) -> bool:
    """Whether the inputs are a table, whose columns are scaled each by itself."""
    shapes = [x.inputs.shape for x in trace.data] if trace else []
    return not shapes or len(shapes[0]) <= 2


def _scaled_inputs(program: ProgramTree, name: str, depth: int) -> str:
    """What the program itself does last with an array, or with those that it is made of."""
    for value in reversed(program.values.get(name, [])):
        parts = (value, *program.inside(value))
        operation = next((x for x in (_operation(program, part) for part in parts) if x), "")
        names = dict.fromkeys(x.value for x in parts if isinstance(x, cst.Name))
        for other in names if depth < _DEEPEST else ():
            if not operation and other != name and other in program.values:
                operation = _scaled_inputs(program, other, depth + 1)
        if operation:
            return operation
    return ""


def _operation(program: ProgramTree, node: cst.CSTNode) -> str:
    """The scaling that one expression is: a scaler's, or a difference over a number."""
    if isinstance(node, cst.Call):
        return _scaler(program, node)
    is_divided = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide)
    if not isinstance(node, cst.BinaryOperation) or not is_divided or not _is_difference(node.left):
        return ""
    return "min-max" if _is_difference(node.right) else "standardise"


def _is_difference(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract)


def _scaler(program: ProgramTree, call: cst.Call) -> str:
    name = program.called(call).rpartition(".")[2]
    if name in ("transform", "fit_transform") and isinstance(call.func, cst.Attribute):
        nodes = program.values.get(program.text(call.func.value), [call.func.value])
        names = [program.called(x).rpartition(".")[2] for x in nodes if isinstance(x, cst.Call)]
        return next((_SCALERS[x] for x in names if x in _SCALERS), "")
    full = program.called(call)
    return _SCALERS.get(name, "") if full.startswith(("sklearn.", "keras.")) else ""


def _write(
    rewriting: Rewriting,
    array_names: Arrays,
    train_at: cst.CSTNode,
    scaling_name: str,
    *,
    columns: bool,
) -> None:
    program = rewriting.program
    ready = {x: assignments(program, x, array_names.scope) for x in array_names.tests}
    again = [
        x for x in assignments(program, array_names.train, array_names.scope) if x is not train_at
    ]
    after = [x for x in array_names.tests if ready[x] and _later(program, ready[x][-1], train_at)]
    beside = [x for x in array_names.tests if ready[x] and x not in after]
    first, formula = _formula(program, array_names.train, scaling_name, columns=columns)
    lines = [*first, _assignment([array_names.train, *beside], formula)]
    rewriting.after(train_at, "\n".join(lines))
    for name in after:
        rewriting.after(ready[name][-1], _assignment([name], formula))
    for node in again:
        if _later(program, node, train_at):
            rewriting.after(node, _assignment([array_names.train], formula))


def _ready(program: ProgramTree, array_names: Arrays) -> cst.CSTNode | None:
    """The last statement that makes the training inputs before they are used, or that computes
    something else, such as the targets, from unscaled inputs. None where something else needs
    scaled inputs before.
    """
    places = assignments(program, array_names.train, array_names.scope)
    uses = (
        x for x in (*fits(program), *steps(program)) if program.function(x) is array_names.scope
    )
    use_lines = [program.line(x) for x in uses]
    before = [x for x in places if not use_lines or program.line(x) < min(use_lines)]
    at = (before or places)[-1]
    computations, others = _computations(program, array_names, at, min(use_lines, default=math.inf))
    if not computations:
        return at
    last = computations[-1]
    misplaced = program.parents.get(last) is not program.parents.get(at)
    misplaced |= any(program.line(x) < program.line(last) for x in others)
    return None if misplaced else last


def _computations(
    program: ProgramTree, array_names: Arrays, at: cst.CSTNode, use_line: float
) -> tuple[list[cst.CSTNode], list[cst.CSTNode]]:
    """The statements between two places that compute something from the inputs, and those that use
    them otherwise, in the order of the text. What is done to the inputs themselves is neither.
    """
    inputs = {array_names.train, *array_names.tests}
    names_in_scope, computations, others = set(inputs), list[cst.CSTNode](), list[cst.CSTNode]()
    for node in program.of(cst.Assign):
        statement = program.statement(node)
        between = program.line(at) < program.line(statement) < use_line
        if program.function(node) is not array_names.scope or not between:
            continue
        names = {dotted(x.target) for x in node.targets}
        parts = (node.value, *program.inside(node.value))
        reads = {x.value for x in parts if isinstance(x, cst.Name)}
        predicts = any(isinstance(x, cst.Call) and is_model_call(program, x) for x in parts)
        if not reads & names_in_scope or names & inputs or predicts:
            continue
        if any(map(_computes, parts)):
            computations.append(statement)
            names_in_scope |= names
        elif reads & inputs:
            others.append(statement)
    return computations, others


def _computes(node: cst.CSTNode) -> bool:
    """An operation, or a call that brings an array to other values."""
    if isinstance(node, cst.Call):
        func = node.func
        name = func.attr if isinstance(func, cst.Attribute) else func
        return isinstance(name, cst.Name) and name.value in _REDUCING
    return isinstance(node, _COMPUTING)


def _later(program: ProgramTree, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    return program.line(one) > program.line(other)


def _assignment(names: list[str], formula: str) -> str:
    values = ", ".join(formula.format(x) for x in names)
    return f"{', '.join(names)} = {values}"


def _formula(
    program: ProgramTree, train: str, scaling_name: str, *, columns: bool
) -> tuple[list[str], str]:
    axis = "axis=0" if columns else ""
    stem = train.rpartition("_")[0] or train
    if scaling_name == "min-max":
        low, high = program.unused(f"{stem}_min"), program.unused(f"{stem}_max")
        first = f"{low}, {high} = {train}.min(), {train}.max()"
        return [first], f"({{}} - {low}) / ({high} - {low})"
    mean, std = program.unused(f"{stem}_mean"), program.unused(f"{stem}_std")
    first = f"{mean}, {std} = {train}.mean({axis}), {train}.std({axis})"
    constant = [f"{std} = {std} + ({std} == 0)  # constant columns"] if columns else []
    return [first, *constant], f"({{}} - {mean}) / {std}"


# A scaling of labels, and one of the training inputs that the test inputs do not get.

_SCALES = (cst.Divide, cst.Multiply)
_IN_PLACE = (cst.DivideAssign, cst.MultiplyAssign)
_CLASSES = ("cross_entropy", "nll", "sparse_categorical_crossentropy", "categorical_crossentropy")


def one_sided(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """Statements that scale one array by a number."""
    array_names = arrays(program, trace)
    if array_names is None:
        return
    scalings = sorted(_scaled_one_side(program), key=lambda x: program.line(x[1]))
    names = {name for name, _ in scalings}
    for name, node in scalings:
        other = _partner(program, array_names, name)
        if name in array_names.labels and _has_classes(program, trace):
            yield _labels(program, node)
        elif other and other not in names and name not in array_names.labels:
            yield _both(program, node, name, other)


def _scaled_one_side(program: ProgramTree) -> Iterator[tuple[str, cst.CSTNode]]:
    """`x = x / 255` and `x /= 255`, with the name."""
    for node in program.of(cst.AugAssign):
        if isinstance(node.operator, _IN_PLACE) and read_number(node.value) is not None:
            yield dotted(node.target), node
    for assignment in program.of(cst.Assign):
        name, value = dotted(assignment.targets[0].target), assignment.value
        if name and _scales(value, name):
            yield name, assignment


def _scales(value: cst.BaseExpression, name: str) -> bool:
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, _SCALES):
        return False
    return dotted(value.left) == name and read_number(value.right) is not None


def _partner(program: ProgramTree, array_names: Arrays, name: str) -> str:
    if name == array_names.train and len(array_names.tests) == 1:
        return array_names.tests[0]
    if name in array_names.tests:
        return array_names.train
    return sibling(program, name)


def _has_classes(program: ProgramTree, trace: TrainingTrace | None) -> bool:
    """Whether the labels are classes, which no scaling becomes."""
    if trace is not None and trace.losses:
        return any(x.name in _CLASSES for x in trace.losses)
    strings = (x.evaluated_value for x in program.of(cst.SimpleString))
    return any(x in _CLASSES for x in strings if isinstance(x, str))


def _labels(program: ProgramTree, node: cst.CSTNode) -> HyperparameterPlace:
    return make_place(
        "preprocessing", "labels scaled", program.line(node),
        lambda rewriting, _: rewriting.remove(node), choices=("unscaled",),
    )  # fmt: skip


def _both(program: ProgramTree, node: cst.CSTNode, name: str, other: str) -> HyperparameterPlace:
    def write(rewriting: Rewriting, _value: str) -> None:
        text = rewriting.program.text(node).strip()
        rewriting.after(node, re.sub(rf"\b{re.escape(name)}\b", other, text))

    return make_place(
        "preprocessing", f"{name} alone", program.line(node), write, choices=("both",)
    )
