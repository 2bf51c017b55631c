"""A confirmed failure → the release (or commit) that introduced it and the one that fixed it."""

from collections.abc import Sequence
from functools import partial

from bot.environment import releases
from bot.environment.releases import ReleaseLine
from bot.issues.proof import bisect_steps, control, outcome
from bot.issues.proof.bisect_search import BisectSearch, Prefetch, Revision
from bot.issues.proof.bisect_steps import Edge, End, regular
from bot.issues.proof.outcome import Failing
from bot.issues.runner import Runner
from bot.kernel.bug import Bisection, Commit, Point, Skipped
from bot.kernel.environment import EnvironmentSpec, RepoSource
from bot.kernel.errors import Stopped, TransientError, UserError
from bot.kernel.ports import Commits
from sandbox.port import SandboxError

# What a bisection found, as a value: the boundaries, the probes, and what changed there.

_UNREAD = (UserError, TransientError, SandboxError, Stopped)
"""When the history cannot be read, once a boundary is known: the boundary stands without it."""


def with_tags(commits: Commits, source: RepoSource, bisection: Bisection) -> Bisection:
    """With the tags around the commits that changed something, where they can be had."""
    points = {}
    for side in ("first_bad", "first_fixed"):
        point: Point | None = getattr(bisection, side)
        if point is not None:
            try:
                first, before = commits.tags(source, point.at)
            except _UNREAD:
                break
            points[side] = point.model_copy(
                update={"first_in": first, "after": "" if first else before}
            )
    return bisection.model_copy(update=points)


def bisection(search: BisectSearch, introduction: Edge, fixed: Edge) -> Bisection:
    """Both edges as a value: names in place of positions."""

    def point(at: int) -> Point:
        revision = search.revisions[search.bad + at]
        return Point(at=revision.name, date=revision.date, subject=revision.subject)

    came, went, probes = introduction.good, fixed.good, search.probes()
    return Bisection(
        package=search.package,
        bad=search.revisions[search.bad].name,
        first_bad=None if came is None else point(-introduction.bad),
        last_good=None if came is None else point(-came),
        last_bad=None if went is None else point(fixed.bad),
        first_fixed=None if went is None else point(went),
        introduced_among=_among(search, introduction, -1),
        fixed_among=_among(search, fixed, 1),
        oldest=search.outcome(0),
        newest=search.outcome(len(search.revisions) - 1),
        probes=probes,
        skipped=tuple(
            Skipped(at=probe.at, why=probe.reason or probe.outcome)
            for probe in probes
            if probe.outcome not in {"fails", "passes"}
        ),
        risk=search.risk_taken(),
        rate=search.rate,
        regular=not regular(search.seen()),
        stopped=search.stopped,
    )


def _among(search: BisectSearch, edge: Edge, way: int) -> tuple[str, ...]:
    """All that may be the boundary's newer side, oldest first, when something between could not
    be tested.
    """
    if edge.good is None or not edge.between:
        return ()
    newer = edge.bad if way < 0 else edge.good
    positions = sorted(search.bad + way * at for at in (*edge.between, newer))
    return tuple(search.revisions[at].name for at in positions)


def omitted_revisions(line: ReleaseLine) -> tuple[str, ...]:
    """The releases that are not on the line, by the reason."""
    causes: dict[str, list[str]] = {}
    for release in line.left_out:
        causes.setdefault(release.why, []).append(release.at)
    return tuple(f"omitted ({why}): {_some(names)}" for why, names in causes.items())


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def with_links(runner: Runner, bisection: Bisection) -> Bisection:
    """With the changelog and, where a clone is at hand, the commits between the two sides."""
    changelog = (
        runner.ports.builder.changelog(bisection.package)
        if bisection.first_bad or bisection.first_fixed
        else ""
    )
    return bisection.model_copy(
        update={
            "changelog": changelog,
            "introduced_by": _between(runner, bisection.last_good, bisection.first_bad),
            "fixed_by": _between(runner, bisection.last_bad, bisection.first_fixed),
        }
    )


def _between(runner: Runner, older: Point | None, newer: Point | None) -> tuple[Commit, ...]:
    options, commits = runner.job.environment, runner.ports.commits
    address = "" if options.for_commands else options.repo
    if not address or commits is None or older is None or newer is None:
        return ()
    try:
        return commits.between(RepoSource.of(address), older.at, newer.at)
    except _UNREAD:
        return ()


# A confirmed failure → the release (or commit) that introduced it and the one that fixed it.
#
# The steps away from the known bad revision double until one passes, then the interval is halved.
# Each probe takes as many runs as the sequential test asks for, so that the chance of any wrong
# branch stays bounded. See docs/method.md, and `git bisect` for skipping.

RISK = 0.05
"""The most that the chance of any wrong branch may be."""

SECONDS = 1_800.0

_NOWHERE = Edge(0, None)
_MOST_COMMITS = 256
"""Of a line, on each side of the commit at which a program failed."""


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
    package = outcome.installed_name(package, failing.environment) or package
    bad = failing.environment.version(package)
    if not bad:
        raise UserError(
            f"{package} is not installed where the program failed.",
            "Name a package of that environment.",
        )
    history = runner.ports.builder.history(package)
    claims = [
        outcome.release_of_claim(claim, history)
        for claim in runner.bug.works_in
        if outcome.same_package(claim.name, package)
    ]
    good = [release.version for release in claims if release is not None]
    line = releases.line(history, bad, good)
    omissions = omitted_revisions(line)
    if len(line.releases) == 1:
        why = f"the index has no other release of {package}"
        why = why if history else f"no index lists the releases of {package}"
        runner.note("; ".join((f"nothing was bisected: {why}", *omissions)))
        return None
    bisection_result = _both_ways(failing, runner, package, line, good, seconds)
    bisection_result = bisection_result.model_copy(update={"notes": omissions})
    return with_links(runner, bisection_result)


def _both_ways(
    failing: Failing,
    runner: Runner,
    package: str,
    line: ReleaseLine,
    good: list[str],
    seconds: float,
) -> Bisection:
    ways = partial(control.at_release, failing.spec, failing.environment)
    revisions = [
        Revision(release.version, release.uploaded_at, partial(ways, package, release))
        for release in line.releases
    ]
    with Prefetch(runner.ports.builder) as prefetch:
        search = BisectSearch(
            failing, runner, revisions, line.bad, package, prefetch, seconds=seconds, risk=RISK
        )
        hints = [
            at - line.bad for at, release in enumerate(line.releases) if release.version in good
        ]
        newest = len(revisions) - 1 - line.bad
        # The fix first: old releases are many, slow to get, and often cannot run the script at all.
        fixed = search.edge(1, (newest, *(hint for hint in hints if hint > 0)))
        introduction = search.edge(-1, tuple(-hint for hint in hints if hint < 0))
        return bisection(search, introduction, fixed)


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
    row, backwards = bisect_steps.line(commits, source, *ends)
    subject = bisect_steps.subject(runner, commits, source, ends, failing)
    revisions = _revisions(row, failing, source, subject)
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
        introduction, fixed = (_NOWHERE, edge) if backwards else (edge, _NOWHERE)
        bisection_result = bisection(search, introduction, fixed)
    contradicted = (
        ""
        if bisection_result.bounded
        else bisect_steps.not_as_named(*ends, bisection_result.probes)
    )
    update = {"package": subject.name, "over": "commits", "ends": contradicted}
    return with_tags(commits, source, bisection_result.model_copy(update=update))


def bisect_line(
    failing: Failing, runner: Runner, *, seconds: float = SECONDS
) -> tuple[Bisection | None, RepoSource | None]:
    """Over the first-parent line of the repository in whose tree a program failed, both ways from
    the commit at which it did; None, and a note, where there is no other commit.
    """
    options, commits = runner.job.environment, runner.ports.commits
    if commits is None or not options.repo:
        runner.note("nothing was bisected: the repository's history cannot be read here")
        return None, None
    source, here = RepoSource.of(options.repo), failing.environment.commit
    older, newer = commits.line(source, "", here), commits.line(source, here, "")
    row = (*older[-_MOST_COMMITS:], *newer[:_MOST_COMMITS])
    at = len(older[-_MOST_COMMITS:]) - 1
    if at < 0 or len(row) == 1:
        runner.note("nothing was bisected: the repository has no other commit on this line")
        return None, None
    subject = bisect_steps.subject(runner, commits, source, (), failing)
    revisions = _revisions(row, failing, source, subject)
    with Prefetch(runner.ports.builder) as prefetch:
        search = BisectSearch(
            failing, runner, revisions, at, "", prefetch,
            seconds=seconds, risk=RISK, subject=subject.name,
        )  # fmt: skip
        newest = len(revisions) - 1 - at
        fixed = search.edge(1, (newest,)) if newest else _NOWHERE
        introduction = search.edge(-1, ()) if at else _NOWHERE
        bisection_result = bisection(search, introduction, fixed)
    update = {"package": subject.name, "over": "commits"}
    return with_tags(commits, source, bisection_result.model_copy(update=update)), source


def _revisions(
    row: Sequence[Commit], failing: Failing, source: RepoSource, subject: bisect_steps.Subject
) -> list[Revision]:
    return [
        Revision(
            commit.id,
            commit.date,
            partial(_commit_specs, failing.spec, source, commit),
            commit.subject,
            partial(subject.unbuilt, commit.id),
        )
        for commit in row
    ]


def _commit_specs(
    spec: EnvironmentSpec, source: RepoSource, commit: Commit
) -> tuple[EnvironmentSpec, ...]:
    return (control.at_commit(spec, source, commit.id),)
