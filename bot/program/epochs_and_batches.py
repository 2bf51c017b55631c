"""Epochs and batch size: `fit`, loops of the program's own, loaders, slices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from bot.kernel.training_types import HyperparameterKind, TrainingTrace
from bot.program.parsed import ProgramTree, function_named, iterated, loops_around
from bot.program.rewriting import Change, HyperparameterPlace, Rewriting, Write, make_place
from bot.program.text import (
    argument,
    canonical_number,
    dotted,
    has_stars,
    keywords,
    positional,
    read_number,
    spell,
    with_argument,
)
from bot.program.uses import number_used, resolved, supplied, write_argument

# Epochs and batch size where Keras is asked to train: `fit`, and what is passed on to it.

MOST_EPOCHS, MOST_ROWS = 5000, 4096
_OTHERS = ("sklearn.", "scipy.", "xgboost.", "lightgbm.", "torch.")
_OLD = "nb_epoch"
_POSITIONS: dict[HyperparameterKind, int] = {"epochs": 3, "batch_size": 2}


def fitting(program: ProgramTree, trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """The two numbers of every `fit` of a Keras model, each once."""
    visited: set[cst.CSTNode] = set()
    for call in fits(program, trace):
        for name, position in _POSITIONS.items():
            at = _call_with_argument(program, call, name)
            seen_value = _recorded_value(trace, name)
            node_and_place = _fit_place(
                program, at, name, position if at is call else -1, seen_value
            )
            if node_and_place and node_and_place[0] not in visited:
                visited.add(node_and_place[0])
                yield node_and_place[1]


def _recorded_value(trace: TrainingTrace | None, name: HyperparameterKind) -> str:
    """What a trace says of a number that the program computes, "" for nothing."""
    plans = trace.plans if trace else ()
    values = (x.epochs if name == "epochs" else x.batch_size for x in plans)
    return next((str(x) for x in values if x), "")


def fits(program: ProgramTree, trace: TrainingTrace | None = None) -> list[cst.Call]:
    """The calls of `fit` that train a network, those of a trace where it knows their lines."""
    if "keras" not in {x.partition(".")[0] for x in _packages(program)}:
        return []
    calls = [x for x in program.method("fit") if _trains(program, x)]
    lines = {plan.line for plan in trace.plans} if trace else set()
    return [x for x in calls if program.traced(program.line(x)) in lines] or calls


def _packages(program: ProgramTree) -> Iterator[str]:
    imports = program.imports
    yield from (imports.full(x) for x in imports.names)
    yield from imports.stars


def _trains(program: ProgramTree, call: cst.Call) -> bool:
    """Whether it is no `fit` of a scaler or of another library's estimator."""
    if set(keywords(call)) & {"epochs", "batch_size", _OLD, "validation_split", "verbose"}:
        return True
    if not isinstance(call.func, cst.Attribute) or not (call.args):
        return False
    owner = call.func.value
    values = [owner] if isinstance(owner, cst.Call) else program.values.get(program.text(owner), [])
    names = [program.called(x) for x in values if isinstance(x, cst.Call)]
    is_other_library = any(x.startswith(_OTHERS) for x in names)
    return not is_other_library and (
        len(positional(call)) > 1 or has_stars(call) or "x" in keywords(call)
    )


def _call_with_argument(program: ProgramTree, call: cst.Call, name: str) -> cst.Call:
    """The call that gives the number: where `fit` gets keywords that are collected elsewhere, the
    one call that has it, perhaps by its old name.
    """
    if not has_stars(call) or argument(call, name):
        return call
    names = {name, _OLD} if name == "epochs" else {name}
    calls = [x for x in program.calls if names & set(keywords(x)) and x is not call]
    return calls[0] if len(calls) == 1 else call


def _fit_place(
    program: ProgramTree,
    call: cst.Call,
    kind: HyperparameterKind,
    position: int,
    recorded_value: str,
) -> tuple[cst.CSTNode, HyperparameterPlace] | None:
    value_node = supplied(program, call, kind, position)
    number_origin = number_used(program, value_node)
    old = kind == "epochs" and value_node is None and _OLD in keywords(call)
    value = recorded_value if value_node else "default"
    if number_origin is not None:
        value = canonical_number(number_origin)
    if not value:
        return None
    most = MOST_EPOCHS if kind == "epochs" else MOST_ROWS
    hyperparameter_place = make_place(
        kind, value, program.line(value_node or call),
        _writer(call, kind, position, old=old), bounds=(1, most),
    )  # fmt: skip
    return value_node or (call.args[0] if kind == "epochs" else call), hyperparameter_place


def _writer(call: cst.Call, name: str, position: int, *, old: bool) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        text = whole(value)
        if old:
            rewriting.change(call, _rename(name, text))
        else:
            write_argument(rewriting, call, name, text, position)

    return write


def whole(value: str) -> str:
    """A count as it is written."""
    return str(int(float(value)))


def _rename(name: str, text: str) -> Change:
    def change(call: cst.Call) -> cst.Call:
        args = [
            x.with_changes(keyword=cst.Name(name)) if x.keyword and x.keyword.value == _OLD else x
            for x in call.args
        ]
        return with_argument(name, text)(call.with_changes(args=args))

    return change


# Epochs where the program loops itself, as with PyTorch.

_MOST = 50
_STEPS = ("backward", "apply_gradients", "train_on_batch", "train_step")


class _Rounds(NamedTuple):
    """Where the end of a count stands, what it is, and what the count begins with."""

    node: cst.BaseExpression
    end: float
    first: int


def epochs(program: ProgramTree, _trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """How often the loop over the data runs."""
    visited: set[cst.CSTNode] = set()
    for loop in training_loops(program):
        origin_and_place = _rounds(program, loop)
        if origin_and_place and origin_and_place.node not in visited:
            visited.add(origin_and_place.node)
            yield _loop_place(program, origin_and_place)


def steps(program: ProgramTree) -> list[cst.Call]:
    """The calls that make a training step, at least where a gradient is computed."""
    return [x for name in _STEPS for x in program.method(name)][:_MOST]


def training_loops(program: ProgramTree) -> list[cst.For | cst.While]:
    """For each training step the loop over epochs: the one that is named so, else the outermost."""
    loops: list[cst.For | cst.While] = []
    for step in steps(program):
        around = list(loops_around(program, step))
        epoch_loops = [x for x in around if "epoch" in _heading(program, x).lower()]
        ranged = [x for x in around if _rounds(program, x)]
        loops += [*epoch_loops[:1], *ranged[-1:]][:1]
    return list(dict.fromkeys(loops))


def _heading(program: ProgramTree, loop: cst.For | cst.While) -> str:
    if isinstance(loop, cst.While):
        return program.text(loop.test)
    return f"{program.text(loop.target)} {program.text(loop.iter)}"


def _rounds(program: ProgramTree, loop: cst.For | cst.While) -> _Rounds | None:
    """Where the end of the count stands, and what it begins with."""
    if isinstance(loop, cst.While):
        return _compare(program, loop.test)
    call = iterated(loop)
    if not isinstance(call, cst.Call) or dotted(call.func).rpartition(".")[2] not in (
        "range",
        "trange",
    ):
        return None
    arguments = positional(call)
    if not arguments or len(arguments) > 2:
        return None
    first = read_number(arguments[0]) if len(arguments) == 2 else 0
    if first is None:
        return None
    return _place_of_end(program, arguments[-1], int(first))


def _compare(program: ProgramTree, test: cst.BaseExpression) -> _Rounds | None:
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        part = test.comparisons[0]
        if isinstance(part.operator, cst.LessThan | cst.LessThanEqual):
            return _place_of_end(program, part.comparator, 0)
    return None


def _place_of_end(program: ProgramTree, end: cst.BaseExpression, first: int) -> _Rounds | None:
    added = isinstance(end, cst.BinaryOperation) and isinstance(end.operator, cst.Add)
    more = read_number(end.right) if isinstance(end, cst.BinaryOperation) and added else None
    if isinstance(end, cst.BinaryOperation) and more is not None and read_number(end) is None:
        end_number = number_used(program, end.left)
        if end_number is not None:
            return _Rounds(end.left, end_number, first - int(more))
    end_number = number_used(program, end)
    return _Rounds(end, end_number, first) if end_number is not None else None


def _loop_place(program: ProgramTree, end_origin: _Rounds) -> HyperparameterPlace:
    def write(rewriting: Rewriting, value: str) -> None:
        rewriting.replace(end_origin.node, str(int(whole(value)) + end_origin.first))

    count = int(end_origin.end) - end_origin.first
    return make_place(
        "epochs", canonical_number(count), program.line(end_origin.node), write,
        bounds=(1, MOST_EPOCHS),
    )  # fmt: skip


# The batch size where the program makes batches itself: loaders, slices, splits, generators.

_LOADERS = ("DataLoader", "FastTensorDataLoader")


def batches(program: ProgramTree, _trace: TrainingTrace | None) -> Iterator[HyperparameterPlace]:
    """Rows of a batch, once for each number that decides them."""
    visited: set[cst.CSTNode] = set()
    for size_place, node in _places_and_nodes(program):
        if node not in visited:
            visited.add(node)
            yield size_place


def _places_and_nodes(program: ProgramTree) -> Iterator[tuple[HyperparameterPlace, cst.CSTNode]]:
    around = [loop for step in steps(program) for loop in loops_around(program, step)]
    looped = [x for loop in around if isinstance(loop, cst.For) for x in _of_loop(program, loop)]
    yield from looped
    if not looped:  # a loader that is handed from function to function
        loaders = [x for x in program.calls if _is_loader(program, x)]
        shuffling = [x for x in loaders if _shuffles(x)]
        yield from (_loader(program, x) for x in shuffling or loaders[:1])
    for call in program.method("batch"):
        yield from _places_of_size(program, positional(call)[:1], call)


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
            yield from _places_of_size(program, positional(value)[-1:], loop)
    elif name == "range":
        yield from _places_of_size(program, positional(value)[2:], loop)
    else:
        generator = function_named(program, name)
        inner = program.within(generator, cst.For) if generator else []
        for inner_loop in inner:
            call = iterated(inner_loop)
            if isinstance(call, cst.Call) and dotted(call.func) == "range":
                yield from _places_of_size(program, positional(call)[2:], inner_loop)


def _is_loader(program: ProgramTree, call: cst.Call) -> bool:
    return program.called(call).rpartition(".")[2] in _LOADERS


def _shuffles(call: cst.Call) -> bool:
    value = keywords(call).get("shuffle")
    return value is not None and not (isinstance(value, cst.Name) and value.value == "False")


def _loader(program: ProgramTree, call: cst.Call) -> tuple[HyperparameterPlace, cst.CSTNode]:
    value_node = supplied(program, call, "batch_size", 1)
    size = number_used(program, value_node)
    value = canonical_number(size) if size is not None else "default"
    node = value_node or call
    line = program.line(node)

    def write(rewriting: Rewriting, text: str) -> None:
        write_argument(rewriting, call, "batch_size", whole(text), 1)

    return make_place("batch_size", value, line, write, bounds=(1, MOST_ROWS)), node


def _places_of_size(
    program: ProgramTree, arguments: list[cst.BaseExpression], outer: cst.CSTNode
) -> Iterator[tuple[HyperparameterPlace, cst.CSTNode]]:
    """A number that stands by itself; where it is written again in the loop, it is changed too."""
    for node in arguments[:1]:
        size = number_used(program, node)
        if size is None or size < 1:
            continue
        again = _again(program, outer, node, size) if isinstance(outer, cst.For) else ()
        place_of_size = make_place(
            "batch_size", canonical_number(size), program.line(node), _all([node, *again]),
            bounds=(1, MOST_ROWS),
        )  # fmt: skip
        yield place_of_size, node


def _again(
    program: ProgramTree, loop: cst.For, node: cst.BaseExpression, value: float
) -> Iterator[cst.CSTNode]:
    """The same number, or the same lookup of it, in the slices and ranges of a loop's body."""
    for part in program.inside(loop.body):
        if isinstance(part, cst.Integer):
            same = read_number(node) is not None and read_number(part) == value
        else:
            same = bool(spell(node)) and spell(part) == spell(node)
        if same and isinstance(program.around(part, cst.Slice, cst.Call), cst.Slice):
            program.observe(part)
            yield part


def _all(places: list[cst.CSTNode]) -> Write:
    def write(rewriting: Rewriting, text: str) -> None:
        count = whole(text)
        for node in places:
            rewriting.replace(node, count)

    return write
