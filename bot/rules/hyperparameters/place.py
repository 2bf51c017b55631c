"""A hyperparameter with the way to write another value for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from bot.models.repair import Hyperparameter, HyperparameterKind
from bot.rules.hyperparameters.text.rewriting import Rewriting

Write = Callable[[Rewriting, str], None]
"""Writes a value into a rewriting. Raises NotApplicable."""


@dataclass(frozen=True)
class HyperparameterPlace:
    """Where a hyperparameter stands. Places of one `group` are written together."""

    hyperparameter: Hyperparameter
    write: Write
    group: object = None


def place(
    kind: HyperparameterKind,
    value: str,
    line: int,
    write: Write,
    *,
    layer: int | None = None,
    bounds: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    group: object = None,
) -> HyperparameterPlace:
    """One that has the plain id of its kind and layer. `line` is in the whole text."""
    low, high = bounds or (None, None)
    name = kind if layer is None else f"{kind}({layer})"
    found = Hyperparameter(
        id=name, kind=kind, value=value, line=line, layer=layer, low=low, high=high,
        choices=choices,
    )  # fmt: skip
    return HyperparameterPlace(found, write, group)


def numbered(places: Iterable[HyperparameterPlace]) -> tuple[HyperparameterPlace, ...]:
    """Places with ids of their own: the second of a name is its "#2"."""
    seen: Counter[str] = Counter()
    found: list[HyperparameterPlace] = []
    for each in places:
        seen[each.hyperparameter.id] += 1
        count = seen[each.hyperparameter.id]
        given = each.hyperparameter
        if count > 1:
            given = given.model_copy(update={"id": f"{given.id}#{count}"})
        found.append(replace(each, hyperparameter=given))
    return tuple(found)
