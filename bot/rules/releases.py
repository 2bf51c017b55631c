"""The releases of a package as one line, by the day of their upload, without pre-releases,
withdrawn releases and patches of older lines.
"""

from collections.abc import Collection
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from bot.models.bisect import Release, Skipped

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


def line(history: tuple[Release, ...], bad: str, named: Collection[str] = ()) -> ReleaseLine:
    """The line on which a version lies. Pre-releases and withdrawn releases are left out unless
    they are `named`, and so are later patches of earlier lines, which would make the order of
    days another than that of the code. Of a package that has compiled wheels so are releases
    without any for Linux: they would have to be compiled, which rarely works of old ones.

    A version that itself is such a patch is seen in the order of versions. One that the index does
    not have is put in place.
    """
    wanted = {_key(version) for version in (bad, *named)}
    if not any(same(release.version, bad) for release in history):
        history = (*history, Release(version=bad))
    compiled = any(release.wheels == "linux" for release in history)
    rows = [(_why_not(release, compiled), release) for release in history]
    rows = [("" if _key(release.version) in wanted else why, release) for why, release in rows]
    ordered, beside = _by_day([release for why, release in rows if not why], wanted)
    late = [("a later patch of an earlier line", release) for release in beside]
    left_out = tuple(Skipped(at=release.version, why=why) for why, release in [*rows, *late] if why)
    place = next(at for at, release in enumerate(ordered) if same(release.version, bad))
    return ReleaseLine(tuple(ordered), place, left_out)


def _why_not(release: Release, compiled: bool) -> str:
    why = "yanked" if release.yanked else "a pre-release" if release.prerelease else ""
    return why or ("no wheel for Linux" if compiled and release.wheels == "none" else "")


def _by_day(kept: list[Release], wanted: set[Version | str]) -> tuple[list[Release], list[Release]]:
    by_version = sorted(kept, key=lambda release: _order(release.version))
    dated = [(release.uploaded_at, release) for release in by_version if release.uploaded_at]
    if len(dated) < len(kept):
        return by_version, []
    trunk, beside = list[Release](), list[Release]()
    for _, release in sorted(dated, key=lambda row: row[0].timestamp()):
        newer = not trunk or _order(release.version) > _order(trunk[-1].version)
        (trunk if newer else beside).append(release)
    if any(_key(release.version) in wanted for release in beside):
        return by_version, []
    return trunk, beside


def newest(history: tuple[Release, ...]) -> Release | None:
    """The newest release that is neither withdrawn nor a pre-release: the highest version."""
    whole = [release for release in history if not release.yanked and not release.prerelease]
    return max(whole, key=lambda release: _order(release.version), default=None)


def before(history: tuple[Release, ...], version: str) -> Release | None:
    """The release that comes right before a version on its line."""
    found = line(history, version)
    return found.releases[found.bad - 1] if found.bad else None


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
