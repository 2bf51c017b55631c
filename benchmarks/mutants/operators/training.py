"""Learning rate, epochs, batch size and optimiser (HLR, HNE, HBS, OCH)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutants import edits
from benchmarks.mutants.family import Family, Mark
from benchmarks.mutants.mutant import Mutant, edited

_RATE_NAMES = ("lr", "learning_rate", "default")
_EPOCH_NAMES = ("epochs", "default")
_BATCH_NAMES = ("batch_size", "default")
_RATE_UP = (1000.0, 300.0, 100.0)
_RATE_DOWN = (1 / 300, 1 / 1000, 1 / 10000)
_BATCHES = (256, 512, 1024)
_OPTIMIZERS = {"SGD", "RMSprop", "Adam", "AdamW", "Nadam", "NAdam", "Adamax", "Adagrad", "Adadelta"}
_WEAKER = ("SGD", "Adagrad", "Adadelta")
_OWN = ("momentum", "nesterov", "betas", "beta_1", "beta_2", "amsgrad")


def rates_changed(family: Family) -> Iterator[Mutant]:
    """A learning rate 100 to 1,000 times as high, or 300 to 10,000 times as low."""
    for group, factors in (("up", _RATE_UP), ("down", _RATE_DOWN)):
        for factor in factors:
            yield from _scaled(family, "rate", _RATE_NAMES, factor, "HLR", group)


def epochs_changed(family: Family) -> Iterator[Mutant]:
    """One epoch, or a tenth or a fifth of them."""
    for factor in (1e-9, 0.1, 0.2):
        yield from _scaled(family, "epochs", _EPOCH_NAMES, factor, "HNE", "down")


def batches_changed(family: Family) -> Iterator[Mutant]:
    """A batch size of 256, 512 or 1,024 where it was at most half of that."""
    for mark in family.marked("batch"):
        given = edits.number(family.tree, mark.line, *_BATCH_NAMES)
        for size in _BATCHES:
            if given and given.value <= size // 2:
                change = edits.replace(family.source, given.node, str(size))
                words = f"batch size {given.value} to {size}"
                yield edited(family, "HBS", [change], words, group="up")


def optimizers_changed(family: Family) -> Iterator[Mutant]:
    """Plain SGD, Adagrad or Adadelta at the same rate; a name takes the framework's default."""
    for mark in family.marked("optimizer"):
        for weaker in _WEAKER:
            changes = _optimizer(family, mark, weaker)
            if changes:
                yield edited(family, "OCH", changes, f"optimiser to {weaker}", group=weaker)


def neighbours(mutant: Family, code: str) -> Iterator[Mutant]:
    """A faulty program with one other hyperparameter changed, which may mend it as well: the first
    step of a neutrality search. The family here is the mutant's program with its marks.
    """
    if code in ("HNE", "HBS", "OCH"):
        for factor in (10.0, 100.0):
            yield from _scaled(mutant, "rate", _RATE_NAMES, factor, "HLR", "up")
    if code == "HBS":
        yield from _scaled(mutant, "epochs", _EPOCH_NAMES, 5.0, "HNE", "up")


def _scaled(
    family: Family, word: str, names: tuple[str, ...], factor: float, code: str, group: str
) -> Iterator[Mutant]:
    for mark in family.marked(word):
        given = edits.number(family.tree, mark.line, *names)
        new = _times(given.value, factor) if given else ""
        if given and new != str(given.value):
            change = edits.replace(family.source, given.node, new)
            yield edited(family, code, [change], f"{word} {given.value} to {new}", group=group)


def _times(value: float, factor: float) -> str:
    if isinstance(value, int) and value > 1:
        return str(max(1, round(value * factor)))
    rounded = float(f"{value * factor:.1g}")
    return str(rounded) if rounded >= 1 else f"{rounded:g}"


def _optimizer(family: Family, mark: Mark, new: str) -> list[edits.Edit]:
    for call in edits.calls(family.tree, mark.line, _OPTIMIZERS.__contains__):
        own = [given for given in call.keywords if given.arg in _OWN]
        if edits.name_of(call) == new:
            return [edits.without_keyword(family.source, given) for given in own[:1]]
        changes = edits.rename(family.source, family.tree, call, new)
        return changes + [edits.without_keyword(family.source, given) for given in own]
    for text in edits.on_line(family.tree, mark.line, ast.Constant):
        known = {name.lower() for name in _OPTIMIZERS} - {new.lower()}
        if isinstance(text.value, str) and text.value.lower() in known:
            return [edits.replace(family.source, text, f'"{new.lower()}"')]
    return []
