"""A confirmed failure → the release (or commit) that brought it and the one that took it away.

Doubling steps away from the known bad one, then halving; each probe takes as many runs as the sequential test asks for, so that
the chance of any wrong branch stays bounded. See reproduction.md, section 8, and `git bisect` for skipping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bot.errors import Stopped, TransientError, UserError
from bot.models.attempt import Script
from bot.models.bisect import Bisection, Commit, Point, Release, Skipped
from bot.models.bug import BugReport
from bot.models.environment import Environment, EnvironmentSpec, RepoSource
from bot.pipeline import claimed, clones, twins
from bot.pipeline.ahead import Ahead
from bot.pipeline.clones import End
from bot.pipeline.desk import Desk
from bot.pipeline.hunt import Hunt, Place
from bot.ports import Commits
from bot.rules import releases
from bot.rules.bisecting import Edge, regular
from bot.rules.releases import Line
from sandbox.port import SandboxError

RISK = 0.05
"""The most that the chance of any wrong branch may be."""

SECONDS = 1_800.0

_UNREAD = (UserError, TransientError, SandboxError, Stopped)
"""When the history cannot be read, once a boundary is known: it stands without what else is told of it."""


def bisect_releases(
    desk: Desk,
    script: Script,
    spec: EnvironmentSpec,
    built: Environment,
    package: str,
    bug: BugReport | None = None,
    *,
    seconds: float = SECONDS,
    risk: float = RISK,
) -> Bisection | None:
    """Over the releases of an installed package, from the one in `built`, where the script is known to fail, both ways. None,
    and a note, where the index has no other one or none answers.

    Ends with what there is (a range, and `stopped` says why) after `seconds` or when asked to stop. What the desk shows is as
    before. Raises UserError when the package is not installed, SandboxError as runs do.
    """
    package = claimed.installed(package, built) or package
    bad = built.version(package)
    if not bad:
        raise UserError(f"{package} is not installed where the program failed.", "Name a package of that environment.")
    said = [each for each in (bug.works_in if bug else ()) if claimed.same_package(each.name, package)]
    history = desk.ports.builder.history(package)
    good = [each.version for claim in said if (each := claimed.meant(claim, history)) is not None]
    line = releases.line(history, bad, good)
    if len(line.releases) == 1:
        why = f"the index has no other release of {package}" if history else f"no index told of the releases of {package}"
        desk.notes.append("; ".join((f"nothing was bisected: {why}", *_left_out(line))))
        return None
    places = [Place(each.version, each.uploaded_at, _ways(spec, built, package, each)) for each in line.releases]
    with _restored(desk), Ahead(lambda each, flag: desk.ports.builder.build(each, cancel=flag)) as ahead:
        hunt = Hunt(desk, script, built, places, line.bad, package, ahead, seconds=seconds, risk=risk)
        hints = [at for at, each in enumerate(line.releases) if each.version in good]
        newest = len(places) - 1 - line.bad
        # The fix first: old releases are many, slow to have, and often cannot run the script at all.
        fixed = hunt.edge(1, (newest, *(at - line.bad for at in hints if at > line.bad)))
        introduced = hunt.edge(-1, tuple(line.bad - at for at in hints if at < line.bad))
        found = _bisection(hunt, introduced, fixed).model_copy(update={"notes": _left_out(line)})
    return _with_links(desk, found)


def bisect_commits(
    desk: Desk,
    script: Script,
    spec: EnvironmentSpec,
    built: Environment,
    source: RepoSource,
    good: str,
    bad: str,
    *,
    seconds: float = SECONDS,
    risk: float = RISK,
) -> Bisection:
    """Over the first-parent line of a clone between a commit that is said to work and one that is said to fail, whichever came
    first. Both ends are run too: where they do not do as was said, `ends` says so and there is no boundary. Raises UserError
    when one is no commit, when they are the same, when neither comes after the other, or when the clone does not provide what
    fails.
    """
    commits = desk.ports.commits
    if commits is None:
        raise UserError("There is no reader of git histories here.", "Start it where git is installed.")
    ends = End(good, commits.commit(source, good)), End(bad, commits.commit(source, bad))
    if ends[0].commit.id == ends[1].commit.id:
        raise UserError(
            f"{good} and {bad} are the same commit ({ends[0].commit.id[:12]}).", "Name one that passes and one that fails."
        )
    row = (ends[0].commit, *commits.line(source, good, bad))
    backwards = len(row) == 1
    if backwards:
        row = (ends[1].commit, *commits.line(source, bad, good))
    if len(row) == 1:
        raise UserError(f"Neither of {good} and {bad} comes after the other on one line.", "Name two commits of one branch.")
    subject = clones.subject(desk, commits, source, ends, script, built)
    base = spec.model_copy(update={"repo": source})
    places = [Place(each.id, each.date, _at(base, each), each.subject, partial(subject.unbuilt, each.id)) for each in row]
    at, far = (0, len(row) - 1) if backwards else (len(row) - 1, 0)
    with _restored(desk), Ahead(lambda each, flag: desk.ports.builder.build(each, cancel=flag)) as ahead:
        hunt = Hunt(desk, script, built, places, at, "", ahead, seconds=seconds, risk=risk, subject=subject.name)
        for end in (at, far):
            hunt.look(end)
        nothing = Edge(0, None)
        edge = hunt.edge(1 if backwards else -1, (len(row) - 1,)) if hunt.outcome(at) == "fails" else nothing
        found = _bisection(hunt, nothing if backwards else edge, edge if backwards else nothing)
    said = clones.not_as_said(*ends, found.probes) if not found.bounded else ""
    return _tagged(commits, source, found.model_copy(update={"package": subject.name, "over": "commits", "ends": said}))


def _tagged(commits: Commits, source: RepoSource, found: Bisection) -> Bisection:
    """With the tags around the commits that changed something, where they can be had."""
    told = {}
    for side in ("first_bad", "first_fixed"):
        point: Point | None = getattr(found, side)
        if point is not None:
            try:
                first, before = commits.tags(source, point.at)
            except _UNREAD:
                break
            told[side] = point.model_copy(update={"first_in": first, "after": "" if first else before})
    return found.model_copy(update=told)


def _ways(
    spec: EnvironmentSpec, built: Environment, package: str, release: Release
) -> Callable[[], tuple[EnvironmentSpec, ...]]:
    return lambda: twins.at_release(spec, built, package, release)


def _at(spec: EnvironmentSpec, commit: Commit) -> Callable[[], tuple[EnvironmentSpec, ...]]:
    return lambda: (twins.at_commit(spec, commit.id),)


@dataclass(slots=True)
class _Shown:
    """What the desk shows, put back in the end."""

    desk: Desk
    kept: tuple[EnvironmentSpec | None, Environment | None, Script | None] = (None, None, None)

    def __enter__(self) -> None:
        self.kept = (self.desk.spec, self.desk.environment, self.desk.script)

    def __exit__(self, *_: object) -> None:
        self.desk.spec, self.desk.environment, self.desk.script = self.kept


def _restored(desk: Desk) -> _Shown:
    return _Shown(desk)


def _bisection(hunt: Hunt, introduced: Edge, fixed: Edge) -> Bisection:
    """Both edges in words that need no counting."""
    places, zero = hunt.places, hunt.bad
    odd = regular(hunt.seen())
    return Bisection(
        package=hunt.package,
        bad=places[zero].name,
        first_bad=_point(places[zero - introduced.bad]) if introduced.good is not None else None,
        last_good=_point(places[zero - introduced.good]) if introduced.good is not None else None,
        last_bad=_point(places[zero + fixed.bad]) if fixed.good is not None else None,
        first_fixed=_point(places[zero + fixed.good]) if fixed.good is not None else None,
        introduced_among=_among(hunt, introduced, -1),
        fixed_among=_among(hunt, fixed, 1),
        oldest=hunt.outcome(0),
        newest=hunt.outcome(len(places) - 1),
        probes=hunt.probes(),
        skipped=tuple(Skipped(at=name, why=why) for name, why in hunt.skipped()),
        risk=hunt.risk_taken(),
        rate=hunt.rate,
        regular=not odd,
        stopped=hunt.stopped,
    )


def _point(place: Place) -> Point:
    return Point(at=place.name, date=place.date, subject=place.subject)


def _among(hunt: Hunt, edge: Edge, way: int) -> tuple[str, ...]:
    """All that may be the boundary's newer side, oldest first, when something between could not be tested."""
    if edge.good is None or not edge.between:
        return ()
    places = sorted(hunt.bad + way * at for at in (*edge.between, edge.bad if way < 0 else edge.good))
    return tuple(hunt.places[at].name for at in places)


def _left_out(line: Line) -> tuple[str, ...]:
    causes: dict[str, list[str]] = {}
    for each in line.left_out:
        causes.setdefault(each.why, []).append(each.at)
    return tuple(f"left out, {why}: {_some(names)}" for why, names in causes.items())


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _with_links(desk: Desk, found: Bisection) -> Bisection:
    """With the changelog and, where a clone is at hand, the commits between the two sides."""
    changelog = desk.ports.builder.changelog(found.package) if found.first_bad or found.first_fixed else ""
    return found.model_copy(
        update={
            "changelog": changelog,
            "introduced_by": _between(desk, found.last_good, found.first_bad),
            "fixed_by": _between(desk, found.last_bad, found.first_fixed),
        }
    )


def _between(desk: Desk, older: Point | None, newer: Point | None) -> tuple[Commit, ...]:
    source, commits = claimed.clone(desk.job.options), desk.ports.commits
    if source is None or commits is None or older is None or newer is None:
        return ()
    try:
        return commits.between(source, older.at, newer.at)
    except _UNREAD:
        return ()
