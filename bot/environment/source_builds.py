"""Wheels that nobody published: built from source inside the sandbox, with what their builds
require.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement as Parsed
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename

from bot.environment import evidence, index, releases, tree_requirements, versions
from bot.environment.drafts import Draft
from bot.environment.git import Checkout
from bot.environment.index import IndexRelease, PackageIndex
from bot.kernel.environment import PinSource, Requirement
from bot.kernel.trees import read_tree
from sandbox import build as sandboxed
from sandbox.build import BuildFailed, BuildSource, MoreRequired
from sandbox.environment import Installation, Installer, Unresolvable, Wishes
from sandbox.interpreters import Snapshot
from sandbox.port import Sandbox

# What a build from source requires: fetched as wheels outside the sandbox, so that the build
# needs no network. What has no wheel is built the same way before.

_ROUNDS = 3
_DEEPEST = 4
_FORMAT = "2"  # changes when the same source gives another wheel
_MOST_SOURCES = 8

FromSource = Callable[[str, Draft], Path | None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where sources are built, for one Python. `under_way` are the builds that wait for this
    one.
    """

    index: PackageIndex
    installer: Installer
    python: Snapshot
    sandbox: Sandbox
    under_way: tuple[str, ...] = field(default=())

    def within(self, name: str) -> "Workshop":
        """The same inside a build."""
        return replace(self, under_way=(*self.under_way, name))


def build(
    source: BuildSource, into: Path, workshop: Workshop, draft: Draft, from_source: FromSource
) -> Path:
    """One wheel, with all that its back end asks for. Raises BuildFailed."""
    cancel = workshop.installer.cache.cancel
    backend = sandboxed.backend(source, workshop.python, workshop.sandbox, cancel)
    for _ in range(_ROUNDS - 1):
        tools = _tools(backend.requires, workshop, draft, from_source)
        try:
            return sandboxed.wheel(source, backend, tools, workshop.sandbox, into, cancel)
        except MoreRequired as missing:
            backend = backend.requiring(missing.requires)
    tools = _tools(backend.requires, workshop, draft, from_source)
    return sandboxed.wheel(source, backend, tools, workshop.sandbox, into, cancel)


def _tools(
    requires: tuple[str, ...], workshop: Workshop, draft: Draft, from_source: FromSource
) -> Installation:
    """The environment of the build: of the report's day where it can be had, else of any."""
    requirements = tuple(map(_requirement, requires))
    wishes = Wishes(tuple(map(str, requirements)), exclude_newer=_day(draft))
    for _ in range(_MOST_SOURCES):
        try:
            pins = workshop.installer.resolve(wishes, workshop.python)
            return workshop.installer.install(pins, wishes, workshop.python)
        except Unresolvable as failure:
            wishes = _other(wishes, str(failure), workshop, draft, from_source)
    raise BuildFailed("too many of its build requirements are available only as source")


def _other(
    wishes: Wishes, why: str, workshop: Workshop, draft: Draft, from_source: FromSource
) -> Wishes:
    """What to try next: tools of any day, or one of them built from source."""
    if wishes.exclude_newer:
        return replace(wishes, exclude_newer="")
    built_names = {wheel.name.partition("-")[0] for wheel in wishes.wheels}
    for name in releases.without_wheel(why):
        if name.replace("-", "_") in built_names or len(workshop.under_way) >= _DEEPEST:
            continue
        if wheel := from_source(name, _draft(name, wishes, draft)):
            return replace(wishes, wheels=(*wishes.wheels, wheel))
    cause = releases.first_cause(why)
    raise BuildFailed(f"its build requirements are not available as wheels: {cause}")


def _draft(name: str, wishes: Wishes, draft: Draft) -> Draft:
    """A draft that asks for one build requirement."""
    requirements = (Parsed(line) for line in wishes.requirements)
    specifier = ",".join(
        str(requirement.specifier)
        for requirement in requirements
        if canonicalize_name(requirement.name) == name
    )
    requirement = Requirement(
        name=name, specifier=specifier, rung=PinSource.DEPENDENCY, reason="needed by a build"
    )
    return Draft(f"{name} for a build", draft.minor, (requirement,), under_test=name)


def _requirement(line: str) -> Parsed:
    """A line of a hostile list: nothing but names and versions, as the resolver would follow an
    address or read a file.
    """
    try:
        requirement = Parsed(line)
    except InvalidRequirement:
        raise BuildFailed(
            f"its build requires {line[:100]!r}, which is not a requirement"
        ) from None
    if requirement.url:
        raise BuildFailed(
            f"its build requires {requirement.name} from an address, not from the index"
        )
    return requirement


def _day(draft: Draft) -> str:
    """The day whose build tools are used: the report's, but none from before they could build
    for this Python.
    """
    if draft.exclude_newer is None:
        return ""
    oldest = (
        datetime(2023, 12, 1, tzinfo=UTC)
        if versions.order(draft.minor) >= (3, 12)
        else datetime(2021, 7, 1, tzinfo=UTC)
    )
    return max(draft.exclude_newer, oldest).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def release(name: str, draft: Draft, workshop: Workshop) -> Path | None:
    """A wheel of the newest release that fits the draft; None when no fitting one has a source
    distribution.
    """
    specifier = next(
        (
            requirement.specifier
            for requirement in (*draft.requirements, *draft.constraints)
            if requirement.name == name
        ),
        "",
    )
    release = _newest(workshop.index.releases(name), SpecifierSet(specifier), draft, name)
    if release is None or release.source is None:
        return None
    file = release.source
    source = BuildSource(workshop.index.download(file), file.name, str(release.version))
    return _once(source, f"{file.url}\0{file.sha256}", draft, workshop)


def _newest(
    releases: tuple[IndexRelease, ...], specifiers: SpecifierSet, draft: Draft, name: str
) -> IndexRelease | None:
    day = draft.windows.get(name, draft.exclude_newer)
    limit = None if name in draft.undated else day
    fitting = (
        release
        for release in reversed(releases)
        if release.source is not None
        and not release.yanked
        and not (limit and release.uploaded and release.uploaded > limit)
        and specifiers.contains(release.version, prereleases=bool(specifiers.prereleases))
    )
    return next(fitting, None)


def repository(checkout: Checkout, draft: Draft, workshop: Workshop) -> Path:
    """A wheel of the clone."""
    source = BuildSource(checkout.tree, version=checkout.described or "0.0.0")
    return _once(source, str(checkout.tree), draft, workshop)


def add_wheel(draft: Draft, checkout: Checkout, wheel: Path | None) -> Draft:
    """The draft with the clone in place of the index's release and of what was guessed for its
    modules, or with its requirements where it could not be built.
    """
    reason = f"the repository at {checkout.commit[:12]}"
    if wheel is not None:
        inside = _modules(wheel)
        name, version, _, _ = parse_wheel_filename(wheel.name)
        own = Requirement(
            name=name, specifier=f"=={version}", rung=PinSource.REPOSITORY, reason=reason
        )
        others = tuple(
            requirement
            for requirement in draft.requirements
            if requirement.name != name and inside.isdisjoint(requirement.modules[:1])
        )
        bounds = tuple(constraint for constraint in draft.constraints if constraint.name != name)
        return replace(
            draft,
            requirements=(own, *others),
            under_test=name,
            constraints=bounds,
            wheels=(*draft.wheels, wheel),
            cloned=name,
        )
    names = {requirement.name for requirement in draft.requirements}
    declared = tree_requirements.read_dependencies(read_tree(str(checkout.tree)))
    more = [row for row in declared.requirements if row.name not in names]
    return replace(
        draft,
        requirements=(*draft.requirements, *more),
        declared=(*draft.declared, *(row.name for row in more if row.specifier)),
    )


def _modules(wheel: Path) -> frozenset[str]:
    try:
        with index.open_wheel(wheel.open("rb")) as archive:
            return evidence.modules(archive.namelist())
    except index.UNREADABLE:
        return frozenset()


def _once(source: BuildSource, key: str, draft: Draft, workshop: Workshop) -> Path:
    """The wheel of a source for a Python: from the cache, else built."""
    key = f"{key}\0{workshop.python.root.name}\0{_FORMAT}"
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    cache = workshop.installer.cache
    into = cache.folder("wheels") / name
    if name in workshop.under_way:
        raise BuildFailed("it is needed to build itself")
    within = workshop.within(name)
    with cache.guarded(f"wheel-{name}"):
        cache.touch(into, name)
        wheel = next(into.glob("*.whl"), None)
        return wheel or build(
            source, into, within, draft, lambda name, attempt: release(name, attempt, within)
        )
