"""What a version as written means: a specifier for the resolver, and which of several statements
to believe.
"""

import re
from collections.abc import Iterable
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.models.bug import VersionClaim

STRENGTH: Final = ("option", "dump", "requirements", "traceback", "text", "label")
_LOOSE: Final = frozenset({"text", "label"})
_WILD = re.compile(r"^v?(\d+(?:\.\d+)*)\.[xX*]+$")
_PYTHON = re.compile(r"\b3\.(\d{1,2})\b")
_NUMBER = re.compile(r"\d+(?:\.\d+)*(?:\.?(?:post|rc|a|b|dev)\d*)?(?:\+[\w.]+)?")


def specifier(version: str, source: str) -> str | None:
    """The specifier for a version as written; "" for an unreleased or unnumbered one ("master"),
    None when it names no version.

    "2.4.x" and, in prose, "2.4" mean any patch of it; a local part ("+cu126") is dropped; a
    development version stands for the newest release of before the report.
    """
    text = version.strip().strip("`'\"()").removeprefix("==").strip()
    if wild := _WILD.match(text):
        return f"=={wild[1]}.*"
    try:
        if re.search(r"[<>~!]", text):
            return str(SpecifierSet(text.replace(" ", "")))
        return _exact(Version(text), source)
    except InvalidSpecifier:
        return None
    except InvalidVersion:
        found = _NUMBER.search(text)
        if found is None:
            return "" if re.search(r"[A-Za-z]", text) else None
        return specifier(found[0], source) if found[0] != text else None


def _exact(parsed: Version, source: str) -> str:
    if parsed.is_devrelease:
        return ""
    if parsed.is_prerelease and parsed.local:
        return f"=={parsed.major}.{parsed.minor}.*"
    final = not parsed.is_prerelease and not parsed.is_postrelease
    if source in _LOOSE and len(parsed.release) < 3 and final:
        return f"=={'.'.join(map(str, parsed.release))}.*"
    return f"=={parsed.public}"


def python_minor(version: str) -> str:
    """The minor version of Python that a text names ("3.12.2" → "3.12"), or ""."""
    found = _PYTHON.search(version)
    return f"3.{int(found[1])}" if found else ""


def pinned(text: str) -> str:
    """The version that a specifier pins exactly, or ""."""
    found = re.fullmatch(r"===?([^*,]+)", text.strip())
    return found[1].strip() if found else ""


def ranked(claims: Iterable[VersionClaim]) -> list[VersionClaim]:
    """Statements about one package, the most believable first: what a program printed before
    what a person typed.
    """
    return sorted(claims, key=lambda claim: STRENGTH.index(claim.source))


def neighbours(wanted: str, offered: Iterable[str]) -> list[str]:
    """The releases nearest to one that is gone, best first: same minor by patch, then same
    major, then the rest by rank.
    """
    target = Version(wanted)
    known = [version for version in map(_version, offered) if version and version != target]
    stable = sorted([version for version in known if not version.is_prerelease] or known)
    place = sum(version < target for version in stable)

    def distance(item: tuple[int, Version]) -> tuple[bool, bool, int, bool]:
        rank, version = item
        other_major, other_minor = version.major != target.major, version.minor != target.minor
        away = place - rank if rank < place else rank - place + 1
        if not (other_major or other_minor):
            away = abs(version.micro - target.micro)
        return other_major, other_minor, away, version > target

    return [str(version) for _, version in sorted(enumerate(stable), key=distance)]


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
