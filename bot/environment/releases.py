"""The releases of a package as one line, and which can stand for the one that a report means."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.environment import imports
from bot.environment.imports import distribution
from bot.kernel.bug import BugReport, Frame, Release, Skipped
from bot.kernel.environment import Requirement

# Which releases can stand for the one that a report means: near it in time, and no pre-release.

FAR: Final = timedelta(days=2 * 365)
MOST: Final = 3
"""How many neighbours are tried for one package."""


def release(history: Sequence[Release], exact: str, day: datetime | None) -> list[str]:
    """The releases with wheels at most two years from the exact one, the nearest first; of one that
    the index does not have, those from before the day before any later one, which may have the fix.
    Where none is exact, the first is the newest of the day: the highest version, as a patch of an
    older line may have come after it.
    """
    own = next((release.uploaded_at for release in history if release.version == exact), None)
    about = own or day
    dated = [
        (
            own is None and release.uploaded_at > about,
            abs(release.uploaded_at - about),
            release.version,
        )
        for release in history
        if about
        and release.uploaded_at
        and release.wheels not in {"none", None}
        and _final(release)
    ]
    near = [(is_later, version) for is_later, far, version in sorted(dated) if far <= FAR]
    if exact:
        return [version for _, version in near]
    of_the_day = (version for is_later, version in near if not is_later)
    later = (version for is_later, version in near if is_later)
    return [*sorted(of_the_day, key=Version, reverse=True), *later]


def beside(history: Sequence[Release], usable: Sequence[str], span: str) -> str:
    """The usable release that is nearest to those of a specifier, the later of two; "" when there
    is none.
    """
    releases = sorted((release.version for release in history if _final(release)), key=Version)
    places = [
        place for place, version in enumerate(releases) if span and version in SpecifierSet(span)
    ]
    far = {
        version: (min(abs(place - other) for other in places), -place)
        for place, version in enumerate(releases)
        if places and place not in places and version in usable
    }
    return min(far, key=lambda version: far[version], default="")


def outlier(name: str, version: str, history: Sequence[Release], before: datetime | None) -> str:
    """Why the release that a resolver took for any version is not one that a report can mean: a
    pre-release, or one years older than the newest of the day; "" when it can be.
    """
    then = [release for release in history if _final(release) and _by(release, before)]
    newest = max(then, key=lambda release: Version(release.version), default=None)
    if newest is None or not version:
        return ""
    if Version(version).is_prerelease:
        return f"only {name}=={version} fits, a pre-release"
    day = next((release.uploaded_at for release in history if release.version == version), None)
    old = day and newest.uploaded_at and newest.uploaded_at - day > FAR
    return (
        f"only {name}=={version} fits, a release years older than {newest.version}" if old else ""
    )


def _final(release: Release) -> bool:
    return not (release.yanked or release.prerelease)


def _by(release: Release, before: datetime | None) -> bool:
    return before is None or (release.uploaded_at is not None and release.uploaded_at <= before)


# The releases of a package as one line, by the day of their upload, without pre-releases,
# withdrawn releases and patches of older lines.

_LOGS = (
    "changelog",
    "changes",
    "releasenotes",
    "history",
    "whatsnew",
    "news",
    "release",
    "releases",
)
_HOMES = ("repository", "source", "sourcecode", "homepage", "home", "github", "code")


@dataclass(frozen=True, slots=True)
class ReleaseLine:
    """Releases, oldest first, the place of the one that is known to fail, and what was left out."""

    releases: tuple[Release, ...]
    bad: int
    left_out: tuple[Skipped, ...] = ()


def line(
    history: tuple[Release, ...], bad: str, extra_versions: Collection[str] = ()
) -> ReleaseLine:
    """The line on which a version lies. Pre-releases and withdrawn releases are left out unless
    they are `named`, and so are later patches of earlier lines, which would make the order of
    days another than that of the code. Of a package that has compiled wheels so are releases
    without any for Linux: they would have to be compiled, which rarely works of old ones.

    A version that itself is such a patch is seen in the order of versions. One that the index does
    not have is put in place.
    """
    required = {_key(version) for version in (bad, *extra_versions)}
    if not any(same(release.version, bad) for release in history):
        history = (*history, Release(version=bad))
    has_wheels = any(release.wheels == "linux" for release in history)
    rows = [(_why_not(release, has_wheels), release) for release in history]
    rows = [("" if _key(release.version) in required else why, release) for why, release in rows]
    ordered, beside = _by_day([release for why, release in rows if not why], required)
    late = [("a later patch of an earlier line", release) for release in beside]
    left_out = tuple(Skipped(at=release.version, why=why) for why, release in [*rows, *late] if why)
    place = next(at for at, release in enumerate(ordered) if same(release.version, bad))
    return ReleaseLine(tuple(ordered), place, left_out)


def _why_not(release: Release, has_wheels: bool) -> str:
    why = "yanked" if release.yanked else "a pre-release" if release.prerelease else ""
    return why or ("no wheel for Linux" if has_wheels and release.wheels == "none" else "")


def _by_day(
    releases: list[Release], required: set[Version | str]
) -> tuple[list[Release], list[Release]]:
    by_version = sorted(releases, key=lambda release: _order(release.version))
    dated = [(release.uploaded_at, release) for release in by_version if release.uploaded_at]
    if len(dated) < len(releases):
        return by_version, []
    trunk, beside = list[Release](), list[Release]()
    for _, release in sorted(dated, key=lambda row: row[0].timestamp()):
        newer = not trunk or _order(release.version) > _order(trunk[-1].version)
        (trunk if newer else beside).append(release)
    if any(_key(release.version) in required for release in beside):
        return by_version, []
    return trunk, beside


def newest(history: tuple[Release, ...]) -> Release | None:
    """The newest release that is neither withdrawn nor a pre-release: the highest version."""
    whole = [release for release in history if not release.yanked and not release.prerelease]
    return max(whole, key=lambda release: _order(release.version), default=None)


def before(history: tuple[Release, ...], version: str) -> Release | None:
    """The release that comes right before a version on its line."""
    release_line = line(history, version)
    return release_line.releases[release_line.bad - 1] if release_line.bad else None


def older(version: str, other: str) -> bool:
    """Whether one version comes before another."""
    return _order(version) < _order(other)


def same(version: str, other: str) -> bool:
    """Whether two texts name one version, local parts aside ("2.1.0" and "2.1+cpu")."""
    return _key(version) == _key(other)


def changelog(links: dict[str, str]) -> str:
    """The link to the changes among the links of a project, failing that to its home; "" when
    there is neither.
    """
    plain = {
        "".join(filter(str.isalpha, name.lower())): url
        for name, url in links.items()
        if url.startswith("https://")
    }
    return next((plain[name] for name in (*_LOGS, *_HOMES) if name in plain), "")


def _key(version: str) -> Version | str:
    try:
        return Version(Version(version).public)
    except InvalidVersion:
        return version


def _order(version: str) -> Version:
    key = _key(version)
    return key if isinstance(key, Version) else Version("0")


# What the resolver's words say: which name, version, Python or date stood in the way. Source:
# uv's error messages.

_UNKNOWN = re.compile(r"\b([\w.-]+) was not found in the package registry")
_FILTERED_RELEASE = re.compile(r"`([\w.-]+)` was filtered by `exclude-newer`")
_NO_WHEEL = re.compile(
    r"Wheels are required for `([\w.-]+)`|\b([\w.-]+)(?:\[[\w,.-]+\])?(?:[=<>!]=?\S+)? ha(?:s|ve) "
    r"no usable wheels"
)
_HAVE_NONE = r"ha(?:s|ve) no (?:usable wheels|wheels with a matching)"
_FOREIGN = re.compile(r"\b([\w.-]+)(?:[=<>!]=?\S+)? ha(?:s|ve) no wheels with a matching")
_TAGS = re.compile(r"found wheels for `([\w.-]+)` .*?tags?: (.+)")
_OUTLYING = re.compile(r"only ([\w.-]+)==\S+ fits, an? (?:pre-release|release years older)")
_TAG = re.compile(r"`(?:cp|py)3(\d+)`")
_PYTHON = re.compile(
    r"[Pp]ython(?: version)? ?\(?\d[\d.]*\)? does not satisfy Python([<>=!~][^ ,]+(?:,[<>=!~][^ "
    r"]+)*)"
)


def unknown(text: str) -> list[str]:
    """Names that no index knows."""
    return list(dict.fromkeys(_UNKNOWN.findall(text)))


def hidden_by_date(text: str) -> list[str]:
    """Names whose fitting releases are newer than the cut-off."""
    return list(dict.fromkeys(_FILTERED_RELEASE.findall(text)))


def without_wheel(text: str) -> list[str]:
    """Names that come only as source, or with no wheel for this Python."""
    return list(dict.fromkeys(first or second for first, second in _NO_WHEEL.findall(text)))


def for_other_pythons(text: str) -> list[str]:
    """Names of which only wheels for other Pythons or platforms are left."""
    return list(dict.fromkeys(_FOREIGN.findall(text)))


def span(text: str, name: str) -> str:
    """The versions of a distribution that have no wheel, as a specifier; "" for all of them."""
    match = re.search(rf"(?<![\w.-]){re.escape(name)}((?:,?[<>=!~]=?[^\s,]+)+) {_HAVE_NONE}", text)
    return match[1] if match else ""


def demand(text: str, name: str) -> str:
    """What the resolver says that others require of a distribution, as a specifier; "" where it
    says nothing that can be read.
    """
    pattern = rf"depends? on {re.escape(name)}((?:,?[<>=!~]=?[^\s,]+)+)"
    specifier = ",".join(dict.fromkeys(re.findall(pattern, text)))
    try:
        return str(SpecifierSet(specifier))
    except InvalidSpecifier:
        return ""


def outlying(text: str) -> list[str]:
    """Names of which only a release that the report cannot mean was left (`nearby.outlier`)."""
    return list(dict.fromkeys(_OUTLYING.findall(text)))


def pythons_with_wheels(text: str) -> set[str]:
    """Minor versions of Python for which the missing wheels exist, as far as the resolver says."""
    sets = [{f"3.{number}" for number in _TAG.findall(tags)} for _, tags in _TAGS.findall(text)]
    return set.intersection(*sets) if sets else set()


def python_bounds(text: str) -> list[str]:
    """Bounds on Python that the one in use does not meet."""
    return [bound.rstrip(".,)") for bound in _PYTHON.findall(text)]


def is_mentioned(text: str, name: str) -> bool:
    """Whether the resolver speaks of a distribution."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def first_cause(text: str) -> str:
    """The resolver's reason in one line."""
    lines = [
        " ".join(line.split())
        for line in text.splitlines()
        if line.strip() and not line.startswith(("hint", "error: No sol"))
    ]
    joined_text = " ".join(lines).removeprefix("cause: ")
    return re.split(r", we can conclude|\. And because", joined_text)[0].removeprefix("Because ")[
        :300
    ]


# Whether the lines that a reported traceback quotes are those of a release: (file, line, code) of
# its frames against the files.

_MOST = 40


def quoted_frames(report: BugReport, target: Requirement) -> tuple[Frame, ...]:
    """The frames of the report's tracebacks that quote a line of a distribution's own files."""
    traces = [traceback for trace in report.tracebacks for traceback in (trace, *trace.chained)]
    frames = (frame for trace in traces for frame in trace.frames)
    matching_frames = (frame for frame in frames if _comparable(frame, target))
    return tuple(dict.fromkeys(matching_frames))[:_MOST]


def _comparable(frame: Frame, target: Requirement) -> bool:
    path = PurePosixPath(frame.module_path)
    package = frame.package
    is_same_package = imports.installed_as(distribution(package)) == target.name
    inside = package and (is_same_package or package in target.modules[:1])
    plain = not path.is_absolute() and ".." not in path.parts and path.suffix == ".py"
    return bool(inside and plain and frame.line and frame.line > 0 and frame.code.strip())


def count(frames: Iterable[Frame], text: Callable[[str], str]) -> int:
    """How many frames quote the line that stands at their place; `text` is that of a file."""
    texts: dict[str, Sequence[str]] = {}
    fitting = 0
    for frame in frames:
        lines = texts.setdefault(frame.module_path, text(frame.module_path).splitlines())
        at = (frame.line or 0) - 1
        fitting += at < len(lines) and lines[at].strip() == frame.code.strip()
    return fitting


def neighbours(version: str, versions: Sequence[str], most: int = 8) -> list[str]:
    """The releases (oldest first) to look at in turn: the nearest of both sides, older ones first,
    as a report is never older than what it was made with.
    """
    if version not in versions:
        return []
    at = versions.index(version)
    older, newer = versions[:at][::-1], versions[at + 1 :]
    return [*older[: most - 2], *newer[:2]][:most]
