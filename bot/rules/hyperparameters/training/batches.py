"""The batch size where the program makes batches itself: loaders, slices, splits, generators."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.place import HyperparameterPlace, Write, place
from bot.rules.hyperparameters.text.arguments import keywords, positional
from bot.rules.hyperparameters.text.loops import function_named, iterated, loops_around
from bot.rules.hyperparameters.text.numbers import canonical, number
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import dotted, spelled
from bot.rules.hyperparameters.text.uses import number_used, resolved, supplied, write_argument
from bot.rules.hyperparameters.training.fitting import MOST_ROWS, whole
from bot.rules.hyperparameters.training.loops import steps

_LOADERS = ("DataLoader", "FastTensorDataLoader")


def batches(program: ProgramTree, _trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """Rows of a batch, once for each number that decides them."""
    seen: set[cst.CSTNode] = set()
    for found, node in _found(program):
        if node not in seen:
            seen.add(node)
            yield found


def _found(program: ProgramTree) -> Iterator[tuple[HyperparameterPlace, cst.CSTNode]]:
    around = [loop for step in steps(program) for loop in loops_around(program, step)]
    looped = [x for loop in around if isinstance(loop, cst.For) for x in _of_loop(program, loop)]
    yield from looped
    if not looped:  # a loader that is handed from function to function
        loaders = [x for x in program.calls if _is_loader(program, x)]
        shuffling = [x for x in loaders if _shuffles(x)]
        yield from (_loader(program, x) for x in shuffling or loaders[:1])
    for call in program.method("batch"):
        yield from _counted(program, positional(call)[:1], call)


def _of_loop(
    program: ProgramTree, loop: cst.For
) -> Iterator[tuple[HyperparameterPlace, cst.CSTNode]]:
    over = iterated(loop)
    value = resolved(program, over)
    if not isinstance(value, cst.Call):
        return
    if _is_loader(program, value):
        yield _loader(program, value)
        return
    name = dotted(value.func).rpartition(".")[2]
    if isinstance(value.func, cst.Attribute) and value.func.attr.value in ("split", "array_split"):
        if value.func.attr.value == "split":
            yield from _counted(program, positional(value)[-1:], loop)
    elif name == "range":
        yield from _counted(program, positional(value)[2:], loop)
    else:
        generator = function_named(program, name)
        inner = program.within(generator, cst.For) if generator else []
        for each in inner:
            call = iterated(each)
            if isinstance(call, cst.Call) and dotted(call.func) == "range":
                yield from _counted(program, positional(call)[2:], each)


def _is_loader(program: ProgramTree, call: cst.Call) -> bool:
    return program.called(call).rpartition(".")[2] in _LOADERS


def _shuffles(call: cst.Call) -> bool:
    given = keywords(call).get("shuffle")
    return given is not None and not (isinstance(given, cst.Name) and given.value == "False")


def _loader(program: ProgramTree, call: cst.Call) -> tuple[HyperparameterPlace, cst.CSTNode]:
    given = supplied(program, call, "batch_size", 1)
    known = number_used(program, given)
    value = canonical(known) if known is not None else "default"
    node = given or call
    line = program.line(node)

    def write(rewriting: Rewriting, text: str) -> None:
        write_argument(rewriting, call, "batch_size", whole(text), 1)

    return place("batch_size", value, line, write, bounds=(1, MOST_ROWS)), node


def _counted(
    program: ProgramTree, given: list[cst.BaseExpression], outer: cst.CSTNode
) -> Iterator[tuple[HyperparameterPlace, cst.CSTNode]]:
    """A number that stands by itself; where it is written again in the loop, it is changed too."""
    for node in given[:1]:
        known = number_used(program, node)
        if known is None or known < 1:
            continue
        again = _again(program, outer, node, known) if isinstance(outer, cst.For) else ()
        found = place(
            "batch_size", canonical(known), program.line(node), _all([node, *again]),
            bounds=(1, MOST_ROWS),
        )  # fmt: skip
        yield found, node


def _again(
    program: ProgramTree, loop: cst.For, node: cst.BaseExpression, value: float
) -> Iterator[cst.CSTNode]:
    """The same number, or the same lookup of it, in the slices and ranges of a loop's body."""
    for part in program.inside(loop.body):
        if isinstance(part, cst.Integer):
            same = number(node) is not None and number(part) == value
        else:
            same = bool(spelled(node)) and spelled(part) == spelled(node)
        if same and isinstance(program.around(part, cst.Slice, cst.Call), cst.Slice):
            program.observe(part)
            yield part


def _all(places: list[cst.CSTNode]) -> Write:
    def write(rewriting: Rewriting, text: str) -> None:
        count = whole(text)
        for node in places:
            rewriting.replace(node, count)

    return write
