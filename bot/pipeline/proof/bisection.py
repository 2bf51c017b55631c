"""A confirmed failure → the release (or commit) that introduced it and the one that fixed it.

The steps away from the known bad revision double until one passes, then the interval is halved.
Each probe takes as many runs as the sequential test asks for, so that the chance of any wrong
branch stays bounded. See docs/method.md, and `git bisect` for skipping.
"""

from functools import partial

from bot.errors import UserError
from bot.models.bisect import Bisection, Commit
from bot.models.environment import EnvironmentSpec, RepoSource
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof import bisect_target, bisection_report, control_environments, version_claims
from bot.pipeline.proof.bisect_search import BisectSearch
from bot.pipeline.proof.bisect_target import End
from bot.pipeline.proof.bisect_visits import Prefetch, Revision
from bot.pipeline.proof.outcome import Failing
from bot.rules import releases
from bot.rules.bisecting import Edge
from bot.rules.releases import ReleaseLine

RISK = 0.05
"""The most that the chance of any wrong branch may be."""

SECONDS = 1_800.0

_NOWHERE = Edge(0, None)


def bisect_releases(
    failing: Failing,
    runner: Runner,
    package: str,
    *,
    seconds: float = SECONDS,
) -> Bisection | None:
    """Over the releases of an installed package, both ways from the one that fails.

    None, and a note, when the index has no other release. After `seconds`, or when asked to stop,
    it ends with a range, and `stopped` says why. Raises UserError when the package is not
    installed, SandboxError as runs do.
    """
    package = version_claims.installed(package, failing.environment) or package
    bad = failing.environment.version(package)
    if not bad:
        raise UserError(
            f"{package} is not installed where the program failed.",
            "Name a package of that environment.",
        )
    history = runner.ports.builder.history(package)
    claims = [
        version_claims.meant(claim, history)
        for claim in runner.bug.works_in
        if version_claims.same_package(claim.name, package)
    ]
    good = [release.version for release in claims if release is not None]
    line = releases.line(history, bad, good)
    omitted = bisection_report.omitted(line)
    if len(line.releases) == 1:
        why = f"the index has no other release of {package}"
        why = why if history else f"no index lists the releases of {package}"
        runner.note("; ".join((f"nothing was bisected: {why}", *omitted)))
        return None
    found = _both_ways(failing, runner, package, line, good, seconds)
    found = found.model_copy(update={"notes": omitted})
    return bisection_report.with_links(runner, found)


def _both_ways(
    failing: Failing,
    runner: Runner,
    package: str,
    line: ReleaseLine,
    good: list[str],
    seconds: float,
) -> Bisection:
    ways = partial(control_environments.at_release, failing.spec, failing.environment)
    revisions = [
        Revision(each.version, each.uploaded_at, partial(ways, package, each))
        for each in line.releases
    ]
    with Prefetch(runner.ports.builder) as prefetch:
        search = BisectSearch(
            failing, runner, revisions, line.bad, package, prefetch, seconds=seconds, risk=RISK
        )
        hints = [at - line.bad for at, each in enumerate(line.releases) if each.version in good]
        newest = len(revisions) - 1 - line.bad
        # The fix first: old releases are many, slow to get, and often cannot run the script at all.
        fixed = search.edge(1, (newest, *(hint for hint in hints if hint > 0)))
        introduced = search.edge(-1, tuple(-hint for hint in hints if hint < 0))
        return bisection_report.bisection(search, introduced, fixed)


def bisect_commits(
    failing: Failing,
    runner: Runner,
    source: RepoSource,
    good: str,
    bad: str,
    *,
    seconds: float = SECONDS,
) -> Bisection:
    """Over the first-parent line of a clone between a commit named as good and one named as bad,
    whichever came first.

    Both ends are run too: where they do otherwise, `ends` says so and there is no boundary. Raises
    UserError when one is no commit, when they are the same, when neither comes after the other,
    or when the clone does not provide what fails.
    """
    commits = runner.ports.commits
    if commits is None:
        raise UserError("Git histories cannot be read here.", "Install git.")
    ends = End(good, commits.commit(source, good)), End(bad, commits.commit(source, bad))
    row, backwards = bisect_target.line(commits, source, *ends)
    subject = bisect_target.subject(runner, commits, source, ends, failing)
    revisions = [
        Revision(
            commit.id,
            commit.date,
            partial(_commit_specs, failing.spec, source, commit),
            commit.subject,
            partial(subject.unbuilt, commit.id),
        )
        for commit in row
    ]
    at, far = (0, len(row) - 1) if backwards else (len(row) - 1, 0)
    with Prefetch(runner.ports.builder) as prefetch:
        search = BisectSearch(
            failing, runner, revisions, at, "", prefetch,
            seconds=seconds, risk=RISK, subject=subject.name,
        )  # fmt: skip
        for end in (at, far):
            search.look(end)
        edge = _NOWHERE
        if search.outcome(at) == "fails":
            edge = search.edge(1 if backwards else -1, (len(row) - 1,))
        introduced, fixed = (_NOWHERE, edge) if backwards else (edge, _NOWHERE)
        found = bisection_report.bisection(search, introduced, fixed)
    contradicted = "" if found.bounded else bisect_target.not_as_named(*ends, found.probes)
    update = {"package": subject.name, "over": "commits", "ends": contradicted}
    return bisection_report.with_tags(commits, source, found.model_copy(update=update))


def _commit_specs(
    spec: EnvironmentSpec, source: RepoSource, commit: Commit
) -> tuple[EnvironmentSpec, ...]:
    return (control_environments.at_commit(spec, source, commit.id),)
