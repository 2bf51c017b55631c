"""Which distributions and releases match what a program imports and what a traceback quotes."""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

from bot.environment import evidence, index as environment_index, package_names, releases, versions
from bot.environment.evidence import ProjectFacts
from bot.environment.index import IndexRelease, PackageIndex
from bot.kernel.bug import Frame
from bot.kernel.environment import EnvironmentSpec, PinSource, Requirement
from bot.kernel.errors import IndexUnreachable

# Guessed requirements of a spec → those for which the index tells something, or nothing against
# them (`bot.environment.evidence`).

_SECONDS = 60.0
_MOST = 5
UNCHECKED = "its name alone, as the index gave no evidence"


def match_spec(
    spec: EnvironmentSpec, index: PackageIndex
) -> tuple[EnvironmentSpec, tuple[str, ...]]:
    """The spec with each guess confirmed, replaced or left out, and why, for each left out."""
    end = time.monotonic() + _SECONDS
    requirements, notes = dict[str, Requirement](), list[str]()
    for requirement in spec.requirements:
        name, why = requirement.name, requirement.evidence
        if requirement.modules and not why:
            try:
                name, why = _choose(requirement, spec, index, end)
            except IndexUnreachable:
                why, end = UNCHECKED, 0.0  # nothing more is asked
        if name:
            requirements.setdefault(name, _rename(requirement, name, why, spec))
        else:
            notes.append(f"{requirement.name} is not installed: {why}")
    return spec.model_copy(update={"requirements": tuple(requirements.values())}), tuple(notes)


def _choose(
    requirement: Requirement, spec: EnvironmentSpec, index: PackageIndex, end: float
) -> tuple[str, str]:
    target, reason = package_names.distribution_of(spec.repository)[0], ""
    owner = spec.repository.partition("/")[0].lower()
    for names in ((requirement.name, target, owner, *spec.named), _needs(target, spec, index, end)):
        candidates = _candidates(names, requirement, spec, index, end)
        published = requirement.named or requirement.rung is PinSource.REPOSITORY
        name, why = evidence.choose(
            requirement.modules, spec.repository, candidates, published=published
        )
        reason = reason or why
        if name:
            return name, why
    return ("", reason) if reason else (requirement.name, UNCHECKED)


def _candidates(
    names: Iterable[str],
    requirement: Requirement,
    spec: EnvironmentSpec,
    index: PackageIndex,
    end: float,
) -> Iterator[ProjectFacts]:
    """What the index tells of the guess, and of names like it."""
    fitting = (
        n for n in names if n == requirement.name or evidence.alike(n, requirement.modules[0])
    )
    for name in islice(dict.fromkeys(fitting), _MOST):
        specifier = requirement.specifier if name == requirement.name else ""
        late = time.monotonic() > end
        project = None if late else index.about(name, spec.exclude_newer, specifier)
        if project is not None:
            yield project


def _needs(target: str, spec: EnvironmentSpec, index: PackageIndex, end: float) -> Iterator[str]:
    """What the package under test needs, with or without extras."""
    is_checkable = bool(target) and time.monotonic() < end
    project = index.about(target, spec.exclude_newer) if is_checkable else None
    yield from project.needs if project else ()


def _rename(requirement: Requirement, name: str, why: str, spec: EnvironmentSpec) -> Requirement:
    if name == requirement.name:
        return requirement.model_copy(update={"evidence": why})
    version = next((claim.claimed for claim in spec.claims if claim.name == name), "")
    specifier = requirement.specifier or versions.specifier(version, "text") or ""
    update = {"name": name, "specifier": specifier, "evidence": why}
    return requirement.model_copy(update=update)


# The release of a distribution whose files have the lines that a traceback quotes; looked for
# near the installed one, in wheels read in pieces.

_MOST_FILE = 2 * 1024 * 1024


def release(
    index: PackageIndex,
    site: Path,
    name: str,
    installed_version: str,
    frames: Sequence[Frame],
    before: datetime | None,
) -> str:
    """The version that fits better than the installed one, "" when none near it does."""
    best, best_version = releases.count(frames, lambda path: _text(site / path)), ""
    if best == len(frames):
        return ""
    end = time.monotonic() + _SECONDS
    try:
        release_by_version = {
            str(release.version): release
            for release in index.releases(name)
            if not (release.yanked or (before and release.uploaded and release.uploaded > before))
        }
        for version in releases.neighbours(installed_version, list(release_by_version)):
            fitting = (
                0
                if time.monotonic() > end
                else _fitting(index, release_by_version[version], frames)
            )
            if fitting > best:
                best, best_version = fitting, version
            if best == len(frames):
                break
    except IndexUnreachable:
        return ""
    return best_version


def _fitting(index: PackageIndex, release: IndexRelease, frames: Sequence[Frame]) -> int:
    """How many frames fit a release, 0 where its wheel cannot be read."""
    wheel = next((file for file in release.files if file.name.endswith(".whl")), None)
    if wheel is None:
        return 0
    try:
        with environment_index.open_wheel(index.opened(wheel)) as archive:
            return releases.count(frames, lambda path: environment_index.member(archive, path))
    except environment_index.UNREADABLE:
        return 0


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_FILE).decode("utf-8", "replace")
    except OSError:
        return ""
