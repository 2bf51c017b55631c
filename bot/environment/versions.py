"""What a version as written means, which of several statements to believe, and which Python
a report can come from.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.kernel.bug import BugReport, FenceKind, VersionClaim

# What a version as written means: a specifier for the resolver, and which of several statements
# to believe.

STRENGTH: Final = ("option", "dump", "requirements", "traceback", "text", "label")
_LOOSE: Final = frozenset({"text", "label"})
_WILD = re.compile(r"^v?(\d+(?:\.\d+)*)\.[xX*]+$")
_PYTHON = re.compile(r"\b3\.(\d{1,2})\b")
_NUMBER = re.compile(r"\d+(?:\.\d+)*(?:\.?(?:post|rc|a|b|dev)\d*)?(?:\+[\w.]+)?")


def fits(installed: str, claimed: str) -> bool:
    """Whether an installed version is the one that a report names."""
    text = specifier(claimed, "text")
    return bool(installed and text) and SpecifierSet(text or "").contains(
        installed.partition("+")[0], prereleases=True
    )


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
        match = _NUMBER.search(text)
        if match is None:
            return "" if re.search(r"[A-Za-z]", text) else None
        return specifier(match[0], source) if match[0] != text else None


def _exact(version: Version, source: str) -> str:
    if version.is_devrelease:
        return ""
    if version.is_prerelease and version.local:
        return f"=={version.major}.{version.minor}.*"
    final = not version.is_prerelease and not version.is_postrelease
    if source in _LOOSE and len(version.release) < 3 and final:
        return f"=={'.'.join(map(str, version.release))}.*"
    return f"=={version.public}"


def python_minor(version: str) -> str:
    """The minor version of Python that a text names ("3.12.2" → "3.12"), or ""."""
    match = _PYTHON.search(version)
    return f"3.{int(match[1])}" if match else ""


def exact_version(text: str) -> str:
    """The version that a specifier pins exactly, or ""."""
    match = re.fullmatch(r"===?([^*,]+)", text.strip())
    return match[1].strip() if match else ""


def rank_claims(claims: Iterable[VersionClaim]) -> list[VersionClaim]:
    """Statements about one package, the most believable first: what a program printed before
    what a person typed.
    """
    return sorted(claims, key=lambda claim: STRENGTH.index(claim.source))


def neighbours(version: str, versions_offered: Iterable[str]) -> list[str]:
    """The releases nearest to one that is gone, best first: same minor by patch, then same
    major, then the rest by rank.
    """
    target = Version(version)
    versions = [
        version for version in map(_version, versions_offered) if version and version != target
    ]
    stable = sorted([version for version in versions if not version.is_prerelease] or versions)
    place = sum(version < target for version in stable)

    def distance(item: tuple[int, Version]) -> tuple[bool, bool, int, bool]:
        rank, version = item
        other_major, other_minor = version.major != target.major, version.minor != target.minor
        away = place - rank if rank < place else rank - place + 1
        if not (other_major or other_minor):
            away = abs(version.micro - target.micro)
        return other_major, other_minor and not other_major, away, version > target

    return [str(version) for _, version in sorted(enumerate(stable), key=distance)]


def final(version: str) -> str:
    """The release that a pre-release leads to ("2.0.0" of "2.0.0rc2"), "" for any other."""
    parsed = _version(version)
    return parsed.base_version if parsed is not None and parsed.pre and not parsed.dev else ""


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


# Which versions of Python a report can come from, by how the interpreter words its errors.
#
# Source: "What's New in Python" 3.10 to 3.14, and the messages in
# `bot.issues.signature.wording`.

_FIRST, _LAST = 6, 99
# Methods that are nearly always written in Python: what is generated has no class in its name.
_METHOD = (
    r"(?:__init__|__call__)\(\) "
    r"(?:got an unexpected|got multiple|missing \d|takes (?:from )?\d[\d to]* positional argument)"
)
_SINCE = (
    (r"[.?!)'\"] Did you mean: '[^']+'\?", 10),
    (rf"(?:^|\s)(?:\w+\.)+{_METHOD}", 10),
    (r'(?m)^ *File "[^"\n]+", line \d+, in [^\n]+\n +\S[^\n]*\n +[~^]*\^[~^]+ *$', 11),
    (r"cannot access (?:local|free) variable '\w+' where it is not associated", 11),
    (r"property '\w+' of '[^']+' object has no setter", 11),
    (r"without an implementation for abstract method", 12),
    (r"Did you forget to import '", 12),
    (r"too many values to unpack \(expected \d+, got \d+\)", 14),
    (r"cannot use '[^']+' as an? [\w ]+ \(unhashable type", 14),
)
_UNTIL = (
    (rf"(?:^|[\s:]){_METHOD}", 9),
    (r"local variable '\w+' referenced before assignment", 10),
    (r"AttributeError: can't set attribute", 10),
    (r"Can't instantiate abstract class \w+ with abstract method", 11),
)


@dataclass(frozen=True, slots=True)
class Range:
    """Minor versions of Python 3, both ends included."""

    oldest: int = _FIRST
    newest: int = _LAST

    def nearest(self, minor: str) -> str:
        """The minor version in the range that is nearest to one ("3.11"); that one where the ends
        contradict each other.
        """
        number = int(minor.partition(".")[2])
        inside = min(max(number, self.oldest), self.newest)
        return f"3.{inside}" if self.oldest <= self.newest else minor


def possible(report: BugReport) -> Range:
    """The versions whose words the report's errors have."""
    kinds = {FenceKind.TRACEBACK, FenceKind.OUTPUT, FenceKind.LOG}
    traces = [traceback for trace in report.tracebacks for traceback in (trace, *trace.chained)]
    texts = [fence.raw for fence in report.fences if fence.kind in kinds]
    texts += [f"{traceback.exception}: {traceback.message}" for traceback in traces]
    text = "\n".join(texts)
    since = [minor for pattern, minor in _SINCE if re.search(pattern, text)]
    until = [minor for pattern, minor in _UNTIL if re.search(pattern, text)]
    return Range(max(since, default=_FIRST), min(until, default=_LAST))


# Which Python people used when: the release of each minor version (source: PEPs 494 to 745).

RELEASE_DAYS: Final[dict[str, datetime]] = {
    "3.6": datetime(2016, 12, 23, tzinfo=UTC),
    "3.7": datetime(2018, 6, 27, tzinfo=UTC),
    "3.8": datetime(2019, 10, 14, tzinfo=UTC),
    "3.9": datetime(2020, 10, 5, tzinfo=UTC),
    "3.10": datetime(2021, 10, 4, tzinfo=UTC),
    "3.11": datetime(2022, 10, 24, tzinfo=UTC),
    "3.12": datetime(2023, 10, 2, tzinfo=UTC),
    "3.13": datetime(2024, 10, 7, tzinfo=UTC),
    "3.14": datetime(2025, 10, 7, tzinfo=UTC),
}
SUPPORT_TIME: Final = timedelta(days=5 * 365)
SETTLING_TIME: Final = timedelta(days=365)


def usual(at: datetime | None, host: str) -> str:
    """The Python when none is named: the host's own where it was a year old and still supported,
    else the newest settled.
    """
    if at is None or (
        host in RELEASE_DAYS
        and RELEASE_DAYS[host] + SETTLING_TIME <= at <= RELEASE_DAYS[host] + SUPPORT_TIME
    ):
        return host
    settled_minors = [minor for minor, day in RELEASE_DAYS.items() if day + SETTLING_TIME <= at]
    return settled_minors[-1] if settled_minors else next(iter(RELEASE_DAYS))


def order(minor: str) -> tuple[int, int]:
    """A minor version as numbers, for sorting."""
    major, _, rest = minor.partition(".")
    return int(major), int(rest or 0)


def by_distance(version: str, present: tuple[str, ...]) -> tuple[str, ...]:
    """The minors that are present, nearest to the wanted one first; of two equally near the
    newer.
    """
    _, target = order(version)
    return tuple(
        sorted(present, key=lambda minor: (abs(order(minor)[1] - target), -order(minor)[1]))
    )
