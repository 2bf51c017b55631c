"""What a proof starts from, what it ends with, and how its outcome goes into the report."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from bot.environment import imports, package_names, releases, versions
from bot.kernel.attempt import Reduced, Script
from bot.kernel.bug import Bisection, BugReport, Probe, Release, VersionClaim
from bot.kernel.environment import Environment, EnvironmentSpec, RepoSource
from bot.kernel.job import Interruption, Note, Proof
from bot.kernel.report import Claim, Control, ReportDraft, Reproduced

WEAK = {"none", "report-contrast"}
"""Control types that a release or commit that works replaces."""

NO_CONTROL = Control()


@dataclass(frozen=True, slots=True)
class Failing:
    """A confirmed failure: the script, where it fails, and the report so far, to which each proof
    adds its outcome.

    `contrasts` are the report's own working variants of the script. `resumed` is a proof that was
    interrupted before: it takes up its earlier runs.
    """

    script: Script
    spec: EnvironmentSpec
    environment: Environment
    report: ReportDraft
    contrasts: tuple[Script, ...] = ()
    resumed: Proof | None = None

    @property
    def control(self) -> Control:
        """The control that was found so far."""
        verdict = self.report.verdict
        return verdict.control if isinstance(verdict, Reproduced) else NO_CONTROL

    @property
    def doubt(self) -> str:
        """Why no difference between versions can confirm a bug with this program, or ""."""
        verdict = self.report.verdict
        return verdict.doubt if isinstance(verdict, Reproduced) else ""


@dataclass(frozen=True, slots=True)
class ProofOutcome:
    """What one proof found. Every field has a value that means "nothing".

    `control_spec` is where smaller programs must pass. `interruption` is why the proof ended
    before it was done, `defect` the traceback of an error of ours.
    """

    proof: Proof
    notes: tuple[Note, ...] = ()
    claims: tuple[Claim, ...] = ()
    control: Control = NO_CONTROL
    control_spec: EnvironmentSpec | None = None
    bisection: Bisection | None = None
    clone: RepoSource | None = None
    reduced: Reduced | None = None
    interruption: Interruption | None = None
    defect: str = ""


def add_outcome(report: ReportDraft, outcome: ProofOutcome) -> None:
    """Add the outcome of one proof to the report. What was known is only ever added to."""
    proof, reduced, search = outcome.proof, outcome.reduced, outcome.bisection
    cut_short = dict(report.cut_short)
    if proof == "control" and outcome.control.type not in WEAK:
        cut_short.pop("control", None)
    if outcome.interruption is not None:
        cut_short[proof] = outcome.interruption
    texts = {claim.text for claim in report.claims}
    notes = dict.fromkeys(note for note in outcome.notes if note not in report.notes)
    report.notes += tuple(notes)
    report.claims += tuple(claim for claim in outcome.claims if claim.text not in texts)
    report.cut_short = cut_short
    report.defects = report.defects | ({proof: outcome.defect} if outcome.defect else {})
    report.clone = outcome.clone or report.clone
    if outcome.control.type != "none":
        report.verdict = report.verdict.model_copy(update={"control": outcome.control})
    if outcome.control.type != "none" or reduced is not None:
        report.control_spec = outcome.control_spec
    if reduced is not None:
        report.reduced, report.script = reduced, reduced.script
    if search is not None:
        _add_bisection(report, search, cut_short=proof in cut_short)


def _add_bisection(report: ReportDraft, search: Bisection, *, cut_short: bool) -> None:
    """Put a new bisection among the others. Those that found a boundary come first, then newer
    ones.

    An earlier one of the same package goes, unless it alone found a boundary. One that was
    interrupted does not replace one that was not.
    """
    earlier = [
        bisection
        for bisection in (report.bisection, *report.other_bisections)
        if bisection is not None
    ]
    over = (search.package, search.over)
    if cut_short and any(not b.stopped and (b.package, b.over) == over for b in earlier):
        return
    rest = [bisection for bisection in earlier if not bisection.told_by(search)]
    first, *others = sorted((search, *rest), key=lambda bisection: not bisection.bounded)
    report.bisection, report.other_bisections = first, tuple(others)


# Compares what a report says of versions ("works in 1.4", "fails in 1.5") with what ran there.

_FAMILIES = (imports.TENSORFLOW, *imports.SHARED_VERSIONS)


def works(claim: VersionClaim) -> str:
    """The claim that something works in a version, in words."""
    return f"{claim.name} {claim.version} works"


def fails(claim: VersionClaim) -> str:
    """The claim that something fails in a version, in words."""
    return f"{claim.name} {claim.version} fails"


def installed_name(name: str, environment: Environment) -> str:
    """The installed distribution that a name as people write it means, twins included; "" when
    there is none.
    """
    plain = package_names.alias(name)
    pairs = (pair for pair in _FAMILIES if plain in pair)
    return next((alias for alias in (plain, *chain(*pairs)) if environment.version(alias)), "")


def same_package(name: str, package: str) -> bool:
    """Whether a name in a report means a package, its twins included."""
    plain = package_names.alias(name)
    return plain == package or any(plain in pair and package in pair for pair in _FAMILIES)


def release_of_claim(claim: VersionClaim, history: tuple[Release, ...]) -> Release | None:
    """The release that a claim means: the newest that fits it; without a history one of just
    that version.
    """
    specifier = versions.specifier(claim.version, claim.source)
    if not history:
        exactly = versions.exact_version(specifier or "")
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
    return tuple(release for release in history if _fits(release.version, specifier))


def _fits(version: str, specifier: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def claims(
    bug: BugReport, search: Bisection, claims_before: Iterable[Claim] = ()
) -> tuple[Claim, ...]:
    """The report's claims about versions of the bisected package that a probe can check, except
    those in `known`.
    """
    texts, rows = {claim.text for claim in claims_before}, dict[str, Claim]()
    claims = [*((works(claim), claim, True) for claim in bug.works_in)]
    claims += [(fails(claim), claim, False) for claim in bug.versions]
    for text, version_claim, good in claims:
        specifier = versions.specifier(version_claim.version, version_claim.source)
        probes = [probe for probe in search.probes if specifier and _fits(probe.at, specifier)]
        if (
            probes
            and same_package(version_claim.name, search.package)
            and text not in texts | rows.keys()
        ):
            evidence = "; ".join(map(describe_probe, probes[:4]))
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


def borne_out(
    bug: BugReport, claims_before: Iterable[Claim], environment: Environment
) -> tuple[str, ...]:
    """The installed packages of which the report names a version that works, where a run has
    shown that it does.
    """
    true = {claim.text for claim in claims_before if claim.holds}
    names = (
        installed_name(claim.name, environment) for claim in bug.works_in if works(claim) in true
    )
    return tuple(dict.fromkeys(name for name in names if name))


def describe_probe(probe: Probe) -> str:
    """One probe in words."""
    if probe.outcome in {"passes", "fails"}:
        return f"{probe.failures} of {probe.runs} runs failed with {probe.at}"
    return f"{probe.at}: {probe.outcome}" + (f" ({probe.reason})" if probe.reason else "")
