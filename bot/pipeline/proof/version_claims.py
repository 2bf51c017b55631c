"""Compares what a report says of versions ("works in 1.4", "fails in 1.5") with what ran there."""

from collections.abc import Iterable
from itertools import chain

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from bot.models.bisect import Bisection, Probe, Release
from bot.models.bug import BugReport, VersionClaim
from bot.models.environment import Environment
from bot.models.report import Claim
from bot.rules import releases
from bot.rules.packages import companions, repositories, versions

_FAMILIES = (companions.TENSORFLOW, *companions.SHARED_VERSIONS)


def works(claim: VersionClaim) -> str:
    """The claim that something works in a version, in words."""
    return f"{claim.name} {claim.version} works"


def fails(claim: VersionClaim) -> str:
    """The claim that something fails in a version, in words."""
    return f"{claim.name} {claim.version} fails"


def installed(name: str, built: Environment) -> str:
    """The installed distribution that a name as people write it means, twins included; "" when
    there is none.
    """
    plain = repositories.alias(name)
    pairs = (pair for pair in _FAMILIES if plain in pair)
    return next((each for each in (plain, *chain(*pairs)) if built.version(each)), "")


def same_package(claimed: str, package: str) -> bool:
    """Whether a name in a report means a package, its twins included."""
    plain = repositories.alias(claimed)
    return plain == package or any(plain in pair and package in pair for pair in _FAMILIES)


def meant(claim: VersionClaim, history: tuple[Release, ...]) -> Release | None:
    """The release that a claim means: the newest that fits it; without a history one of just
    that version.
    """
    specifier = versions.specifier(claim.version, claim.source)
    if not history:
        exactly = versions.pinned(specifier or "")
        return Release(version=exactly) if exactly else None
    fits = fitting(claim, history)
    return releases.newest(fits) or (fits[-1] if fits else None)


def fitting(claim: VersionClaim, history: tuple[Release, ...]) -> tuple[Release, ...]:
    """The releases that a claim of one version covers, oldest first: any patch of it where the
    claim names none; a range names no version.
    """
    specifier = versions.specifier(claim.version, claim.source) or ""
    if not specifier.startswith("=="):
        return ()
    return tuple(each for each in history if _fits(each.version, specifier))


def _fits(version: str, specifier: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def claims(bug: BugReport, found: Bisection, known: Iterable[Claim] = ()) -> tuple[Claim, ...]:
    """The report's claims about versions of the bisected package that a probe can check, except
    those in `known`.
    """
    told, rows = {claim.text for claim in known}, dict[str, Claim]()
    claims = [*((works(each), each, True) for each in bug.works_in)]
    claims += [(fails(each), each, False) for each in bug.versions]
    for text, said, good in claims:
        specifier = versions.specifier(said.version, said.source)
        probes = [probe for probe in found.probes if specifier and _fits(probe.at, specifier)]
        if probes and same_package(said.name, found.package) and text not in told | rows.keys():
            evidence = "; ".join(map(shown, probes[:4]))
            rows[text] = Claim(text=text, holds=_holds(probes, good=good), evidence=evidence)
    return tuple(rows.values())


def _holds(probes: list[Probe], *, good: bool) -> bool | None:
    """A version that works does so in every release of it that was probed; one that fails does
    so in any.
    """
    outcomes = {probe.outcome for probe in probes} & {"passes", "fails"}
    if not outcomes:
        return None
    return outcomes == {"passes"} if good else "fails" in outcomes


def borne_out(bug: BugReport, known: Iterable[Claim], built: Environment) -> tuple[str, ...]:
    """The installed packages of which the report names a version that works, where a run has
    shown that it does.
    """
    true = {claim.text for claim in known if claim.holds}
    names = (installed(each.name, built) for each in bug.works_in if works(each) in true)
    return tuple(dict.fromkeys(name for name in names if name))


def shown(probe: Probe) -> str:
    """One probe in words."""
    if probe.outcome in {"passes", "fails"}:
        return f"{probe.failures} of {probe.runs} runs failed with {probe.at}"
    return f"{probe.at}: {probe.outcome}" + (f" ({probe.reason})" if probe.reason else "")
