"""Epochs where the program loops itself, as with PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.place import HyperparameterPlace, place
from bot.rules.hyperparameters.text.arguments import positional
from bot.rules.hyperparameters.text.loops import iterated, loops_around
from bot.rules.hyperparameters.text.numbers import canonical, number
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import dotted
from bot.rules.hyperparameters.text.uses import number_used
from bot.rules.hyperparameters.training.fitting import MOST_EPOCHS, whole

_MOST = 50
_STEPS = ("backward", "apply_gradients", "train_on_batch", "train_step")


class _Rounds(NamedTuple):
    """Where the end of a count stands, what it is, and what the count begins with."""

    node: cst.BaseExpression
    end: float
    first: int


def epochs(program: ProgramTree, _trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """How often the loop over the data runs."""
    seen: set[cst.CSTNode] = set()
    for loop in training_loops(program):
        found = _rounds(program, loop)
        if found and found.node not in seen:
            seen.add(found.node)
            yield _place(program, found)


def steps(program: ProgramTree) -> list[cst.Call]:
    """The calls that make a training step, at least where a gradient is computed."""
    return [x for name in _STEPS for x in program.method(name)][:_MOST]


def training_loops(program: ProgramTree) -> list[cst.For | cst.While]:
    """For each training step the loop over epochs: the one that is named so, else the outermost."""
    found: list[cst.For | cst.While] = []
    for step in steps(program):
        around = list(loops_around(program, step))
        named = [x for x in around if "epoch" in _heading(program, x).lower()]
        ranged = [x for x in around if _rounds(program, x)]
        found += [*named[:1], *ranged[-1:]][:1]
    return list(dict.fromkeys(found))


def _heading(program: ProgramTree, loop: cst.For | cst.While) -> str:
    if isinstance(loop, cst.While):
        return program.text(loop.test)
    return f"{program.text(loop.target)} {program.text(loop.iter)}"


def _rounds(program: ProgramTree, loop: cst.For | cst.While) -> _Rounds | None:
    """Where the end of the count stands, and what it begins with."""
    if isinstance(loop, cst.While):
        return _compared(program, loop.test)
    call = iterated(loop)
    if not isinstance(call, cst.Call) or dotted(call.func).rpartition(".")[2] not in (
        "range",
        "trange",
    ):
        return None
    given = positional(call)
    if not given or len(given) > 2:
        return None
    first = number(given[0]) if len(given) == 2 else 0
    if first is None:
        return None
    return _ended(program, given[-1], int(first))


def _compared(program: ProgramTree, test: cst.BaseExpression) -> _Rounds | None:
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        part = test.comparisons[0]
        if isinstance(part.operator, cst.LessThan | cst.LessThanEqual):
            return _ended(program, part.comparator, 0)
    return None


def _ended(program: ProgramTree, end: cst.BaseExpression, first: int) -> _Rounds | None:
    added = isinstance(end, cst.BinaryOperation) and isinstance(end.operator, cst.Add)
    more = number(end.right) if isinstance(end, cst.BinaryOperation) and added else None
    if isinstance(end, cst.BinaryOperation) and more is not None and number(end) is None:
        known = number_used(program, end.left)
        if known is not None:
            return _Rounds(end.left, known, first - int(more))
    known = number_used(program, end)
    return _Rounds(end, known, first) if known is not None else None


def _place(program: ProgramTree, found: _Rounds) -> HyperparameterPlace:
    def write(rewriting: Rewriting, value: str) -> None:
        rewriting.replace(found.node, str(int(whole(value)) + found.first))

    count = int(found.end) - found.first
    return place(
        "epochs", canonical(count), program.line(found.node), write, bounds=(1, MOST_EPOCHS),
    )  # fmt: skip
