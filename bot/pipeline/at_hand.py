"""What there is to compare a failure with: versions that are called good, the newest release, the one before, a merged fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from bot.errors import TransientError, UserError
from bot.models.attempt import Script
from bot.models.bisect import Bisection, Point, Release
from bot.models.bug import BugReport, VersionClaim
from bot.models.environment import Environment, EnvironmentSpec, RepoSource
from bot.models.verdict import ControlType
from bot.pipeline import claimed, environment, twins
from bot.pipeline.desk import Desk
from bot.rules import releases


@dataclass(frozen=True, slots=True)
class Candidate:
    """A twin that may pass. `ways` are specs, the closest to the failing environment first; `script` replaces the failing one
    (a surrogate patch of it), None for the same; `patch` is what a model changed in it, as a unified diff, `why` its words.
    """

    type: ControlType
    what: str
    ways: tuple[EnvironmentSpec, ...]
    package: str = ""
    version: str = ""
    claim: VersionClaim | None = None
    script: Script | None = None
    patch: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class AtHand:
    """The candidates for one failing environment. `notes` takes up what could not be looked at."""

    desk: Desk
    spec: EnvironmentSpec
    built: Environment
    bug: BugReport
    notes: list[str]

    def candidates(self, bisected: Bisection | None, fix: str) -> Iterator[Candidate]:
        """What is at hand, the reporter's word first; each is built only when its turn comes."""
        target = environment.under_test(self.spec, self.bug, self.desk.job.issue)
        package = target.name if target is not None else ""
        yield from self._bisected(bisected)
        yield from self._said(package)
        history = self.desk.ports.builder.history(package) if package else ()
        here = self.built.version(package)
        newest = releases.newest(history)
        if newest is not None and here and releases.older(here, newest.version):
            yield self._at("fixed-version", package, newest)
        if history and here and (last := releases.before(history, _first_named(self.bug, package, here, history))) is not None:
            yield self._at("last-good-version", package, last)
        yield from self._merged(fix)

    def _bisected(self, found: Bisection | None) -> Iterator[Candidate]:
        if found is None:
            return
        commits = found.over == "commits"
        fixed: ControlType = "fixed-commit" if commits else "fixed-version"
        points: tuple[tuple[ControlType, Point | None], ...]
        points = (fixed, found.first_fixed), ("last-good-version", found.last_good)
        for kind, point in points:
            if point is not None and commits:
                yield from self._commit(kind, f"{found.package} at {point.at[:12]}", self.desk.clone, point.at, found.package)
            elif point is not None:
                yield self._at(kind, found.package, Release(version=point.at, uploaded_at=point.date))

    def _commit(
        self, kind: ControlType, what: str, source: RepoSource | None, ref: str, package: str = ""
    ) -> Iterator[Candidate]:
        """A commit of a clone, as long as the clone is there and has it."""
        commits = self.desk.ports.commits
        if source is None or commits is None:
            return
        try:
            found = commits.commit(source, ref)
        except (UserError, TransientError) as error:
            # Notes are published: the way to the clone is nobody's business.
            why = str(error).replace(source.path, PurePath(source.path).name) if source.path else str(error)
            self.notes.append(f"no control with {what}: {why}")
            return
        at = self.spec.model_copy(update={"repo": source})
        yield Candidate(kind, what, (twins.at_commit(at, found.id),), package)

    def _said(self, package: str) -> Iterator[Candidate]:
        """The versions that the report calls good, those of the package under test first."""
        rows = [(claimed.name_of(each, self.built), each) for each in self.bug.works_in]
        for name, claim in sorted(rows, key=lambda row: row[0] != package):
            history = self.desk.ports.builder.history(name) if name else ()
            meant = claimed.meant(claim, history)
            here = self.built.version(name)
            if meant is None or not here or releases.same(meant.version, here):
                continue
            kind: ControlType = "last-good-version" if releases.older(meant.version, here) else "fixed-version"
            yield self._at(kind, name, meant, claim)

    def _at(self, kind: ControlType, name: str, release: Release, claim: VersionClaim | None = None) -> Candidate:
        ways = twins.at_release(self.spec, self.built, name, release)
        return Candidate(kind, f"{name} {release.version}", ways, name, release.version, claim)

    def _merged(self, fix: str) -> Iterator[Candidate]:
        """The merged fix, where a commit is named and a clone is at hand."""
        if fix:
            source = self.spec.repo or claimed.clone(self.desk.job.options)
            yield from self._commit("fixed-commit", f"commit {fix[:12]}", source, fix)


def _first_named(bug: BugReport, package: str, here: str, history: tuple[Release, ...]) -> str:
    """The oldest version of the package that the report names as failing, the built one included."""
    oldest = here
    for claim in bug.versions:
        if claimed.same_package(claim.name, package):
            fits = claimed.fitting(claim, history)
            oldest = next((each.version for each in fits if releases.older(each.version, oldest)), oldest)
    return oldest
