"""A confirmed failure → its control: the same program where it should pass, run in turn with
the failing one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from pathlib import PurePath

from bot.environment import imports, releases, specify
from bot.issues.proof import outcome, outcome as proof_outcome
from bot.issues.proof.outcome import Failing, ProofOutcome
from bot.issues.runner import Runner
from bot.kernel import statistics
from bot.kernel.attempt import Judgement, Match, Script
from bot.kernel.bug import Bisection, BugReport, Release, VersionClaim
from bot.kernel.environment import Environment, EnvironmentSpec, PinSource, RepoSource, Requirement
from bot.kernel.errors import BuildError, Stopped, TransientError, UserError
from bot.kernel.job import Interruption
from bot.kernel.report import Claim, Control, ControlType, Effect

# An environment → the same one with another version of one package; the other packages change as
# little as possible.

_SITE_PACKAGES = re.compile(r"(?:/[^\s/()'\"]+)+/(?:site|dist)-packages/")
_SETTLING = timedelta(days=7)
_MOST_MOVED = 6


def at_release(
    spec: EnvironmentSpec, environment: Environment, package: str, release: Release
) -> tuple[EnvironmentSpec, ...]:
    """The ways to install a release: with the very packages of `built`, then those of its day."""
    requirement = _requirement(spec, package, release.version)
    if not any(
        requirement.name == package for requirement in spec.requirements
    ):  # drawn by another one so far
        spec = spec.model_copy(update={"requirements": (*spec.requirements, requirement)})
    near = specify.at_version(spec, requirement)
    others = (
        constraint for constraint in near.constraints if not environment.version(constraint.name)
    )
    fixed = near.model_copy(update={"constraints": (*_as_built(near, environment), *others)})
    if release.uploaded_at is None:
        return (fixed,)
    day = release.uploaded_at + _SETTLING if spec.exclude_newer is not None else None
    loose = tuple(_loose(requirement, package) for requirement in near.requirements)
    free = near.model_copy(update={"exclude_newer": day, "requirements": loose, "constraints": ()})
    return fixed, free


def _loose(requirement: Requirement, package: str) -> Requirement:
    """A requirement at whatever version fits, for what the report only happens to have beside
    the package; what was asked for by option stays, as does what moves along.
    """
    if (
        requirement.name == package
        or requirement.rung is PinSource.OPTION
        or requirement.name in imports.TORCH_FAMILY
    ):
        return requirement
    return requirement.model_copy(
        update={
            "specifier": "",
            "rung": PinSource.DEPENDENCY,
            "reason": "released by the date of the compared version",
        }
    )


def _requirement(spec: EnvironmentSpec, package: str, version: str) -> Requirement:
    old = next(
        (requirement for requirement in spec.requirements if requirement.name == package), None
    )
    extras = old.extras if old is not None else ()
    return Requirement(
        name=package,
        specifier=f"=={version}",
        extras=extras,
        rung=PinSource.OPTION,
        reason="compared version",
    )


def _as_built(spec: EnvironmentSpec, environment: Environment) -> tuple[Requirement, ...]:
    """What was built, as bounds on what the new environment draws; torch comes as it can be had."""
    names = {requirement.name for requirement in spec.requirements if requirement.specifier}
    moving = {
        requirement.name
        for requirement in spec.requirements
        if requirement.rung is PinSource.OPTION
    }
    together = (pair for pair in imports.SHARED_VERSIONS if moving & set(pair))
    free = names.union(imports.TORCH_FAMILY, imports.TENSORFLOW, *together, {"setuptools"})
    return tuple(
        Requirement(
            name=package.name,
            specifier=f"=={package.version}",
            rung=PinSource.DEPENDENCY,
            reason="same version as in the failing environment",
        )
        for package in environment.packages
        if package.name not in free and "+" not in package.version
    )


def at_commit(spec: EnvironmentSpec, source: RepoSource, commit: str) -> EnvironmentSpec:
    """The environment with a repository at a commit."""
    repo = source.model_copy(update={"commit": commit, "ref": ""})
    return spec.model_copy(update={"repo": repo})


@dataclass(frozen=True, slots=True)
class ControlEnvironment:
    """An environment that could be built, its spec, and the place of that among the specs."""

    index: int
    spec: EnvironmentSpec
    environment: Environment


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a version cannot be had, as a phrase. `instead` is the version that would be installed
    in its place, where one would.
    """

    why: str
    instead: str = ""


def build(
    runner: Runner, specs: tuple[EnvironmentSpec, ...], package: str, version: str, first: int = 0
) -> ControlEnvironment | Unavailable:
    """The first spec, from `first` on, that can be built and has the version, if one is asked
    for; else why there is none.
    """
    unavailable = Unavailable("it could not be installed")
    for index, spec in list(enumerate(specs))[first:]:
        try:
            environment = runner.build(spec)
        except BuildError as error:
            unavailable = Unavailable(str(error))
            continue
        installed_version = environment.version(package)
        if not package or not version or releases.same(installed_version, version):
            return ControlEnvironment(index, spec, environment)
        unavailable = Unavailable(
            f"{installed_version or 'nothing'} would be installed instead", installed_version
        )
        if package in imports.TORCH_FAMILY:
            # Which torch builds exist depends on the machine and its index: no other spec has more.
            break
    return unavailable


def words(judgement: Judgement) -> str:
    """What a run shows in one line: the exception it ended with, else the reason; where things
    are installed is left out.
    """
    first = next(iter(judgement.evidence.splitlines()), "") or judgement.reason
    return _SITE_PACKAGES.sub("", first)[:200]


def changed_packages(before: Environment, after: Environment, package: str) -> tuple[str, ...]:
    """What else differs between two environments, in words, at most six rows."""
    rows = []
    if _minor(before.python) != _minor(after.python):
        rows.append(f"Python {before.python} → {after.python}")
    for package_before in before.packages:
        now = after.version(package_before.name)
        if package_before.name != package and now and now != package_before.version:
            rows.append(f"{package_before.name} {package_before.version} → {now}")
    more = len(rows) - _MOST_MOVED
    return (*rows[:_MOST_MOVED], f"{more} more") if more > 0 else tuple(rows)


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])


# What a failure can be compared with: versions that are called good, the newest release and the
# release before the first bad one.

_GOOD: ControlType = "last-good-version"
_FIXED: ControlType = "fixed-version"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may pass. `specs` are the ways to have it, the closest to the failing
    environment first; `script` replaces the failing one, None for the same.
    """

    type: ControlType
    what: str
    specs: tuple[EnvironmentSpec, ...]
    package: str = ""
    version: str = ""
    claim: VersionClaim | None = None
    script: Script | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates for one failure. Each is built only when its turn comes."""

    failing: Failing
    runner: Runner

    def all(self) -> Iterator[Candidate]:
        """What a bisection found, then the versions that the report names, then releases."""
        failing, bug = self.failing, self.runner.bug
        target = specify.under_test(failing.spec, bug, self.runner.job.issue)
        package = target.name if target is not None else ""
        if failing.report.bisection is not None:
            yield from self._bisected(failing.report.bisection)
        yield from self._reported(package)
        history, here = self._history(package), failing.environment.version(package)
        if not history or not here:
            return
        later = (self._of_that_day(package, history), releases.newest(history))
        for release in dict.fromkeys(filter(None, later)):
            if releases.older(here, release.version):
                yield self._release(_FIXED, package, release)
        last = releases.before(history, _first_named(bug, package, here, history))
        if last is not None:
            yield self._release(_GOOD, package, last)

    def _of_that_day(self, package: str, history: tuple[Release, ...]) -> Release | None:
        """The newest release on the day of a report that states no version: where an older one
        fails, it tells whether the reporter's installation is what has to be updated.
        """
        day = self.runner.job.issue.created_at
        if day is None or any(
            outcome.same_package(claim.name, package) for claim in self.runner.bug.versions
        ):
            return None
        return releases.newest(
            tuple(row for row in history if row.uploaded_at and row.uploaded_at <= day)
        )

    def _history(self, package: str) -> tuple[Release, ...]:
        return self.runner.ports.builder.history(package) if package else ()

    def _bisected(self, bisection: Bisection) -> Iterator[Candidate]:
        commits = bisection.over == "commits"
        fixed: ControlType = "fixed-commit" if commits else _FIXED
        for kind, point in ((fixed, bisection.first_fixed), (_GOOD, bisection.last_good)):
            if point is not None and commits:
                yield from self._commit(kind, bisection.package, point.at)
            elif point is not None:
                release = Release(version=point.at, uploaded_at=point.date)
                yield self._release(kind, bisection.package, release)

    def _commit(self, kind: ControlType, package: str, ref: str) -> Iterator[Candidate]:
        """A commit of the clone that was bisected, as long as the clone is there and has it."""
        commits, source = self.runner.ports.commits, self.failing.report.clone
        if source is None or commits is None:
            return
        what = f"{package} at {ref[:12]}"
        try:
            commit_end = commits.commit(source, ref)
        except (UserError, TransientError) as error:
            # Notes are published: the path of the clone is private.
            path = source.path
            why = str(error).replace(path, PurePath(path).name) if path else str(error)
            self.runner.note(f"no control with {what}: {why}")
            return
        spec = at_commit(self.failing.spec, source, commit_end.id)
        yield Candidate(kind, what, (spec,), package)

    def _reported(self, package: str) -> Iterator[Candidate]:
        """The versions that the report calls good, those of the package under test first."""
        environment = self.failing.environment
        rows = [
            (outcome.installed_name(claim.name, environment), claim)
            for claim in self.runner.bug.works_in
        ]
        for name, claim in sorted(rows, key=lambda row: row[0] != package):
            release = outcome.release_of_claim(claim, self._history(name))
            here = environment.version(name)
            if release is None or not here or releases.same(release.version, here):
                continue
            kind = _GOOD if releases.older(release.version, here) else _FIXED
            yield self._release(kind, name, release, claim)

    def _release(
        self, kind: ControlType, name: str, release: Release, claim: VersionClaim | None = None
    ) -> Candidate:
        specs = at_release(self.failing.spec, self.failing.environment, name, release)
        return Candidate(kind, f"{name} {release.version}", specs, name, release.version, claim)


def _first_named(bug: BugReport, package: str, here: str, history: tuple[Release, ...]) -> str:
    """The oldest version of the package that the report names as failing, the built one
    included.
    """
    oldest = here
    for claim in bug.versions:
        if outcome.same_package(claim.name, package):
            fits = outcome.fitting(claim, history)
            older = (release.version for release in fits if releases.older(release.version, oldest))
            oldest = next(older, oldest)
    return oldest


# A confirmed failure → its control: the same program where it should pass, run in turn with the
# failing one under the same seeds.
#
# A candidate that fails too, or fails for another reason, is no control; the next one is tried.
# See docs/method.md.

AS_REPORTED = "as reported"


@dataclass(slots=True)
class _Side:
    """The runs of one environment by seed."""

    script: Script
    environment: Environment
    change: str
    runs: dict[int, Judgement] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        return _failures(self.runs.values())


def control(failing: Failing, runner: Runner, seconds: float = 600.0) -> ProofOutcome:
    """The first candidate that passes where the failing environment fails, with both counts.

    A release or commit that a bisection found to pass goes first, the report's own contrasts go
    last. No new candidate and no new pair of runs is begun after `seconds`.
    """
    search = _Search(failing, runner, runner.ports.clock() + seconds)
    try:
        with runner.stage("control", "looking for a version that works"):
            return search.first()
    except Stopped:
        why = runner.context.interruption
        runner.note(f"{why} while a control was run")
        return search.outcome(why)
    except TransientError as error:
        runner.note(f"no control: {error}")
        return search.outcome()


class _Search:
    def __init__(self, failing: Failing, runner: Runner, deadline: float) -> None:
        self.failing, self.runner, self.deadline = failing, runner, deadline
        self.claims: list[Claim] = []
        self.interruption: Interruption | None = None

    def first(self) -> ProofOutcome:
        failing, runner = self.failing, self.runner
        confirmed = runner.attempts.by_seed(failing.script, failing.environment, "confirm")
        side = _Side(failing.script, failing.environment, AS_REPORTED, confirmed)
        side.runs |= self._earlier(side)
        most = max(5, runner.job.limits.max_runs)
        pair_count = statistics.pairs(side.failures, len(side.runs), most=most)
        contrasts = (
            Candidate("report-contrast", script.origin, (failing.spec,), script=script)
            for script in failing.contrasts
        )
        for candidate in chain(Candidates(failing, runner).all(), contrasts):
            if runner.ports.clock() > self.deadline:
                runner.note("the time limit for a control was reached")
                self.interruption = Interruption.OUT_OF_TIME
                break
            outcome = self._try(candidate, side, pair_count)
            if outcome is not None:
                return outcome
        return self.outcome(self.interruption)

    def outcome(self, interruption: Interruption | None = None) -> ProofOutcome:
        """The outcome without a control."""
        notes, claims = tuple(self.runner.notes), tuple(self.claims)
        return ProofOutcome("control", notes, claims, interruption=interruption)

    def _try(self, candidate: Candidate, failing: _Side, pair_count: int) -> ProofOutcome | None:
        """The candidate's control; None when it is none, and a note says why."""
        self.runner.say("control", f"control: {candidate.what}")
        why, first = "", 0
        while True:
            control = build(
                self.runner, candidate.specs, candidate.package, candidate.version, first
            )
            if isinstance(control, Unavailable):
                why = why or control.why
                break
            ours, there = self.failing.environment, control.environment
            if candidate.script is None and (there.id, there.commit) == (ours.id, ours.commit):
                why = why or "it is what failed"
                break
            change = f"control: {candidate.what}"
            passing = _Side(candidate.script or self.failing.script, control.environment, change)
            passing.runs |= self._earlier(passing)
            why = self._alternate(failing, passing, pair_count)
            if not why or passing.failures:
                return self._concluded(candidate, control, failing, passing, why)
            first = control.index + 1
        self._reject(candidate, None, why, why)
        return None

    def _concluded(
        self,
        candidate: Candidate,
        control: ControlEnvironment,
        failing: _Side,
        passing: _Side,
        why: str,
    ) -> ProofOutcome | None:
        counts = f"{passing.failures} of {len(passing.runs)} runs failed with {candidate.what}"
        if why:
            self._reject(candidate, False, counts, why)
            return None
        self._claim(candidate, True, counts)
        contrast = candidate.type == "report-contrast"
        return ProofOutcome(
            "control",
            tuple(self.runner.notes),
            tuple(self.claims),
            control=self._counted(candidate, failing, passing),
            control_spec=None if contrast else control.spec,
            interruption=self.interruption,
        )

    def _alternate(self, failing: _Side, passing: _Side, pair_count: int) -> str:
        """Run both sides in turn under the same seeds; why it is no control, "" when it is one."""
        first = self.runner.job.limits.seed + 1
        for index, seed in enumerate(range(first, first + pair_count)):
            if index and self.runner.ports.clock() > self.deadline:
                text = (
                    f"the time limit for a control was reached after {index} of {pair_count} pairs"
                )
                self.runner.note(text)
                self.interruption = Interruption.OUT_OF_TIME
                break
            self.runner.say("control", passing.change, index + 1, pair_count)
            for side in (failing, passing):
                if seed not in side.runs:
                    side.runs[seed] = self.runner.run(
                        side.script, side.environment, seed, "control", side.change
                    ).judgement
            judgement = passing.runs[seed]
            if judgement.match is Match.MATCHED:
                return "it fails there too"
            if judgement.doubt:
                return f"that run cannot be relied on: {judgement.doubt}"
            if judgement.match is not Match.PASSED:
                return f"the program does not finish there: {words(judgement)}"
        return ""

    def _earlier(self, side: _Side) -> dict[int, Judgement]:
        """What an interrupted search had run of a side, by seed; none if it came to an end."""
        resumed = self.failing.resumed == "control"
        return {
            row.execution.seed: row.judgement
            for row in self.runner.attempts.of(side.script, side.environment, "control")
            if resumed and row.change == side.change and row.execution.seed is not None
        }

    def _counted(self, candidate: Candidate, failing: _Side, passing: _Side) -> Control:
        pairs = [run for seed, run in failing.runs.items() if seed in passing.runs]
        failures, runs, passed = _failures(pairs), len(pairs), list(passing.runs.values())
        before, after = self.failing.environment, passing.environment
        return Control(
            type=candidate.type,
            runs=len(passed),
            failures=passing.failures,
            p=statistics.one_sided(failures, runs, passing.failures, len(passed)),
            what=candidate.what,
            paired_runs=runs,
            paired_failures=failures,
            effect=_effect(pairs, passed),
            environment=after.id,
            python=after.python,
            moved=changed_packages(before, after, candidate.package),
        )

    def _reject(self, candidate: Candidate, holds: bool | None, evidence: str, why: str) -> None:
        self.runner.note(f"no control with {candidate.what}: {why}")
        self._claim(candidate, holds, evidence)

    def _claim(self, candidate: Candidate, holds: bool | None, evidence: str) -> None:
        if candidate.claim is not None:
            text = proof_outcome.works(candidate.claim)
            self.claims.append(Claim(text=text, holds=holds, evidence=evidence))


def _failures(runs: Iterable[Judgement]) -> int:
    return sum(run.match is Match.MATCHED for run in runs)


def _effect(pairs: list[Judgement], passed: list[Judgement]) -> Effect:
    gap, low, high = statistics.difference(
        _failures(pairs), len(pairs), _failures(passed), len(passed)
    )
    ours, theirs = _values(pairs), _values(passed)
    return Effect(
        difference=gap,
        interval=(low, high),
        delta=statistics.cliffs_delta(ours, theirs) if ours and theirs else None,
        values=ours,
        control_values=theirs,
    )


def _values(runs: list[Judgement]) -> tuple[float, ...]:
    """The numbers that the runs observed; none when any of them observed no number."""
    values = tuple(run.value for run in runs if run.value is not None)
    return values if len(values) == len(runs) else ()
