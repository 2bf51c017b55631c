"""What a failure can be compared with: versions that are called good, the newest release and the
release before the first bad one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from bot.errors import TransientError, UserError
from bot.models.attempt import Script
from bot.models.bisect import Bisection, Release
from bot.models.bug import BugReport, VersionClaim
from bot.models.environment import EnvironmentSpec
from bot.models.report import ControlType
from bot.pipeline.environment import specify
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof import control_environments, version_claims
from bot.pipeline.proof.outcome import Failing
from bot.rules import releases

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
        newest = releases.newest(history)
        if newest is not None and releases.older(here, newest.version):
            yield self._release(_FIXED, package, newest)
        last = releases.before(history, _first_named(bug, package, here, history))
        if last is not None:
            yield self._release(_GOOD, package, last)

    def _history(self, package: str) -> tuple[Release, ...]:
        return self.runner.ports.builder.history(package) if package else ()

    def _bisected(self, found: Bisection) -> Iterator[Candidate]:
        commits = found.over == "commits"
        fixed: ControlType = "fixed-commit" if commits else _FIXED
        for kind, point in ((fixed, found.first_fixed), (_GOOD, found.last_good)):
            if point is not None and commits:
                yield from self._commit(kind, found.package, point.at)
            elif point is not None:
                release = Release(version=point.at, uploaded_at=point.date)
                yield self._release(kind, found.package, release)

    def _commit(self, kind: ControlType, package: str, ref: str) -> Iterator[Candidate]:
        """A commit of the clone that was bisected, as long as the clone is there and has it."""
        commits, source = self.runner.ports.commits, self.failing.report.clone
        if source is None or commits is None:
            return
        what = f"{package} at {ref[:12]}"
        try:
            found = commits.commit(source, ref)
        except (UserError, TransientError) as error:
            # Notes are published: the path of the clone is private.
            path = source.path
            why = str(error).replace(path, PurePath(path).name) if path else str(error)
            self.runner.note(f"no control with {what}: {why}")
            return
        spec = control_environments.at_commit(self.failing.spec, source, found.id)
        yield Candidate(kind, what, (spec,), package)

    def _reported(self, package: str) -> Iterator[Candidate]:
        """The versions that the report calls good, those of the package under test first."""
        environment = self.failing.environment
        rows = [
            (version_claims.installed(claim.name, environment), claim)
            for claim in self.runner.bug.works_in
        ]
        for name, claim in sorted(rows, key=lambda row: row[0] != package):
            release = version_claims.meant(claim, self._history(name))
            here = environment.version(name)
            if release is None or not here or releases.same(release.version, here):
                continue
            kind = _GOOD if releases.older(release.version, here) else _FIXED
            yield self._release(kind, name, release, claim)

    def _release(
        self, kind: ControlType, name: str, release: Release, claim: VersionClaim | None = None
    ) -> Candidate:
        specs = control_environments.at_release(
            self.failing.spec, self.failing.environment, name, release
        )
        return Candidate(kind, f"{name} {release.version}", specs, name, release.version, claim)


def _first_named(bug: BugReport, package: str, here: str, history: tuple[Release, ...]) -> str:
    """The oldest version of the package that the report names as failing, the built one
    included.
    """
    oldest = here
    for claim in bug.versions:
        if version_claims.same_package(claim.name, package):
            fits = version_claims.fitting(claim, history)
            older = (each.version for each in fits if releases.older(each.version, oldest))
            oldest = next(older, oldest)
    return oldest
