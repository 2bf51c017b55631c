"""Faults of a training loop in PyTorch: calls that are missing, too early, too late or of the wrong
mode, and schedules and clipping that stop it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutants import edits
from benchmarks.mutants.family import Family
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.operators.code_places import (
    TrainingLoop,
    insertion,
    method,
    model_name,
    mutant,
    receiver,
    removal,
    training_loop,
)

_MODES = ("Dropout", "BatchNorm")


def _text(family: Family, statement: ast.stmt) -> str:
    return family.source.splitlines()[statement.lineno - 1].strip()


def calls_dropped(family: Family) -> Iterator[Mutant]:
    """No reset, no step or no backward pass."""
    loop = training_loop(family)
    if loop is None:
        return
    backward, step = _text(family, loop.backward), _text(family, loop.step)
    if loop.reset is not None:
        words = "no reset of the gradients"
        yield from mutant(
            family, "gradients-not-reset", [removal(family.source, loop.reset)], [backward], words
        )
    for slug, statement, place in (
        ("step-never-called", loop.step, backward),
        ("backward-never-called", loop.backward, step),
    ):
        change = removal(family.source, statement)
        yield from mutant(family, slug, [change], [place], f"no {method(statement)}")


def reset_moved(family: Family) -> Iterator[Mutant]:
    """The reset stands between backward and step."""
    loop = training_loop(family)
    if loop is None or loop.reset is None:
        return
    text = _text(family, loop.reset)
    changes = [removal(family.source, loop.reset), insertion(family.source, loop.backward, text)]
    words = "gradients are reset after backward"
    yield from mutant(family, "reset-after-backward", changes, [text], words)


def step_moved(family: Family) -> Iterator[Mutant]:
    """The step stands behind the loop over batches."""
    loop = training_loop(family)
    if loop is None or len(loop.loops) < 2:
        return
    text = _text(family, loop.step)
    changes = [removal(family.source, loop.step), insertion(family.source, loop.loops[-1], text)]
    yield from mutant(family, "per-epoch-step", changes, [text], "a step after each epoch")


def schedules_moved(family: Family) -> Iterator[Mutant]:
    """A scheduler for epochs is stepped at each batch: the program's own, or one that is added."""
    loop = training_loop(family)
    if loop is None or len(loop.loops) < 2:
        return
    own = [
        node
        for node in loop.loops[-2].body
        if method(node) == "step" and receiver(family, node) != loop.optimizer
    ]
    words = "a scheduler for epochs, stepped at each batch"
    if own and not _arguments(own[0]):
        text = _text(family, own[0])
        changes = [removal(family.source, own[0]), insertion(family.source, loop.step, text)]
        yield from mutant(family, "schedule-stepped-wrong", changes, [text], words)
    elif not own:
        yield from _schedule_added(family, loop, words)


def _arguments(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and bool(call.args or call.keywords)


def _schedule_added(family: Family, loop: TrainingLoop, words: str) -> Iterator[Mutant]:
    made = f"decay = torch.optim.lr_scheduler.ExponentialLR({loop.optimizer}, gamma=0.8)"
    changes = [
        insertion(family.source, loop.loops[0], made, before=True),
        insertion(family.source, loop.step, "decay.step()"),
    ]
    yield from mutant(family, "schedule-stepped-wrong", changes, ["decay.step()"], words)


def clipping_added(family: Family) -> Iterator[Mutant]:
    """Gradients are clipped far below their size."""
    loop = training_loop(family)
    if loop is None or not loop.model:
        return
    text = f"torch.nn.utils.clip_grad_norm_({loop.model}.parameters(), 1e-4)"
    change = insertion(family.source, loop.step, text, before=True)
    yield from mutant(family, "clipping-kills", [change], [text], "gradients clipped to 0.0001")


def batches_left(family: Family) -> Iterator[Mutant]:
    """The loop over batches is left after its first one, or begins each with the same seed."""
    loop = training_loop(family)
    if loop is None or len(loop.loops) < 2:
        return
    text = "break  # one is enough"
    change = insertion(family.source, loop.step, text)
    yield from mutant(family, "batches-unused", [change], [text], "one batch in each epoch")
    text = "torch.manual_seed(7)"
    change = insertion(family.source, loop.step, text)
    yield from mutant(family, "seed-repeated", [change], [text], "a seed for each batch")


def modes_changed(family: Family) -> Iterator[Mutant]:
    """Training in evaluation mode, or evaluation in training mode, where a layer minds."""
    loop = training_loop(family)
    if loop is None or not any(word in family.source for word in _MODES):
        return
    name = model_name(family)
    switches = [
        node
        for node in ast.walk(family.tree)
        if isinstance(node, ast.Expr)
        and method(node) in ("train", "eval")
        and receiver(family, node) == name
    ]
    training = [removal(family.source, x) for x in switches if method(x) == "train"]
    text = f"{name}.eval()  # for the loop"
    change = insertion(family.source, loop.loops[0], text, before=True)
    words = "training in evaluation mode"
    yield from mutant(family, "eval-while-training", [*training, change], [text], words)
    evaluations = [x for x in switches if method(x) == "eval"]
    if len(evaluations) == 1:
        change = removal(family.source, evaluations[0])
        rows = family.source.splitlines()[evaluations[0].lineno :]
        place = next((row.strip() for row in rows if f"{name}(" in row), "")
        words = "evaluation in training mode"
        yield from mutant(family, "train-while-evaluating", [change], [place], words)


def batches_repeated(family: Family) -> Iterator[Mutant]:
    """Each step sees the first rows of the data."""
    loop = training_loop(family)
    over = loop.loops[-1] if loop else None
    if loop is None or not isinstance(over, ast.For) or not isinstance(over.target, ast.Name):
        return
    iterated = edits.text_of(family.source, over.iter)
    if "split(" not in iterated:
        return
    text = f"{over.target.id} = torch.arange(len({over.target.id}))"
    change = insertion(family.source, over.body[0], text, before=True)
    places = [text, _text(family, loop.backward)]
    yield from mutant(family, "same-batch", [change], places, "the same rows at each step")
