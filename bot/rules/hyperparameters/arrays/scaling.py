"""Inputs that are standardised, or brought between zero and one, where their arrays are ready."""

from __future__ import annotations

import math
from collections.abc import Iterator

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.arrays.split import Arrays, arrays, assignments, is_model_call
from bot.rules.hyperparameters.place import HyperparameterPlace, place
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import dotted
from bot.rules.hyperparameters.training.fitting import fits
from bot.rules.hyperparameters.training.loops import steps

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
    found = arrays(program, trace)
    if found is None or (trace and any(x.ids for x in trace.data)):
        return
    at = _ready(program, found)
    if at is None or _reconstructs(found, trace):
        return
    columns = _columns(trace)
    value = _scaled(program, found.train, 0) or "none"

    def write(rewriting: Rewriting, wanted: str) -> None:
        if wanted not in CHOICES:
            raise NotApplicable(f"There is no scaling named {wanted!r}.")
        _write(rewriting, found, at, wanted, columns=columns)

    yield place("preprocessing", value, program.line(at), write, choices=CHOICES)


def _reconstructs(found: Arrays, trace: TrainingTrace | None) -> bool:
    """Whether the inputs are the targets too, which would be scaled with them."""
    rows = [(x.inputs, x.targets) for x in trace.data if x.targets] if trace else []
    return found.train in found.labels or any(
        given.shape == wanted.shape and (given.mean, given.std) == (wanted.mean, wanted.std)
        for given, wanted in rows
    )


def _columns(trace: TrainingTrace | None) -> bool:
    """Whether the inputs are a table, whose columns are scaled each by itself."""
    shapes = [x.inputs.shape for x in trace.data] if trace else []
    return not shapes or len(shapes[0]) <= 2


def _scaled(program: ProgramTree, name: str, depth: int) -> str:
    """What the program itself does last with an array, or with those that it is made of."""
    for value in reversed(program.values.get(name, [])):
        parts = (value, *program.inside(value))
        known = next((x for x in (_operation(program, part) for part in parts) if x), "")
        names = dict.fromkeys(x.value for x in parts if isinstance(x, cst.Name))
        for other in names if depth < _DEEPEST else ():
            if not known and other != name and other in program.values:
                known = _scaled(program, other, depth + 1)
        if known:
            return known
    return ""


def _operation(program: ProgramTree, node: cst.CSTNode) -> str:
    """The scaling that one expression is: a scaler's, or a difference over a number."""
    if isinstance(node, cst.Call):
        return _scaler(program, node)
    divided = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide)
    if not isinstance(node, cst.BinaryOperation) or not divided or not _is_difference(node.left):
        return ""
    return "min-max" if _is_difference(node.right) else "standardise"


def _is_difference(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract)


def _scaler(program: ProgramTree, call: cst.Call) -> str:
    name = program.called(call).rpartition(".")[2]
    if name in ("transform", "fit_transform") and isinstance(call.func, cst.Attribute):
        made = program.values.get(program.text(call.func.value), [call.func.value])
        names = [program.called(x).rpartition(".")[2] for x in made if isinstance(x, cst.Call)]
        return next((_SCALERS[x] for x in names if x in _SCALERS), "")
    full = program.called(call)
    return _SCALERS.get(name, "") if full.startswith(("sklearn.", "keras.")) else ""


def _write(
    rewriting: Rewriting, found: Arrays, train_at: cst.CSTNode, wanted: str, *, columns: bool
) -> None:
    program = rewriting.program
    ready = {x: assignments(program, x, found.scope) for x in found.tests}
    again = [x for x in assignments(program, found.train, found.scope) if x is not train_at]
    after = [x for x in found.tests if ready[x] and _later(program, ready[x][-1], train_at)]
    beside = [x for x in found.tests if ready[x] and x not in after]
    first, formula = _formula(program, found.train, wanted, columns=columns)
    lines = [*first, _assigned([found.train, *beside], formula)]
    rewriting.after(train_at, "\n".join(lines))
    for name in after:
        rewriting.after(ready[name][-1], _assigned([name], formula))
    for node in again:
        if _later(program, node, train_at):
            rewriting.after(node, _assigned([found.train], formula))


def _ready(program: ProgramTree, found: Arrays) -> cst.CSTNode | None:
    """The last statement that makes the training inputs before they are used, or that computes
    something else, such as the targets, from unscaled inputs. None where something else needs
    scaled inputs before.
    """
    made = assignments(program, found.train, found.scope)
    uses = (x for x in (*fits(program), *steps(program)) if program.function(x) is found.scope)
    used = [program.line(x) for x in uses]
    before = [x for x in made if not used or program.line(x) < min(used)]
    at = (before or made)[-1]
    computed, others = _computed(program, found, at, min(used, default=math.inf))
    if not computed:
        return at
    last = computed[-1]
    misplaced = program.parents.get(last) is not program.parents.get(at)
    misplaced |= any(program.line(x) < program.line(last) for x in others)
    return None if misplaced else last


def _computed(
    program: ProgramTree, found: Arrays, at: cst.CSTNode, used: float
) -> tuple[list[cst.CSTNode], list[cst.CSTNode]]:
    """The statements between two places that compute something from the inputs, and those that use
    them otherwise, in the order of the text. What is done to the inputs themselves is neither.
    """
    inputs = {found.train, *found.tests}
    known, computed, others = set(inputs), list[cst.CSTNode](), list[cst.CSTNode]()
    for node in program.of(cst.Assign):
        statement = program.statement(node)
        between = program.line(at) < program.line(statement) < used
        if program.function(node) is not found.scope or not between:
            continue
        names = {dotted(x.target) for x in node.targets}
        parts = (node.value, *program.inside(node.value))
        reads = {x.value for x in parts if isinstance(x, cst.Name)}
        predicts = any(isinstance(x, cst.Call) and is_model_call(program, x) for x in parts)
        if not reads & known or names & inputs or predicts:
            continue
        if any(map(_computes, parts)):
            computed.append(statement)
            known |= names
        elif reads & inputs:
            others.append(statement)
    return computed, others


def _computes(node: cst.CSTNode) -> bool:
    """An operation, or a call that brings an array to other values."""
    if isinstance(node, cst.Call):
        func = node.func
        name = func.attr if isinstance(func, cst.Attribute) else func
        return isinstance(name, cst.Name) and name.value in _REDUCING
    return isinstance(node, _COMPUTING)


def _later(program: ProgramTree, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    return program.line(one) > program.line(other)


def _assigned(names: list[str], formula: str) -> str:
    values = ", ".join(formula.format(x) for x in names)
    return f"{', '.join(names)} = {values}"


def _formula(
    program: ProgramTree, train: str, wanted: str, *, columns: bool
) -> tuple[list[str], str]:
    axis = "axis=0" if columns else ""
    stem = train.rpartition("_")[0] or train
    if wanted == "min-max":
        low, high = program.unused(f"{stem}_min"), program.unused(f"{stem}_max")
        first = f"{low}, {high} = {train}.min(), {train}.max()"
        return [first], f"({{}} - {low}) / ({high} - {low})"
    mean, std = program.unused(f"{stem}_mean"), program.unused(f"{stem}_std")
    first = f"{mean}, {std} = {train}.mean({axis}), {train}.std({axis})"
    constant = [f"{std} = {std} + ({std} == 0)  # constant columns"] if columns else []
    return [first, *constant], f"({{}} - {mean}) / {std}"
