"""The ladder of tries: a draft that could not be resolved, the resolver's words → the next
draft, or None at the bottom.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from bot.models.bisect import Release
from bot.models.environment import PinSource, Requirement
from bot.rules.packages import companions, complaints, nearby, pythons, versions

_GUESSES = {PinSource.IMPORT, PinSource.REPOSITORY, PinSource.REPAIR}


@dataclass(frozen=True, slots=True)
class Draft:
    """One way to put the environment together. `what` says how it differs from the one before;
    `notes` go beside the claims, `passed` are the Pythons and `refused` the neighbouring releases
    ("name==version") that did not do, and `cloned` is the
    distribution that the clone's own wheel holds.
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


Move = Callable[[Draft, str, World], Draft | None]


def next_draft(draft: Draft, text: str, world: World, tried: Iterable[Draft]) -> Draft | None:
    """The first move that leads to a draft which was not tried yet."""
    seen = [_essence(each) for each in tried]
    for move in MOVES:
        new = move(draft, text, world)
        if new is not None and _essence(new) not in seen:
            return new
    return None


def _essence(draft: Draft) -> Draft:
    return replace(draft, what="", notes=(), passed=(), refused=())


def _forget_unknown(draft: Draft, text: str, _: World) -> Draft | None:
    """A name that was only guessed, and that no index knows, is left out."""
    guessed = {each.name for each in draft.requirements if each.rung in _GUESSES}
    unknown = guessed.intersection(complaints.unknown(text))
    return _omit(draft, sorted(unknown), "not on any index; omitted")


def _omit(draft: Draft, names: Sequence[str], why: str) -> Draft | None:
    if not names:
        return None
    return replace(
        draft,
        what=f"without {', '.join(names)}",
        requirements=tuple(each for each in draft.requirements if each.name not in names),
        notes=(*draft.notes, *((name, why) for name in names)),
    )


def _drop_named_constraints(draft: Draft, text: str, _: World) -> Draft | None:
    """Bounds on dependencies go first, those in the way before the others, claimed ones before
    known ones.
    """
    named = [each for each in draft.constraints if complaints.named(text, each.name)]
    claimed = [each for each in named if each.rung is PinSource.ISSUE]
    return _without(draft, claimed or named)


def _drop_all_constraints(draft: Draft, _text: str, _: World) -> Draft | None:
    return _without(draft, draft.constraints)


def _without(draft: Draft, gone: Sequence[Requirement]) -> Draft | None:
    if not gone:
        return None
    names = sorted({each.name for each in gone})
    why = "conflicts with other requirements; the resolver chose the version"
    return replace(
        draft,
        what=f"without the bound on {', '.join(names)}",
        constraints=tuple(each for each in draft.constraints if each not in gone),
        notes=(*draft.notes, *((name, why) for name in names)),
    )


def _show_hidden(draft: Draft, text: str, _: World) -> Draft | None:
    """A dependency of something newer than the report has to be newer too."""
    why = "newer than the report because a requested package needs it"
    return _of_any_date(draft, complaints.hidden_by_date(text), "{} of any date", why)


def _of_any_date(draft: Draft, names: Iterable[str], what: str, why: str) -> Draft | None:
    new = [name for name in names if name not in draft.undated]
    if not new or draft.exclude_newer is None:
        return None
    return replace(
        draft,
        what=f"with {what.format(', '.join(new))}",
        undated=(*draft.undated, *new),
        notes=(*draft.notes, *((name, why) for name in new)),
    )


def _python_with_wheels(draft: Draft, text: str, world: World) -> Draft | None:
    """The nearest Python for which the missing wheels exist, or that meets a package's bound."""
    fitting = complaints.pythons_with_wheels(text)
    bounds = complaints.python_bounds(text)
    if not fitting and bounds:
        fitting = {minor for minor in world.minors if all(_meets(minor, bound) for bound in bounds)}
    return _other_python(draft, world, fitting & set(world.minors))


def _any_python(draft: Draft, _text: str, world: World) -> Draft | None:
    return _other_python(draft, world, set(world.minors))


def _other_python(draft: Draft, world: World, fitting: set[str]) -> Draft | None:
    others = tuple(fitting - {draft.minor, *draft.passed})
    if world.fixed_python or not others:
        return None
    minor = pythons.by_distance(draft.minor, others)[0]
    note = ("python", f"{minor}, because no solution was found for {draft.minor}")
    passed = (*draft.passed, draft.minor)
    return replace(
        draft, what=f"with Python {minor}", minor=minor, notes=(*draft.notes, note), passed=passed
    )


def _meets(minor: str, bound: str) -> bool:
    try:
        return SpecifierSet(bound).contains(f"{minor}.99")
    except InvalidSpecifier:
        return False


def _plain_tensorflow(draft: Draft, text: str, world: World) -> Draft | None:
    """The CPU build of TensorFlow does not exist for every version."""
    old = next((each for each in draft.requirements if each.name == "tensorflow-cpu"), None)
    if (
        old is None
        or not complaints.named(text, "tensorflow-cpu")
        or complaints.pythons_with_wheels(text) & set(world.minors)
    ):
        return None
    new = old.model_copy(
        update={"name": "tensorflow", "reason": f"{old.reason}; there is no CPU build of it"}
    )
    return replace(
        draft, what="with the usual build of tensorflow", requirements=_swap(draft, old, new)
    )


def _neighbour(draft: Draft, text: str, world: World) -> Draft | None:
    """The nearest release to one that is gone."""
    for old in draft.requirements:
        exact = versions.pinned(old.specifier)
        if not exact or old.rung is PinSource.OPTION or not complaints.named(text, old.name):
            continue
        offered = world.releases(old.name)
        if exact in offered or not offered:
            continue
        near = versions.neighbours(exact, offered)[0]
        reason = f"{exact} is not on the index; {near} is the nearest release"
        new = old.model_copy(
            update={"specifier": f"=={near}", "rung": PinSource.NEIGHBOUR, "reason": reason}
        )
        return replace(
            draft,
            what=f"with {old.name} {near}",
            requirements=_swap(draft, old, new),
            notes=(*draft.notes, (old.name, reason)),
        )
    return None


def _with_wheels(draft: Draft, text: str, _: World) -> Draft | None:
    """A package that the report does not name, and that had no wheel on the day: a later one
    rather than a build.
    """
    claimed = {PinSource.OPTION, PinSource.ISSUE, PinSource.REPOSITORY}
    named = {each.name for each in draft.requirements if each.rung in claimed}
    named |= {each.name for each in draft.requirements[:1]}
    names = [name for name in complaints.without_wheel(text) if name not in named]
    why = "had no wheel on the day of the report; a later release was used"
    return _of_any_date(draft, names, "a later {}", why)


def _from_source(draft: Draft, text: str, world: World) -> Draft | None:
    """What comes as source only is built, in a sandbox."""
    for name in complaints.without_wheel(text):
        if (name, "built from source") in draft.notes:
            continue  # its wheel is there and did not help
        made = world.build(name, draft)
        if made is not None:
            note = (name, "built from source")
            return replace(
                draft,
                what=f"with {name} built from source",
                wheels=(*draft.wheels, made),
                notes=(*draft.notes, note),
            )
    return None


def _near_release(draft: Draft, text: str, world: World) -> Draft | None:
    """The release with a wheel that is nearest in time, older or newer, in place of one that can
    be neither installed nor built.
    """
    unfit = {*complaints.without_wheel(text), *complaints.outlying(text)}
    for old in draft.requirements:
        if old.name not in unfit or old.rung is PinSource.OPTION:
            continue
        exact = versions.pinned(old.specifier)
        refused = (*draft.refused, f"{old.name}=={exact}")
        near = nearby.release(world.history(old.name), exact, draft.exclude_newer)
        offered = [each for each in near if f"{old.name}=={each}" not in refused]
        if not offered or sum(each.startswith(f"{old.name}==") for each in refused) > nearby.MOST:
            continue
        reason = f"the release that the report means cannot be installed; {offered[0]} is near it"
        update = {"specifier": f"=={offered[0]}", "rung": PinSource.NEIGHBOUR, "reason": reason}
        return replace(
            draft,
            what=f"with {old.name} {offered[0]}",
            requirements=_swap(draft, old, old.model_copy(update=update)),
            refused=refused,
            notes=(*draft.notes, (old.name, reason)),
        )
    return None


def _leave_out(draft: Draft, text: str, _: World) -> Draft | None:
    """A package that the program merely imports, and that can be neither had nor built, is left
    out.
    """
    guessed = {each.name for each in draft.requirements[1:] if each.rung in _GUESSES}
    gone = guessed.intersection(complaints.without_wheel(text))
    return _omit(draft, sorted(gone), "has no wheel and cannot be built here; omitted")


def _undated(draft: Draft, _text: str, _: World) -> Draft | None:
    if draft.exclude_newer is None:
        return None
    note = (
        "date",
        (
            f"the cut-off {draft.exclude_newer:%Y-%m-%d} left no solution, so releases of any "
            "date were allowed"
        ),
    )
    return replace(
        draft, what="without the date cut-off", exclude_newer=None, notes=(*draft.notes, note)
    )


def _loosen(draft: Draft, text: str, _: World) -> Draft | None:
    """The weakest claim in the way: the last requirement that was pinned by the report, never
    the first one (under test).
    """
    for old in reversed(draft.requirements[1:]):
        pinned = old.specifier and old.rung in {PinSource.ISSUE, PinSource.REPAIR}
        if pinned and complaints.named(text, old.name):
            reason = f"{old.specifier} conflicts with the other requirements"
            new = old.model_copy(
                update={"specifier": "", "rung": PinSource.REPAIR, "reason": reason}
            )
            notes = (*draft.notes, (old.name, reason))
            return replace(
                draft, what=f"with any {old.name}", requirements=_swap(draft, old, new), notes=notes
            )
    return None


MOVES: tuple[Move, ...] = (
    _forget_unknown,
    _drop_named_constraints,
    _show_hidden,
    _python_with_wheels,
    _neighbour,
    _plain_tensorflow,
    _with_wheels,
    _from_source,
    _near_release,
    _drop_all_constraints,
    _loosen,
    _leave_out,
    _undated,
    _any_python,
)


def _swap(draft: Draft, old: Requirement, new: Requirement) -> tuple[Requirement, ...]:
    return tuple(new if each is old else each for each in draft.requirements)


def bounds(draft: Draft, oldest: datetime | None) -> tuple[Requirement, ...]:
    """The known bounds that hold for an environment whose oldest pinned release is of that day,
    and contradict no claim.
    """
    rules = [one for one in companions.BOUNDS if not one.until or (oldest and oldest < one.until)]
    return tuple(
        Requirement(
            name=rule.name, specifier=rule.specifier, rung=PinSource.REPAIR, reason=rule.why
        )
        for rule in rules
        if all(
            _agree(each.specifier, rule.specifier)
            for each in (*draft.requirements, *draft.constraints)
            if each.name == rule.name
        )
    )


def _agree(specifier: str, bound: str) -> bool:
    exact = versions.pinned(specifier)
    return not specifier or (bool(exact) and SpecifierSet(bound).contains(exact))
