"""The hyperparameters of a training program in PyTorch or Keras 3: where they stand in its text,
and how other values are written for them.

Every kind has places (`place.py`): a hyperparameter and the way to write it. A patch collects what
its edits change (`text/rewriting.py`) and makes it at once, so that formatting and comments stay.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import libcst as cst

from bot.kernel.source import syntax
from bot.kernel.training_types import Edit, Hyperparameter, TrainingTrace
from bot.program import literals
from bot.program.arrays import one_sided, scaling
from bot.program.code_edits import code_places
from bot.program.epochs_and_batches import batches, epochs, fitting
from bot.program.keras_layers import keras_activations, keras_settings
from bot.program.line_edits import EditRefused, apply_edit
from bot.program.literals import Observation
from bot.program.losses import keras_losses, torch_losses
from bot.program.modules import ProgramFile, own_modules
from bot.program.optimizers import OptimizerPlace, optimizing, torch_clipping
from bot.program.parsed import ProgramTree, parse_program
from bot.program.rewriting import HyperparameterPlace, Rewriting, UseChange, number_places
from bot.program.structure import structure
from bot.program.text import NotApplicable, parse_number, same
from bot.program.torch_activations import torch_activations, torch_initializers
from bot.program.torch_layers import torch_settings

__all__ = [
    "NotApplicable", "Observation", "PatchedText", "ProgramFile", "find", "patch_program",
    "program_files", "watched", "writable",
]  # fmt: skip

Finder = Callable[[ProgramTree, TrainingTrace | None], Iterator[HyperparameterPlace]]

_FINDERS: tuple[Finder, ...] = (
    optimizing, fitting, epochs, batches, keras_losses, torch_losses, keras_activations,
    torch_activations, keras_settings, torch_settings, torch_initializers, torch_clipping,
    structure, scaling, one_sided, code_places,
)  # fmt: skip


_REMOVABLE = ("momentum", "weight_decay", "clipping")
"""Numbers that a program need not give."""


class PatchedText(NamedTuple):
    """A program with other values, the modules that changed, by name, and what is put in the place
    of uses that a run can watch, by their keys.
    """

    source: str
    files: dict[str, str]
    replaced: dict[str, UseChange]


def program_files(files: Mapping[str, bytes], entry: str) -> tuple[ProgramFile, ...]:
    """The program's own modules, whose hyperparameters are its too."""
    return own_modules(files, entry)


def find(
    source: str,
    trace: TrainingTrace | None = None,
    files: tuple[ProgramFile, ...] = (),
    observed: Observation = MappingProxyType({}),
) -> tuple[Hyperparameter, ...]:
    """The hyperparameters of a program, none of text that cannot be parsed. A trace tells which
    layer of the model a line of the text makes, and what the loss is fed; `files` are its modules,
    `observed` what a run told of the values that the text does not show.
    """
    program = _program(source, files, observed)
    hyperparameters = [x.hyperparameter for x in _places(program, trace)] if program else []
    return tuple(_with_location(hyperparameter, program) for hyperparameter in hyperparameters)


def _program(
    source: str, files: tuple[ProgramFile, ...], observed: Observation
) -> ProgramTree | None:
    program = parse_program(source, files)
    return replace(program, observed=observed, uses=set(), stand_ins={}) if program else None


def _with_location(hyperparameter: Hyperparameter, program: ProgramTree | None) -> Hyperparameter:
    """A hyperparameter with its line in its own file."""
    if program is None:
        return hyperparameter
    file, line = program.joined.located(hyperparameter.line)
    return hyperparameter.model_copy(update={"file": file, "line": line})


def patch_program(
    source: str,
    edits: Iterable[Edit],
    trace: TrainingTrace | None = None,
    files: tuple[ProgramFile, ...] = (),
    observed: Observation = MappingProxyType({}),
    moved: Container[str] = (),
) -> PatchedText:
    """The program with other values where they are used, found as `find` does; the uses that are
    `moved` stay, and whole lines are replaced last. Raises NotApplicable for an edit that cannot be
    written, and where nothing would change.
    """
    edits = tuple(edits)
    lines = [edit for edit in edits if edit.kind == "lines"]
    before = {"": source, **{file.name: file.text for file in files}}
    texts, replaced = dict(before), dict[str, UseChange]()
    if len(lines) < len(edits) or not lines:
        program = _program(source, files, observed)
        if program is None:
            raise NotApplicable("The program cannot be parsed.")
        values = [edit for edit in edits if edit.kind != "lines"]
        rewriting = _rewriting(program, values, trace, moved)
        texts |= program.joined.parted(rewriting.text())
        replaced = rewriting.replaced
    for edit in lines:
        texts[edit.file] = _with_lines(texts, edit)
    changed_files = {name: texts[name] for name in texts if name and texts[name] != before[name]}
    is_same = texts[""] == source and not changed_files and not moved
    if is_same or not all(_parses(texts[name]) for name in ("", *changed_files)):
        raise NotApplicable("The patch does not change the program.")
    return PatchedText(texts[""], changed_files, replaced)


def _with_lines(texts: Mapping[str, str], edit: Edit) -> str:
    try:
        return apply_edit(texts[edit.file], edit)
    except (EditRefused, KeyError) as error:
        raise NotApplicable(f"The lines cannot be replaced: {error}.") from error


def _rewriting(
    program: ProgramTree, edits: Iterable[Edit], trace: TrainingTrace | None, moved: Container[str]
) -> Rewriting:
    choices = _choose_places(_places(program, trace), edits)
    values = {(x.group, x.hyperparameter.kind): value for x, value in choices}
    widths = {
        place.hyperparameter.layer: value
        for place, value in choices
        if place.hyperparameter.kind == "units" and place.hyperparameter.layer is not None
    }
    rewriting = Rewriting(program, values, widths, moved)
    for place, value in choices:
        line = place.group.line if isinstance(place.group, OptimizerPlace) else 0
        rewriting.file = program.joined.located(line or place.hyperparameter.line)[0]
        place.write(rewriting, value)
    return rewriting


def watched(
    source: str, trace: TrainingTrace | None = None, files: tuple[ProgramFile, ...] = ()
) -> dict[str, str]:
    """The files of the program that tell, when it runs, what the hyperparameters are that its text
    does not show: the program itself under "", the modules by their names. Empty where its text
    shows all.
    """
    program = _program(source, files, MappingProxyType({}))
    if program is None:
        return {}
    for _ in _places(program, trace):
        pass
    rewriting = Rewriting(program, {})
    for node in program.uses:
        if program.around(node, cst.FormattedStringExpression) is None:  # its quotes would end
            rewriting.change(node, literals.watcher(program.key(node)))
    return program.joined.parted(rewriting.text()) if program.uses else {}


def writable(hyperparameter: Hyperparameter, value: str) -> bool:
    """Whether a hyperparameter can have a value."""
    if hyperparameter.choices:
        return value in hyperparameter.choices
    number, low, high = parse_number(value), hyperparameter.low, hyperparameter.high
    if number is None:
        return False
    return (low is None or number >= low) and (high is None or number <= high)


def _parses(text: str) -> bool:
    try:
        syntax.parse(text)  # not kept: no patch comes again
    except SyntaxError:
        return False
    return True


def _places(program: ProgramTree, trace: TrainingTrace | None) -> tuple[HyperparameterPlace, ...]:
    return number_places(x for finder in _FINDERS for x in finder(program, trace))


def _choose_places(
    places: Iterable[HyperparameterPlace], edits: Iterable[Edit]
) -> list[tuple[HyperparameterPlace, str]]:
    places_by_id = {x.hyperparameter.id: x for x in places}
    places_and_values: list[tuple[HyperparameterPlace, str]] = []
    for edit in edits:
        place = places_by_id.get(edit.parameter)
        if place is None:
            raise NotApplicable(f"The program has no hyperparameter {edit.parameter}.")
        if same(place.hyperparameter.value, edit.after):
            raise NotApplicable(f"{edit.parameter} is already {edit.after}.")
        is_removal = edit.after == "none" and edit.kind in _REMOVABLE
        if not (is_removal or writable(place.hyperparameter, edit.after)):
            raise NotApplicable(f"{edit.parameter} cannot be {edit.after}.")
        places_and_values.append((place, edit.after))
    return places_and_values
