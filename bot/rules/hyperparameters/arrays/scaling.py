"""Inputs that are standardised, or brought between zero and one, where their arrays are ready."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.arrays.split import Arrays, arrays, assignments
from bot.rules.hyperparameters.place import HyperparameterPlace, place
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.training.fitting import fits
from bot.rules.hyperparameters.training.loops import steps

CHOICES = ("standardise", "min-max")
_SCALERS = {
    "StandardScaler": "standardise", "RobustScaler": "standardise", "scale": "standardise",
    "Normalization": "standardise", "MinMaxScaler": "min-max", "MaxAbsScaler": "min-max",
}  # fmt: skip
_DEEPEST = 4


def scaling(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """How the inputs are scaled; ids of an embedding are not."""
    found = arrays(program, trace)
    if found is None or (trace and any(x.ids for x in trace.data)):
        return
    at = _ready(program, found)
    columns = _columns(trace)
    value = _scaled(program, found.train, 0) or "none"

    def write(rewriting: Rewriting, wanted: str) -> None:
        if wanted not in CHOICES:
            raise NotApplicable(f"There is no scaling named {wanted!r}.")
        _write(rewriting, found, wanted, columns=columns)

    yield place("preprocessing", value, program.line(at), write, choices=CHOICES)


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


def _write(rewriting: Rewriting, found: Arrays, wanted: str, *, columns: bool) -> None:
    program = rewriting.program
    ready = {x: assignments(program, x, found.scope) for x in found.tests}
    train_at = _ready(program, found)
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


def _ready(program: ProgramTree, found: Arrays) -> cst.CSTNode:
    """The last statement that makes the training inputs before they are used."""
    made = assignments(program, found.train, found.scope)
    uses = (x for x in (*fits(program), *steps(program)) if program.function(x) is found.scope)
    used = [program.line(x) for x in uses]
    before = [x for x in made if not used or program.line(x) < min(used)]
    return (before or made)[-1]


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
