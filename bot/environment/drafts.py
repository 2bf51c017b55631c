"""One way to put an environment together, the small changes that all fallbacks make to it, and what
these may ask.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from packaging.specifiers import SpecifierSet

from bot.environment import imports, versions
from bot.kernel.bug import Release
from bot.kernel.environment import PinSource, Requirement


@dataclass(frozen=True, slots=True)
class Draft:
    """One way to put the environment together. `what` says how it differs from the one before;
    `windows` are the later days up to which packages may be that cannot be of the day itself;
    `notes` go beside the claims, `passed` are the Pythons and `refused` the neighbouring releases
    ("name==version") that did not do, and `cloned` is the distribution that the clone's own wheel
    holds. The package `under_test` ("" for none) is the last to give way, and those whose releases
    the repository's files have `declared` are the first; `overrides` replace what others require.
    """

    what: str
    minor: str
    requirements: tuple[Requirement, ...]
    under_test: str = ""
    declared: tuple[str, ...] = ()
    constraints: tuple[Requirement, ...] = ()
    exclude_newer: datetime | None = None
    undated: tuple[str, ...] = ()
    windows: Mapping[str, datetime] = field(default_factory=dict)
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
_SOON = (timedelta(days=183), timedelta(days=730))


def omit(draft: Draft, names: Sequence[str], why: str) -> Draft | None:
    """Without these requirements, None when there are none."""
    if not names:
        return None
    return replace(
        draft,
        what=f"without {', '.join(names)}",
        requirements=tuple(
            requirement for requirement in draft.requirements if requirement.name not in names
        ),
        notes=(*draft.notes, *((name, why) for name in names)),
    )


def of_any_date(
    draft: Draft,
    names: Iterable[str],
    what: str,
    why: str,
    first: Mapping[str, datetime] = MappingProxyType({}),
) -> Draft | None:
    """With releases of these up to the `first` that can be had, then from soon after the date, the
    next time from some years after it, at last of any date; None when that changes nothing.
    """
    new = [name for name in names if name not in draft.undated]
    if not new or draft.exclude_newer is None:
        return None
    windows, undated = dict(draft.windows), list[str]()
    for name in new:
        steps = [draft.exclude_newer + step for step in _SOON]
        later = [*([first[name]] if name in first and name not in windows else []), *steps]
        next_day = next(
            (day for day in later if day > windows.get(name, draft.exclude_newer)), None
        )
        if next_day is None:
            windows.pop(name, None)
            undated.append(name)
        else:
            windows[name] = next_day
    reasons = dict(draft.notes)
    notes = ((name, why) for name in new if name not in reasons)
    return replace(
        draft,
        what=f"with {what.format(', '.join(new))}",
        undated=(*draft.undated, *undated),
        windows=windows,
        notes=(*draft.notes, *notes),
    )


def swap(draft: Draft, old: Requirement, new: Requirement) -> tuple[Requirement, ...]:
    """The requirements with one in place of another."""
    return tuple(new if requirement is old else requirement for requirement in draft.requirements)


def allows(requirement: Requirement, version: str) -> bool:
    """Whether a version meets the specifier of a requirement."""
    return SpecifierSet(requirement.specifier).contains(version)


# Changes that need no index: lines for the resolver, bounds, torch at hand, what packages presume.


def line(requirement: Requirement) -> str:
    """A requirement as the resolver reads it."""
    extras = f"[{','.join(requirement.extras)}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def exact(requirements: tuple[Requirement, ...]) -> tuple[str, ...]:
    """Names pinned to one release: the date says nothing about them."""
    return tuple(
        requirement.name
        for requirement in requirements
        if versions.exact_version(requirement.specifier)
    )


def at_hand(requirement: Requirement, pin: str, why: str) -> Requirement:
    """The requirement at the only release that can be had, and what that has to do with the
    claim.
    """
    version = pin.partition("==")[2]
    if requirement.specifier and allows(requirement, version.partition("+")[0]):
        return requirement.model_copy(update={"specifier": f"=={version}"})
    claim = f"claimed {requirement.specifier.removeprefix('==')}, " if requirement.specifier else ""
    reason = f"{claim}{why} {version}"
    return requirement.model_copy(
        update={"specifier": f"=={version}", "rung": PinSource.NEIGHBOUR, "reason": reason}
    )


def at_least(draft: Draft, requirement: Requirement, version: str) -> Draft:
    """The draft with one requirement at this release or a newer one."""
    floor = requirement.model_copy(update={"specifier": f">={version}"})
    return replace(
        draft,
        what=f"with {requirement.name} {version}, the newest release before the bug report",
        requirements=tuple(
            floor if other is requirement else other for other in draft.requirements
        ),
    )


def with_bounds(draft: Draft, bounds: tuple[Requirement, ...]) -> Draft:
    """Known bounds as constraints; setuptools itself is installed, because old packages import
    it without saying so.
    """
    names = {requirement.name for requirement in draft.requirements}
    needed = tuple(
        bound
        for bound in bounds
        if bound.name == "setuptools" and names and "setuptools" not in names
    )
    return replace(
        draft,
        requirements=(*draft.requirements, *needed),
        constraints=(*draft.constraints, *bounds),
    )


def completed(draft: Draft, pins: tuple[str, ...]) -> Draft | None:
    """The draft with what the resolved packages presume without saying so, when something of it
    is missing, and without builds that cannot be imported without a display.
    """
    return _with_presumed(draft, pins) or _without_windows(draft, pins)


def _without_windows(draft: Draft, pins: tuple[str, ...]) -> Draft | None:
    """With the build without windows of each package that something requires with them."""
    resolved = dict(pin.split("==", 1) for pin in pins if "==" in pin)
    requirement_names = {requirement.name for requirement in draft.requirements}
    builds = [
        without_windows(
            Requirement(
                name=name,
                specifier=f"=={resolved[name]}",
                rung=PinSource.DEPENDENCY,
                reason="required by another package",
            )
        )
        for name, build in imports.WINDOWED.items()
        if name in resolved and build not in requirement_names
    ]
    if not builds:
        return None
    what = f"with {', '.join(build.name for build in builds)}"
    return replace(draft, what=what, requirements=(*draft.requirements, *builds))


def without_windows(requirement: Requirement) -> Requirement:
    """The requirement as it is, or its build without windows."""
    build = imports.WINDOWED.get(requirement.name)
    if build is None:
        return requirement
    why = f"the build of {requirement.name} that needs no display"
    reason = f"{requirement.reason}; {why}"
    return requirement.model_copy(update={"name": build, "reason": reason})


def _with_presumed(draft: Draft, pins: tuple[str, ...]) -> Draft | None:
    names = {pin.partition("==")[0] for pin in pins}
    needed = {
        need: name
        for name in names
        for need in imports.UNDECLARED.get(name, ())
        if need not in names
    }
    requirement_names = {requirement.name for requirement in draft.requirements}
    more = [
        Requirement(name=need, rung=PinSource.DEPENDENCY, reason=f"{name} assumes it is installed")
        for need, name in needed.items()
        if need not in requirement_names
    ]
    return (
        replace(draft, what=f"with {', '.join(needed)}", requirements=(*draft.requirements, *more))
        if more
        else None
    )


def bounds(draft: Draft, oldest: datetime | None) -> tuple[Requirement, ...]:
    """The known bounds that hold for an environment whose oldest pinned release is of that day,
    and contradict no claim.
    """
    rules = [one for one in imports.BOUNDS if not one.until or (oldest and oldest < one.until)]
    return tuple(
        Requirement(
            name=rule.name, specifier=rule.specifier, rung=PinSource.REPAIR, reason=rule.why
        )
        for rule in rules
        if all(
            _agree(requirement.specifier, rule.specifier)
            for requirement in (*draft.requirements, *draft.constraints)
            if requirement.name == rule.name
        )
    )


def _agree(specifier: str, bound: str) -> bool:
    exact = versions.exact_version(specifier)
    return not specifier or (bool(exact) and SpecifierSet(bound).contains(exact))
