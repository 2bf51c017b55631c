"""The fallbacks of a resolution: a draft that could not be resolved and the resolver's words
→ the next draft.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import parse_wheel_filename

from bot.environment import imports, releases, versions
from bot.environment.drafts import Draft, Move, World, allows, of_any_date, omit, swap
from bot.kernel.bug import Release
from bot.kernel.environment import PinSource, Requirement

# The moves of the ladder for what has no wheel on the day, or for the Python: a later release, a
# build, another version of a dependency, a neighbouring release, or nothing.

GUESSES = {PinSource.IMPORT, PinSource.REPOSITORY, PinSource.REPAIR}


def with_wheels(draft: Draft, text: str, world: World) -> Draft | None:
    """A package that the report does not name, and that had no wheel on the day: the next one that
    has rather than a build.
    """
    claim_sources = {PinSource.OPTION, PinSource.ISSUE, PinSource.REPOSITORY}
    ranges = {row.name for row in _of_files(draft) if not versions.exact_version(row.specifier)}
    names_to_keep = {
        requirement.name
        for requirement in draft.requirements
        if requirement.rung in claim_sources and requirement.name not in ranges
    } | {draft.under_test}
    direct = {row.name for row in draft.requirements}.intersection(releases.for_other_pythons(text))
    names = [*releases.without_wheel(text), *sorted(direct)]
    names = [name for name in names if name not in names_to_keep]
    names = [name for name in names if _may_have_wheel(world.history(name))]
    why = "had no wheel on the date of the bug report; a later release was used"
    later = of_any_date(draft, names, "a later {}", why, _days(names, draft, text, world))
    bounds = (_next(row, draft, world) for row in draft.requirements if row.name in names)
    return later and replace(later, constraints=(*later.constraints, *filter(None, bounds)))


def _may_have_wheel(history: Sequence[Release]) -> bool:
    """Whether any release may have a wheel: of what only ever came as source, a later one helps
    nobody.
    """
    return not history or any(row.wheels != "none" for row in history)


def _next(old: Requirement, draft: Draft, world: World) -> Requirement | None:
    """The bound that keeps a requirement from any release after the next one with a wheel."""
    following = _following(old, draft, world)
    if following is None:
        return None
    reason = f"the next release with a wheel for Python {draft.minor}"
    return Requirement(
        name=old.name, specifier=f"<={following[1]}", rung=PinSource.NEIGHBOUR, reason=reason
    )


def _following(old: Requirement, draft: Draft, world: World) -> tuple[datetime, str] | None:
    """The day and the version of the first release after the date with a wheel."""
    usable, day = world.usable(old.name, draft.minor), draft.exclude_newer
    dated = [
        (row.uploaded_at, row.version)
        for row in world.history(old.name)
        if day and row.uploaded_at and row.uploaded_at > day and not row.prerelease
    ]
    fitting = [row for row in dated if row[1] in usable and allows(old, row[1])]
    return min(fitting, default=None)


_A_DAY = timedelta(days=1)  # until all files of a release are there


def _days(names: Iterable[str], draft: Draft, text: str, world: World) -> dict[str, datetime]:
    """The days up to which the first releases after the date come that the resolver would take."""
    rows = {row.name: row for row in draft.requirements}
    days = dict[str, datetime]()
    for name in names:
        specifiers = [releases.demand(text, name), rows[name].specifier if name in rows else ""]
        specifier = ",".join(filter(None, specifiers))
        row = Requirement(
            name=name, specifier=specifier, rung=PinSource.DEPENDENCY, reason="required"
        )
        if following := _following(row, draft, world):
            days[name] = following[0] + _A_DAY
    return days


def from_source(draft: Draft, text: str, world: World) -> Draft | None:
    """What comes as source only is built, in a sandbox."""
    for name in releases.without_wheel(text):
        span, note = releases.span(text, name), (name, "built from source")
        if note in draft.notes and (
            not versions.exact_version(span) or _is_built(name, span, draft)
        ):
            continue  # its wheel is there and did not help, and no other release is named
        bound = Requirement(name=name, specifier=span, rung=PinSource.DEPENDENCY, reason=text)
        wheel = world.build(name, replace(draft, constraints=(*draft.constraints, bound)))
        if wheel is not None and wheel not in draft.wheels:
            return replace(
                draft,
                what=f"with {name} built from source",
                wheels=(*draft.wheels, wheel),
                notes=tuple(dict.fromkeys((*draft.notes, note))),
            )
    return None


def _is_built(name: str, span: str, draft: Draft) -> bool:
    """Whether a wheel that was built is of a release within a specifier."""
    releases_built = (parse_wheel_filename(wheel.name)[:2] for wheel in draft.wheels)
    return any(own == name and version in SpecifierSet(span) for own, version in releases_built)


def without_extras(draft: Draft, text: str, _: World) -> Draft | None:
    """Extras that ask for what can be neither installed nor built go, and the package stays."""
    for old in draft.requirements:
        name = re.escape(old.name)
        asking = re.findall(rf"(?<![\w.-]){name}\[[\w,. -]+\]\S* depends on ([\w.-]+)", text)
        lacking = {*asking}.intersection(_without_wheel(text)) - {old.name}
        if not old.extras or not lacking or old.rung is PinSource.OPTION:
            continue
        reason = f"its extras ask for {', '.join(sorted(lacking))}, which cannot be installed here"
        new = old.model_copy(update={"extras": ()})
        return replace(
            draft,
            what=f"with {old.name} without its extras",
            requirements=swap(draft, old, new),
            notes=(*draft.notes, (old.name, reason)),
        )
    return None


def relaxed(draft: Draft, text: str, world: World) -> Draft | None:
    """What packages require of a dependency that can be neither installed nor built gives way to
    the nearest release of it with a wheel.
    """
    names = {requirement.name for requirement in (*draft.requirements, *draft.overrides)}
    for name in _without_wheel(text):
        span, usable = releases.span(text, name), world.usable(name, draft.minor)
        near = releases.beside(world.history(name), usable, span)
        if name in names or not near or len(draft.overrides) >= releases.MOST:
            continue
        reason = (
            f"{near} in place of {span}, which has no wheel for Python {draft.minor} and could not "
            "be built"
        )
        new = Requirement(name=name, specifier=f"=={near}", rung=PinSource.NEIGHBOUR, reason=reason)
        return replace(
            draft,
            what=f"with {name} {near} in place of {span}",
            overrides=(*draft.overrides, new),
            undated=(*draft.undated, name),
            notes=(*(note for note in draft.notes if note[0] != name), (name, reason)),
        )
    return None


def near_release(draft: Draft, text: str, world: World) -> Draft | None:
    """The release with a wheel that is nearest in time, older or newer, in place of one that can
    be neither installed nor built, or whose dependency cannot.
    """
    for old in _unfit(draft, text):
        exact = versions.exact_version(old.specifier)
        refusals = (*draft.refused, f"{old.name}=={exact}")
        near = releases.release(world.history(old.name), exact, draft.exclude_newer)
        usable = world.usable(old.name, draft.minor) or near
        if old in _of_files(draft):
            near = [*near, _nearest(old, draft, world)]
        candidates = [
            version
            for version in near
            if version in usable and f"{old.name}=={version}" not in refusals
        ]
        if (
            not candidates
            or sum(pin.startswith(f"{old.name}==") for pin in refusals) > releases.MOST
        ):
            continue
        reason = f"{candidates[0]} is the release nearest to the date of the bug report"
        if exact:
            lacks = _why_not(old.name, exact, draft, text, world)
            reason = f"{exact} cannot be installed, {lacks}; {candidates[0]} is near it"
        update = {"specifier": f"=={candidates[0]}", "rung": PinSource.NEIGHBOUR, "reason": reason}
        return replace(
            draft,
            what=f"with {old.name} {candidates[0]}",
            requirements=swap(draft, old, old.model_copy(update=update)),
            refused=refusals,
            notes=(*draft.notes, (old.name, reason)),
        )
    return None


def _why_not(name: str, version: str, draft: Draft, text: str, world: World) -> str:
    """Why a release cannot be installed, in a few words."""
    history = world.history(name)
    row = next((one for one in history if releases.same(one.version, version)), None)
    if bounds := releases.python_bounds(text):
        return f"since it or what it needs asks for {bounds[0]}"
    if name not in _without_wheel(text):
        return "since what it needs cannot be had"
    if row is None or row.wheels == "none":
        return "since it comes as source only, which could not be built"
    return f"since it has no wheel for Python {draft.minor}"


def give_way(draft: Draft, text: str, world: World) -> Draft | None:
    """Releases that the repository's files ask for, and that have wheels only for other Pythons,
    give way to the nearest ones, all at once. What never had a wheel is built before.
    """
    if not {row.name for row in _of_files(draft)}.intersection(_without_wheel(text)):
        return None
    requirements, notes = draft.requirements, draft.notes
    for old in _of_files(draft):
        stated = [row for row in world.history(old.name) if allows(old, row.version)]
        usable = world.usable(old.name, draft.minor)
        had_wheels = any(row.wheels == "linux" for row in stated)
        near = _nearest(old, draft, world)
        if not near or not had_wheels or any(row.version in usable for row in stated):
            continue
        reason = f"{old.specifier} has no wheel for Python {draft.minor}; {near} is nearest"
        update = {"specifier": f"=={near}", "rung": PinSource.NEIGHBOUR, "reason": reason}
        requirements = tuple(
            row.model_copy(update=update) if row is old else row for row in requirements
        )
        notes = (*notes, (old.name, reason))
    if requirements == draft.requirements:
        return None
    what = "with the nearest releases that have wheels of what the repository's files ask for"
    return replace(draft, what=what, requirements=requirements, notes=notes)


def _of_files(draft: Draft) -> list[Requirement]:
    """The requirements with a version that the repository's files state, or that stands for it."""
    return [row for row in draft.requirements if row.specifier and row.name in draft.declared]


def _nearest(old: Requirement, draft: Draft, world: World) -> str:
    usable = world.usable(old.name, draft.minor)
    return releases.beside(world.history(old.name), usable, old.specifier)


def _is_at_hand(row: Requirement, draft: Draft) -> bool:
    """Whether a requirement is a build from a folder, in whose place nothing else can be had: no
    index has builds with a local part.
    """
    return "+" in row.specifier and row.name != draft.cloned


def _without_wheel(text: str) -> list[str]:
    return [*releases.without_wheel(text), *releases.for_other_pythons(text)]


def _unfit(draft: Draft, text: str) -> list[Requirement]:
    """The requirements that stand in the way, those that only need what does after them."""
    unfit = {*_without_wheel(text), *releases.outlying(text)}
    free = [
        requirement
        for requirement in draft.requirements
        if requirement.rung is not PinSource.OPTION and not _is_at_hand(requirement, draft)
    ]
    needing = [
        requirement
        for requirement in free
        if unfit and releases.is_mentioned(text, requirement.name)
    ]
    return list(
        dict.fromkeys(
            [*(requirement for requirement in free if requirement.name in unfit), *needing]
        )
    )


def leave_out(draft: Draft, text: str, _: World) -> Draft | None:
    """A package that the program merely imports, and that can be neither had nor built, is left
    out.
    """
    guesses = {
        row.name
        for row in draft.requirements
        if row.name in draft.declared or (row.rung in GUESSES and row.name != draft.under_test)
    }
    omissions = guesses.intersection([*_without_wheel(text), *releases.outlying(text)])
    return omit(draft, sorted(omissions), "has no wheel and cannot be built here; omitted")


# The ladder of tries: a draft that could not be resolved, the resolver's words → the next draft,
# or None at the bottom.


_DATED_TRIES = 24
"""After so many the date of the report is given up: one by one, too many packages would have to be
newer.
"""


def next_draft(draft: Draft, text: str, world: World, attempts: Sequence[Draft]) -> Draft | None:
    """The first move that leads to a draft which was not tried yet."""
    moves = (_undated, *MOVES) if len(attempts) >= _DATED_TRIES else MOVES
    return _first_new(moves, draft, text, world, attempts)


def raised_draft(
    draft: Draft, text: str, world: World, attempts: Sequence[Draft], is_under_test: bool
) -> Draft | None:
    """The first move that leads to a newer release of one package without another giving way to it:
    what it needs is newer. For the package under test it may be built, and bounds may go, as well.
    """
    moves = (_show_hidden, with_wheels)
    own = (_drop_named_constraints, *moves, from_source, without_extras, relaxed)
    return _first_new(own if is_under_test else moves, draft, text, world, attempts)


def _first_new(
    moves: Iterable[Move], draft: Draft, text: str, world: World, attempts: Sequence[Draft]
) -> Draft | None:
    essences = [_essence(attempt) for attempt in attempts]
    for move in moves:
        new = move(draft, text, world)
        if new is not None and _essence(new) not in essences:
            return new
    return None


def _essence(draft: Draft) -> Draft:
    return replace(draft, what="", notes=(), passed=(), refused=())


def _forget_unknown(draft: Draft, text: str, _: World) -> Draft | None:
    """A name that was only guessed, and that no index knows, is left out."""
    guesses = {
        requirement.name for requirement in draft.requirements if requirement.rung in GUESSES
    }
    unknown = guesses.intersection(releases.unknown(text))
    return omit(draft, sorted(unknown), "not on any index; omitted")


def _drop_named_constraints(draft: Draft, text: str, _: World) -> Draft | None:
    """Bounds on dependencies go first, those in the way before the others, claimed ones before
    known ones.
    """
    culprits = [
        constraint
        for constraint in draft.constraints
        if releases.is_mentioned(text, constraint.name)
    ]
    issue_pins = [constraint for constraint in culprits if constraint.rung is PinSource.ISSUE]
    return _without_requirement(draft, issue_pins or culprits)


def _drop_all_constraints(draft: Draft, _text: str, _: World) -> Draft | None:
    return _without_requirement(draft, draft.constraints)


def _without_requirement(draft: Draft, removals: Sequence[Requirement]) -> Draft | None:
    if not removals:
        return None
    names = sorted({requirement.name for requirement in removals})
    why = "conflicts with other requirements; the resolver chose the version"
    return replace(
        draft,
        what=f"without the bound on {', '.join(names)}",
        constraints=tuple(
            constraint for constraint in draft.constraints if constraint not in removals
        ),
        notes=(*draft.notes, *((name, why) for name in names)),
    )


def _show_hidden(draft: Draft, text: str, world: World) -> Draft | None:
    """A dependency of something newer than the report has to be newer too, by no more than it
    must.
    """
    why = "newer than the bug report because a requested package needs it"
    names = releases.hidden_by_date(text)
    return of_any_date(draft, names, "a later {}", why, _days(names, draft, text, world))


def _with_oldest_jax(draft: Draft, text: str, world: World) -> Draft | None:
    """Of jaxlib the index keeps no release of before 2023. jax and jaxlib are of one release then,
    the last of before the day that has a jaxlib, else the first; everything else stays of its day.
    """
    lacking = {*releases.hidden_by_date(text), *_without_wheel(text)} & {*imports.JAX}
    if not lacking or draft.exclude_newer is None or {*imports.JAX} <= {*draft.undated}:
        return None
    stated = [row for row in draft.requirements if row.name in imports.JAX]
    if any(row.rung is PinSource.OPTION for row in stated):
        return None
    jaxes, libraries = map(world.history, imports.JAX)
    if any(row.uploaded_at and row.uploaded_at <= draft.exclude_newer for row in libraries):
        return None
    builds = {row.version for row in libraries if not (row.yanked or row.prerelease)}
    shared = [
        row for row in jaxes if row.version in builds & {*world.usable("jaxlib", draft.minor)}
    ]
    then = [row for row in shared if row.uploaded_at and row.uploaded_at <= draft.exclude_newer]
    if not shared:
        return None
    version = (then[-1] if then else shared[0]).version
    reason = f"no jaxlib of the day is on the index; {version} is the nearest"
    changes = {"specifier": f"=={version}", "rung": PinSource.NEIGHBOUR, "reason": reason}
    names = {row.name for row in stated}
    new = [Requirement(name=name, **changes) for name in imports.JAX if name not in names]
    rows = [row.model_copy(update=changes) if row in stated else row for row in draft.requirements]
    return replace(
        draft,
        what=f"with jax and jaxlib {version}",
        requirements=(*rows, *new),
        constraints=tuple(row for row in draft.constraints if row.name not in imports.JAX),
        undated=(*draft.undated, *imports.JAX),
        notes=(*draft.notes, ("jax", reason)),
    )


def _python_with_wheels(draft: Draft, text: str, world: World) -> Draft | None:
    """The nearest Python for which the missing wheels exist, or that meets a package's bound."""
    fitting = releases.pythons_with_wheels(text)
    bounds = releases.python_bounds(text)
    if not fitting and bounds:
        fitting = {minor for minor in world.minors if all(_meets(minor, bound) for bound in bounds)}
    return _other_python(draft, world, fitting & set(world.minors))


def _any_python(draft: Draft, _text: str, world: World) -> Draft | None:
    return _other_python(draft, world, set(world.minors))


def _other_python(draft: Draft, world: World, fitting: set[str]) -> Draft | None:
    others = tuple(fitting - {draft.minor, *draft.passed})
    if world.fixed_python or not others:
        return None
    minor = versions.by_distance(draft.minor, others)[0]
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
    old = next(
        (requirement for requirement in draft.requirements if requirement.name == "tensorflow-cpu"),
        None,
    )
    if (
        old is None
        or not releases.is_mentioned(text, "tensorflow-cpu")
        or releases.pythons_with_wheels(text) & set(world.minors)
    ):
        return None
    new = old.model_copy(
        update={"name": "tensorflow", "reason": f"{old.reason}; there is no CPU build of it"}
    )
    return replace(
        draft, what="with the usual build of tensorflow", requirements=swap(draft, old, new)
    )


def _neighbour(draft: Draft, text: str, world: World) -> Draft | None:
    """The nearest release to one that is gone or never was, of those of before the day; for a
    pre-release, the release that it led to.
    """
    for old in draft.requirements:
        exact = versions.exact_version(old.specifier)
        if not exact or old.rung is PinSource.OPTION or not releases.is_mentioned(text, old.name):
            continue
        if _is_at_hand(old, draft):
            continue
        offered = world.releases(old.name)
        if exact in offered or not offered:
            continue
        day = draft.exclude_newer
        dated = {
            row.version
            for row in world.history(old.name)
            if day and row.uploaded_at and row.uploaded_at <= day
        }
        then = [version for version in offered if version in {*dated, versions.final(exact)}]
        near = versions.neighbours(exact, then or offered)[0]
        is_withdrawn = any(
            row.yanked and releases.same(row.version, exact) for row in world.history(old.name)
        )
        lacks = "was withdrawn" if is_withdrawn else "is not on the index"
        reason = f"{exact} {lacks}; {near} is the nearest release"
        new = old.model_copy(
            update={"specifier": f"=={near}", "rung": PinSource.NEIGHBOUR, "reason": reason}
        )
        return replace(
            draft,
            what=f"with {old.name} {near}",
            requirements=swap(draft, old, new),
            notes=(*draft.notes, (old.name, reason)),
        )
    return None


def _widened(draft: Draft, _text: str, _: World) -> Draft | None:
    """What may be from soon after the date may be from later, before the date goes for all."""
    return of_any_date(draft, tuple(draft.windows), "a later {}", "newer than the bug report")


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


def _as_stated(draft: Draft, text: str, _: World) -> Draft | None:
    """The release that the report states stays, whatever a package that it does not name asks for:
    who reports keras 3.0.5 beside a tensorflow that wants keras 2 has installed it so.
    """
    stated = {PinSource.OPTION, PinSource.ISSUE}
    names = {requirement.name for requirement in draft.requirements if requirement.rung in stated}
    overridden = {requirement.name for requirement in draft.overrides}
    for old in draft.requirements:
        exact = versions.exact_version(old.specifier)
        if not exact or old.name not in names - overridden:
            continue
        if f"you require {old.name}=={exact}" not in text:
            continue
        others = re.findall(
            rf"([\w.-]+?)(?:[=<>!~][^ ]*)? depends on {re.escape(old.name)}\b", text
        )
        if not others or (old.name != draft.under_test and names.intersection(others)):
            continue
        reason = f"{exact} as stated, although {others[0]} asks for another release"
        return replace(
            draft,
            what=f"with {old.name} {exact}, whatever others require",
            overrides=(*draft.overrides, old),
            notes=(*draft.notes, (old.name, reason)),
        )
    return None


def _loosen(draft: Draft, text: str, world: World) -> Draft | None:
    """The weakest claim in the way: what already gave way, then what the repository's files ask
    for, then the last requirement that was pinned by the report, never the first one (under test).
    """
    files = sorted(_of_files(draft), key=lambda row: row.rung is PinSource.NEIGHBOUR)
    claims = [
        row
        for row in draft.requirements
        if row.specifier
        and row.name != draft.under_test
        and row.rung in {PinSource.ISSUE, PinSource.REPAIR}
        and not _is_at_hand(row, draft)
    ]
    for old in (*reversed(files), *reversed(claims)):
        if releases.is_mentioned(text, old.name):
            reason = f"{old.specifier} conflicts with the other requirements"
            new = old.model_copy(
                update={"specifier": "", "rung": PinSource.REPAIR, "reason": reason}
            )
            notes = (*draft.notes, (old.name, reason))
            return replace(
                _dated(draft, old, world),
                what=f"with any {old.name}",
                requirements=swap(draft, old, new),
                notes=notes,
            )
    return None


def _dated(draft: Draft, old: Requirement, world: World) -> Draft:
    """The draft with the date binding a requirement again whose one release gives way: where that
    is from after it, up to its day.
    """
    exact = versions.exact_version(old.specifier)
    if not exact or old.name in imports.TORCH_FAMILY or draft.exclude_newer is None:
        return draft
    days = (row.uploaded_at for row in world.history(old.name) if row.version == exact)
    day = next(days, None)
    is_later = day is not None and day > draft.exclude_newer
    windows = {**draft.windows, **({old.name: day + _A_DAY} if day and is_later else {})}
    undated = tuple(name for name in draft.undated if name != old.name)
    return replace(draft, windows=windows, undated=undated)


MOVES: tuple[Move, ...] = (
    _forget_unknown,
    _drop_named_constraints,
    _with_oldest_jax,
    _show_hidden,
    _python_with_wheels,
    give_way,
    _neighbour,
    _plain_tensorflow,
    with_wheels,
    from_source,
    without_extras,
    relaxed,
    near_release,
    _drop_all_constraints,
    _as_stated,
    _loosen,
    leave_out,
    _widened,
    _undated,
    _any_python,
)
