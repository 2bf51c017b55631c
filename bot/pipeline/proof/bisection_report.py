"""What a bisection found, as a value: the boundaries, the probes, and what changed there."""

from bot.errors import Stopped, TransientError, UserError
from bot.models.bisect import Bisection, Commit, Point, Skipped
from bot.models.environment import RepoSource
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof.bisect_search import BisectSearch
from bot.ports import Commits
from bot.rules.bisecting import Edge, regular
from bot.rules.releases import ReleaseLine
from sandbox.port import SandboxError

_UNREAD = (UserError, TransientError, SandboxError, Stopped)
"""When the history cannot be read, once a boundary is known: the boundary stands without it."""


def with_tags(commits: Commits, source: RepoSource, found: Bisection) -> Bisection:
    """With the tags around the commits that changed something, where they can be had."""
    told = {}
    for side in ("first_bad", "first_fixed"):
        point: Point | None = getattr(found, side)
        if point is not None:
            try:
                first, before = commits.tags(source, point.at)
            except _UNREAD:
                break
            told[side] = point.model_copy(
                update={"first_in": first, "after": "" if first else before}
            )
    return found.model_copy(update=told)


def bisection(search: BisectSearch, introduced: Edge, fixed: Edge) -> Bisection:
    """Both edges as a value: names in place of positions."""

    def point(at: int) -> Point:
        revision = search.revisions[search.bad + at]
        return Point(at=revision.name, date=revision.date, subject=revision.subject)

    came, went, probes = introduced.good, fixed.good, search.probes()
    return Bisection(
        package=search.package,
        bad=search.revisions[search.bad].name,
        first_bad=None if came is None else point(-introduced.bad),
        last_good=None if came is None else point(-came),
        last_bad=None if went is None else point(fixed.bad),
        first_fixed=None if went is None else point(went),
        introduced_among=_among(search, introduced, -1),
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


def omitted(line: ReleaseLine) -> tuple[str, ...]:
    """The releases that are not on the line, by the reason."""
    causes: dict[str, list[str]] = {}
    for release in line.left_out:
        causes.setdefault(release.why, []).append(release.at)
    return tuple(f"omitted ({why}): {_some(names)}" for why, names in causes.items())


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def with_links(runner: Runner, found: Bisection) -> Bisection:
    """With the changelog and, where a clone is at hand, the commits between the two sides."""
    changelog = (
        runner.ports.builder.changelog(found.package)
        if found.first_bad or found.first_fixed
        else ""
    )
    return found.model_copy(
        update={
            "changelog": changelog,
            "introduced_by": _between(runner, found.last_good, found.first_bad),
            "fixed_by": _between(runner, found.last_bad, found.first_fixed),
        }
    )


def _between(runner: Runner, older: Point | None, newer: Point | None) -> tuple[Commit, ...]:
    address, commits = runner.job.environment.repo, runner.ports.commits
    if not address or commits is None or older is None or newer is None:
        return ()
    try:
        return commits.between(RepoSource.of(address), older.at, newer.at)
    except _UNREAD:
        return ()
