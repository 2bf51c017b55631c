"""One way to put an environment together, the small changes that all moves of the ladder make to
it, and what these may ask.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from bot.models.bisect import Release
from bot.models.environment import Requirement


@dataclass(frozen=True, slots=True)
class Draft:
    """One way to put the environment together. `what` says how it differs from the one before;
    `notes` go beside the claims, `passed` are the Pythons and `refused` the neighbouring releases
    ("name==version") that did not do, and `cloned` is the
    distribution that the clone's own wheel holds. `overrides` replace what others require.
    """

    what: str
    minor: str
    requirements: tuple[Requirement, ...]
    constraints: tuple[Requirement, ...] = ()
    exclude_newer: datetime | None = None
    undated: tuple[str, ...] = ()
    wheels: tuple[Path, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    passed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    cloned: str = ""
    overrides: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """What the ladder may ask: releases that are offered, Pythons that are present, and a build
    from source.
    """

    releases: Callable[[str], tuple[str, ...]]
    minors: tuple[str, ...]
    build: Callable[[str, Draft], Path | None]
    fixed_python: bool = False
    history: Callable[[str], tuple[Release, ...]] = lambda _: ()
    usable: Callable[[str, str], tuple[str, ...]] = lambda _name, _minor: ()
    """Versions with a wheel for a Python ("3.11")."""


Move = Callable[[Draft, str, World], Draft | None]


def omit(draft: Draft, names: Sequence[str], why: str) -> Draft | None:
    """Without these requirements, None when there are none."""
    if not names:
        return None
    return replace(
        draft,
        what=f"without {', '.join(names)}",
        requirements=tuple(each for each in draft.requirements if each.name not in names),
        notes=(*draft.notes, *((name, why) for name in names)),
    )


def of_any_date(draft: Draft, names: Iterable[str], what: str, why: str) -> Draft | None:
    """With releases of any date of these, None when that changes nothing."""
    new = [name for name in names if name not in draft.undated]
    if not new or draft.exclude_newer is None:
        return None
    return replace(
        draft,
        what=f"with {what.format(', '.join(new))}",
        undated=(*draft.undated, *new),
        notes=(*draft.notes, *((name, why) for name in new)),
    )


def swap(draft: Draft, old: Requirement, new: Requirement) -> tuple[Requirement, ...]:
    """The requirements with one in place of another."""
    return tuple(new if each is old else each for each in draft.requirements)
