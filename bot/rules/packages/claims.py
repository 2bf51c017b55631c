"""The versions that a report names, by package: which to install, which are bounds, and how the
report words them.
"""

from bot.models.bug import BugReport, VersionClaim
from bot.models.environment import Claimed, PinSource, Requirement
from bot.models.job import EnvironmentOptions
from bot.rules.packages import companions, evidence, repositories, versions

Claims = dict[str, list[VersionClaim]]


def gathered(report: BugReport) -> Claims:
    """All claims by distribution, the most believable first; releases that travel together lend
    each other theirs.
    """
    found: Claims = {}
    for claim in report.versions:
        found.setdefault(repositories.alias(claim.name), []).append(claim)
    for pair in companions.SHARED_VERSIONS:
        for name, twin in (pair, pair[::-1]):
            if twin in found and name not in found:
                found[name] = found[twin]
    return {name: versions.ranked(claims) for name, claims in found.items()}


def bounds(claims: Claims, wanted: dict[str, Requirement]) -> tuple[Requirement, ...]:
    """Versions that a program printed for packages nobody asked to install: bounds, should
    something draw them.
    """
    skip = {
        "python",
        *companions.TORCH_FAMILY,
        *companions.TENSORFLOW,
        *wanted,
        *map(claim_name, wanted),
    }
    found = []
    for name, ranked in claims.items():
        specifier = versions.specifier(ranked[0].version, ranked[0].source)
        if (
            name not in skip
            and specifier
            and ranked[0].source != "label"
            and not companions.foreign(name)
        ):
            reason = f"the report says {ranked[0].version} ({ranked[0].source})"
            found.append(
                Requirement(name=name, specifier=specifier, rung=PinSource.ISSUE, reason=reason)
            )
    return tuple(found)


def beside(claims: Claims, options: EnvironmentOptions) -> tuple[Claimed, ...]:
    """What the report itself names, for the comparison with what is built."""
    found = [
        Claimed(name=name, claimed=ranked[0].version, resolved="", note=_contradiction(ranked))
        for name, ranked in claims.items()
        if repositories.alias(ranked[0].name) == name
    ]
    if options.python:
        found = [each for each in found if each.name != "python"]
        found.append(Claimed(name="python", claimed=options.python, resolved="", note="--python"))
    return tuple(found)


def named(report: BugReport) -> tuple[str, ...]:
    """The distributions that a report names: installed by its author, or with a version."""
    installed = evidence.names(line for fence in report.fences for line in fence.installs)
    return tuple(
        dict.fromkeys((*installed, *evidence.names(each.name for each in report.versions)))
    )


def _contradiction(ranked: list[VersionClaim]) -> str:
    others = dict.fromkeys(claim.version for claim in ranked if claim.version != ranked[0].version)
    return f"the bug report also names {', '.join(others)}" if others else ""


def claim_name(name: str) -> str:
    """The name under which a distribution's claims are kept."""
    return "tensorflow" if name in companions.TENSORFLOW else name
