"""Epochs and batch size where Keras is asked to train: `fit`, and what is passed on to it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from bot.models.repair import HyperparameterKind
from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.place import HyperparameterPlace, Write, place
from bot.rules.hyperparameters.text.arguments import (
    argument,
    keywords,
    positional,
    starred,
    with_argument,
)
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.numbers import canonical, parsed
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Change, Rewriting
from bot.rules.hyperparameters.text.uses import number_used, supplied, write_argument

MOST_EPOCHS, MOST_ROWS = 5000, 4096
_OTHERS = ("sklearn.", "scipy.", "xgboost.", "lightgbm.", "torch.")
_OLD = "nb_epoch"
_POSITIONS: dict[HyperparameterKind, int] = {"epochs": 3, "batch_size": 2}


def fitting(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """The two numbers of every `fit` of a Keras model, each once."""
    seen: set[cst.CSTNode] = set()
    for call in fits(program, trace):
        for name, position in _POSITIONS.items():
            at = _taken(program, call, name)
            seen_value = _seen(trace, name)
            found = _place(program, at, name, position if at is call else -1, seen_value)
            if found and found[0] not in seen:
                seen.add(found[0])
                yield found[1]


def _seen(trace: TrainingTrace | None, name: HyperparameterKind) -> str:
    """What a trace says of a number that the program computes, "" for nothing."""
    plans = trace.plans if trace else ()
    found = (x.epochs if name == "epochs" else x.batch_size for x in plans)
    return next((str(x) for x in found if x), "")


def fits(program: ProgramTree, trace: TrainingTrace | None = None) -> list[cst.Call]:
    """The calls of `fit` that train a network, those of a trace where it knows their lines."""
    if "keras" not in {x.partition(".")[0] for x in _packages(program)}:
        return []
    found = [x for x in program.method("fit") if _trains(program, x)]
    lines = {plan.line for plan in trace.plans} if trace else set()
    return [x for x in found if program.traced(program.line(x)) in lines] or found


def _packages(program: ProgramTree) -> Iterator[str]:
    known = program.imports
    yield from (known.full(x) for x in known.names)
    yield from known.stars


def _trains(program: ProgramTree, call: cst.Call) -> bool:
    """Whether it is no `fit` of a scaler or of another library's estimator."""
    if set(keywords(call)) & {"epochs", "batch_size", _OLD, "validation_split", "verbose"}:
        return True
    if not isinstance(call.func, cst.Attribute) or not (call.args):
        return False
    owner = call.func.value
    values = [owner] if isinstance(owner, cst.Call) else program.values.get(program.text(owner), [])
    names = [program.called(x) for x in values if isinstance(x, cst.Call)]
    made = any(x.startswith(_OTHERS) for x in names)
    return not made and (len(positional(call)) > 1 or starred(call) or "x" in keywords(call))


def _taken(program: ProgramTree, call: cst.Call, name: str) -> cst.Call:
    """The call that gives the number: where `fit` gets keywords that are collected elsewhere, the
    one call that has it, perhaps by its old name.
    """
    if not starred(call) or argument(call, name):
        return call
    names = {name, _OLD} if name == "epochs" else {name}
    given = [x for x in program.calls if names & set(keywords(x)) and x is not call]
    return given[0] if len(given) == 1 else call


def _place(
    program: ProgramTree, call: cst.Call, kind: HyperparameterKind, position: int, planned: str
) -> tuple[cst.CSTNode, HyperparameterPlace] | None:
    given = supplied(program, call, kind, position)
    known = number_used(program, given)
    old = kind == "epochs" and given is None and _OLD in keywords(call)
    value = planned if given else "default"
    if known is not None:
        value = canonical(known)
    if not value:
        return None
    most = MOST_EPOCHS if kind == "epochs" else MOST_ROWS
    found = place(
        kind, value, program.line(given or call),
        _writer(call, kind, position, old=old), bounds=(1, most),
    )  # fmt: skip
    return given or (call.args[0] if kind == "epochs" else call), found


def _writer(call: cst.Call, name: str, position: int, *, old: bool) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        text = whole(value)
        if old:
            rewriting.change(call, _renamed(name, text))
        else:
            write_argument(rewriting, call, name, text, position)

    return write


def whole(value: str) -> str:
    """A count of at least one as it is written. Raises NotApplicable."""
    number = parsed(value)
    if number is None or number < 1:
        raise NotApplicable(f"{value!r} is not a whole number.")
    return str(int(number))


def _renamed(name: str, text: str) -> Change:
    def change(call: cst.Call) -> cst.Call:
        args = [
            x.with_changes(keyword=cst.Name(name)) if x.keyword and x.keyword.value == _OLD else x
            for x in call.args
        ]
        return with_argument(name, text)(call.with_changes(args=args))

    return change
