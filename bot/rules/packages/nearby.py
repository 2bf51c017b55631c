"""Which releases can stand for the one that a report means: near it in time, and no pre-release."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from bot.models.bisect import Release

FAR: Final = timedelta(days=2 * 365)
MOST: Final = 3
"""How many neighbours are tried for one package."""


def release(history: Sequence[Release], exact: str, day: datetime | None) -> list[str]:
    """The releases with wheels at most two years from the exact one, else from the day; the nearest
    first.
    """
    own = next((each.uploaded_at for each in history if each.version == exact), None)
    about = own or day
    dated = [
        (abs(each.uploaded_at - about), each.version)
        for each in history
        if about and each.uploaded_at and each.wheels not in {"none", None} and _final(each)
    ]
    return [version for far, version in sorted(dated) if far <= FAR]


def beside(history: Sequence[Release], usable: Sequence[str], span: str) -> str:
    """The usable release that is nearest to those of a specifier, the later of two; "" when there
    is none.
    """
    known = sorted((each.version for each in history if _final(each)), key=Version)
    meant = [place for place, version in enumerate(known) if span and version in SpecifierSet(span)]
    far = {
        version: (min(abs(place - each) for each in meant), -place)
        for place, version in enumerate(known)
        if meant and place not in meant and version in usable
    }
    return min(far, key=lambda version: far[version], default="")


def outlier(name: str, taken: str, history: Sequence[Release], before: datetime | None) -> str:
    """Why the release that a resolver took for any version is not one that a report can mean: a
    pre-release, or one years older than the newest of the day; "" when it can be.
    """
    then = [each for each in history if _final(each) and _by(each, before)]
    newest = max(then, key=lambda each: Version(each.version), default=None)
    if newest is None or not taken:
        return ""
    if Version(taken).is_prerelease:
        return f"only {name}=={taken} fits, a pre-release"
    day = next((each.uploaded_at for each in history if each.version == taken), None)
    old = day and newest.uploaded_at and newest.uploaded_at - day > FAR
    return f"only {name}=={taken} fits, a release years older than {newest.version}" if old else ""


def _final(release: Release) -> bool:
    return not (release.yanked or release.prerelease)


def _by(release: Release, before: datetime | None) -> bool:
    return before is None or (release.uploaded_at is not None and release.uploaded_at <= before)
