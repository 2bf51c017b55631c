"""The arrays of a program: inputs and labels, for training and for testing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.text.arguments import argument, positional
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.spelling import dotted
from bot.rules.hyperparameters.training.fitting import fits

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
    for found in (*_split(program), *_fitted(program, trace), *_fed(program)):
        if assignments(program, found.train, found.scope):
            return found
    return None


def assignments(
    program: ProgramTree, name: str, scope: cst.FunctionDef | None
) -> list[cst.CSTNode]:
    """The statements of a scope that give a name its value, in the order of the text."""
    found: list[cst.CSTNode] = []
    for node in program.nodes:
        targets = [x.target for x in node.targets] if isinstance(node, cst.Assign) else []
        if isinstance(node, cst.AugAssign):
            targets = [node.target]
        names = {each for x in targets for each in _names(x)}
        if name in names and program.function(node) is scope:
            found.append(program.statement(node))
    return found


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


def _fitted(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[Arrays]:
    for call in fits(program, trace):
        train = base(argument(call, "x", 0) or argument(call, "X"))
        labels = base(argument(call, "y", 1))
        tests = [_validation(call)]
        for method in ("evaluate", "predict"):
            tests += [base(argument(x, "x", 0)) for x in program.method(method)]
        found = tuple(dict.fromkeys(x for x in tests if x and x != train))
        if train:
            yield Arrays(train, found, (labels,) if labels else (), program.function(call))
            yield Arrays(train, found, (labels,) if labels else ())


def _validation(call: cst.Call) -> str:
    given = argument(call, "validation_data")
    return base(given.elements[0].value) if isinstance(given, cst.Tuple) else ""


def _fed(program: ProgramTree) -> Iterator[Arrays]:
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
    made = program.values.get(dotted(call.func), [])
    classes = {x.name.value for x in program.of(cst.ClassDef)}
    return bool(call.args) and any(
        isinstance(x, cst.Call)
        and (program.called(x).startswith("torch.nn.") or dotted(x.func) in classes)
        for x in made
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
