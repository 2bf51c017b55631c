"""Patches as tests write them: the ids of hyperparameters and the values they get."""

from __future__ import annotations

import difflib

from bot.kernel.training_types import Edit, TrainingTrace
from bot.program.hyperparameters import find, patch_program


def edit(source: str, parameter: str, after: str, trace: TrainingTrace | None = None) -> Edit:
    """An edit of a hyperparameter that the program has."""
    found = {x.id: x for x in find(source, trace)}[parameter]
    return Edit(parameter=parameter, kind=found.kind, before=found.value, after=after)


def changed(source: str, trace: TrainingTrace | None = None, **values: str) -> list[str]:
    """The added lines of the patched program. `activation_1` stands for "activation(1)"."""
    return [x[1:] for x in diff(source, trace, **values) if x.startswith("+")]


def diff(source: str, trace: TrainingTrace | None = None, **values: str) -> list[str]:
    """The changed lines of the patched program, each with its sign."""
    edits = [edit(source, _id(name), value, trace) for name, value in values.items()]
    lines = difflib.unified_diff(
        source.splitlines(),
        patch_program(source, edits, trace).source.splitlines(),
        n=0,
        lineterm="",
    )
    return [x for x in lines if not x.startswith(("---", "+++", "@@"))]


def _id(name: str) -> str:
    kind, _, layer = name.rpartition("_")
    return f"{kind}({layer})" if layer.isdecimal() else name


def values(source: str, trace: TrainingTrace | None = None) -> dict[str, str]:
    """The value of each hyperparameter by its id."""
    return {x.id: x.value for x in find(source, trace)}
