"""Guessed requirements of a spec → those for which the index tells something, or nothing against
them (`bot.environment.evidence`).
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

from bot.environment import evidence, index as environment_index, package_names, releases, versions
from bot.environment.evidence import Known
from bot.environment.index import IndexRelease, PackageIndex
from bot.kernel.bug import Frame
from bot.kernel.environment import EnvironmentSpec, PinSource, Requirement
from bot.kernel.errors import IndexUnreachable

_SECONDS = 60.0
_MOST = 5
UNCHECKED = "its name alone, as the index gave no evidence"


def matched(spec: EnvironmentSpec, index: PackageIndex) -> tuple[EnvironmentSpec, tuple[str, ...]]:
    """The spec with each guess confirmed, replaced or left out, and why, for each left out."""
    end = time.monotonic() + _SECONDS
    kept, told = dict[str, Requirement](), list[str]()
    for wanted in spec.requirements:
        name, why = wanted.name, wanted.evidence
        if wanted.modules and not why:
            try:
                name, why = _chosen(wanted, spec, index, end)
            except IndexUnreachable:
                why, end = UNCHECKED, 0.0  # nothing more is asked
        if name:
            kept.setdefault(name, _named(wanted, name, why, spec))
        else:
            told.append(f"{wanted.name} is not installed: {why}")
    return spec.model_copy(update={"requirements": tuple(kept.values())}), tuple(told)


def _chosen(
    wanted: Requirement, spec: EnvironmentSpec, index: PackageIndex, end: float
) -> tuple[str, str]:
    target, told = package_names.distribution_of(spec.repository)[0], ""
    owner = spec.repository.partition("/")[0].lower()
    for names in ((wanted.name, target, owner, *spec.named), _needs(target, spec, index, end)):
        candidates = _known(names, wanted, spec, index, end)
        published = wanted.named or wanted.rung is PinSource.REPOSITORY
        name, why = evidence.choose(
            wanted.modules, spec.repository, candidates, published=published
        )
        told = told or why
        if name:
            return name, why
    return ("", told) if told else (wanted.name, UNCHECKED)


def _known(
    names: Iterable[str],
    wanted: Requirement,
    spec: EnvironmentSpec,
    index: PackageIndex,
    end: float,
) -> Iterator[Known]:
    """What the index tells of the guess, and of names like it."""
    fitting = (n for n in names if n == wanted.name or evidence.alike(n, wanted.modules[0]))
    for name in islice(dict.fromkeys(fitting), _MOST):
        specifier = wanted.specifier if name == wanted.name else ""
        late = time.monotonic() > end
        known = None if late else index.about(name, spec.exclude_newer, specifier)
        if known is not None:
            yield known


def _needs(target: str, spec: EnvironmentSpec, index: PackageIndex, end: float) -> Iterator[str]:
    """What the package under test needs, with or without extras."""
    asked = bool(target) and time.monotonic() < end
    known = index.about(target, spec.exclude_newer) if asked else None
    yield from known.needs if known else ()


def _named(wanted: Requirement, name: str, why: str, spec: EnvironmentSpec) -> Requirement:
    if name == wanted.name:
        return wanted.model_copy(update={"evidence": why})
    claimed = next((each.claimed for each in spec.claims if each.name == name), "")
    specifier = wanted.specifier or versions.specifier(claimed, "text") or ""
    update = {"name": name, "specifier": specifier, "evidence": why}
    return wanted.model_copy(update=update)


# The release of a distribution whose files have the lines that a traceback quotes; looked for
# near the installed one, in wheels read in pieces.

_MOST_FILE = 2 * 1024 * 1024


def release(
    index: PackageIndex,
    site: Path,
    name: str,
    installed: str,
    frames: Sequence[Frame],
    before: datetime | None,
) -> str:
    """The version that fits better than the installed one, "" when none near it does."""
    best, found = releases.count(frames, lambda path: _text(site / path)), ""
    if best == len(frames):
        return ""
    end = time.monotonic() + _SECONDS
    try:
        offered = {
            str(each.version): each
            for each in index.releases(name)
            if not (each.yanked or (before and each.uploaded and each.uploaded > before))
        }
        for version in releases.neighbours(installed, list(offered)):
            fitting = 0 if time.monotonic() > end else _fitting(index, offered[version], frames)
            if fitting > best:
                best, found = fitting, version
            if best == len(frames):
                break
    except IndexUnreachable:
        return ""
    return found


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
