"""Which release or commit to try next, how often, and between which two."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from bot.environment import provided
from bot.issues.proof.outcome import Failing
from bot.issues.runner import Runner
from bot.kernel.attempt import Script
from bot.kernel.bug import Commit, Probe
from bot.kernel.environment import RepoSource
from bot.kernel.errors import UserError
from bot.kernel.ports import Commits
from bot.kernel.source import symbols
from bot.kernel.statistics import SequentialTest, lower_end

# Which release or commit to try next, and where the search ends. Pure: each decision follows from
# all outcomes known so far.
#
# Places are counted as steps from one that is known to fail: 0 is that one, `size` the farthest.
# "Skip" is a place that cannot be tested, as in `git bisect skip`. "Lacks" is one without what
# the program uses; those farther out lack it too.

Quality = Literal["bad", "good", "skip", "lacks"]

_DETOURS = (
    2  # places beyond a skipped one that are still tried before all beyond is taken to be like it
)
_MOST_SKIPS = 8  # in one open interval, before it is left open


@dataclass(frozen=True, slots=True)
class Edge:
    """The boundary next to the failing end: the farthest known bad and the nearest good (None
    when none was found). `between` are the places of which nothing is known; `wall` when what
    lies beyond `bad` cannot be tested.
    """

    bad: int
    good: int | None
    between: tuple[int, ...] = ()
    wall: bool = False


def following(
    size: int, qualities: Mapping[int, Quality], hints: tuple[int, ...] = ()
) -> int | Edge:
    """The next place to try, or the edge when there is none. `hints` are tried first; with a
    good place at hand the interval is halved, without one the steps double.
    """
    edge = bracket(size, qualities)
    search = _outward(edge, size, qualities) if edge.good is None else _inward(edge, qualities)
    return next((hint for hint in hints if 0 < hint <= size and hint not in qualities), search)


def bracket(size: int, qualities: Mapping[int, Quality]) -> Edge:
    """The edge as far as it is known."""
    goods = (at for at, quality in qualities.items() if quality == "good" and 0 < at <= size)
    good = min(goods, default=None)
    limit = size + 1 if good is None else good
    bad = max(
        (at for at, quality in qualities.items() if quality == "bad" and 0 < at < limit), default=0
    )
    return Edge(bad, good, tuple(range(bad + 1, limit)), wall=good is None and bad < size)


def _inward(edge: Edge, qualities: Mapping[int, Quality]) -> int | Edge:
    """The untried place nearest to the middle; after skips a quarter, three quarters, an eighth
    and so on.
    """
    untried = [at for at in edge.between if at not in qualities]
    skips = len(edge.between) - len(untried)
    if not untried or skips >= _MOST_SKIPS or edge.good is None:
        return edge
    target = edge.bad + _fraction(skips) * (edge.good - edge.bad)
    return min(untried, key=lambda at: (abs(at - target), at))


def _outward(edge: Edge, size: int, qualities: Mapping[int, Quality]) -> int | Edge:
    if edge.bad == size:
        return edge
    skips = [at for at in edge.between if at in qualities]
    if not skips:
        return min(1 << edge.bad.bit_length(), size)
    detours = (skips[-1] + 1, min(2 * skips[-1], size))
    most = (
        _DETOURS if all(qualities[at] == "skip" for at in skips) else 1
    )  # a release can lack something by mistake
    if (
        len(skips) <= most
        and (beyond := detours[len(skips) - 1]) <= size
        and beyond not in qualities
    ):
        return beyond
    # Everything farther out is taken to be beyond testing: what is left is where that begins.
    untried = range(edge.bad + 1, skips[0])
    return untried[len(untried) // 2] if untried else edge


def _fraction(turn: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8 …: the van der Corput sequence, which soon gets out of a block of
    skipped places.
    """
    turn, fraction, part = turn + 1, 0.0, 0.5
    while turn:
        fraction += part * (turn & 1)
        turn, part = turn >> 1, part / 2
    return fraction


def regular(outcomes: Mapping[int, Quality]) -> tuple[int, ...]:
    """Places that contradict one introduction and one fix, over one line on which 0 is the known
    bad one and older places are negative: failing places beyond a passing one.
    """
    good = [at for at, quality in outcomes.items() if quality == "good"]
    older = max((at for at in good if at < 0), default=-math.inf)
    newer = min((at for at in good if at > 0), default=math.inf)
    bad = (at for at, quality in outcomes.items() if quality == "bad")
    return tuple(sorted(at for at in bad if not older <= at <= newer))


# How many runs a probe of a bisection takes: the sequential test, set by how often the failure
# occurs and by how many branches the search may take.

REFERENCE: Final = 5
"""Runs of the known bad version that the rate is read from, at least."""

_ALWAYS: Final = 0.9  # what a failure that was never absent is taken to reach
_LEAST: Final = 0.15  # rarer ones would take hundreds of runs a probe
_SPONTANEOUS: Final = 0.02


@dataclass(slots=True)
class ProbeTally:
    """The runs at one place: those that decided something, those that failed as reported, and
    the others' last reason.
    """

    runs: int = 0
    failures: int = 0
    others: int = 0
    why: str = ""

    @property
    def mixed(self) -> bool:
        """Whether it both failed and passed."""
        return 0 < self.failures < self.runs

    @property
    def hopeless(self) -> bool:
        """Whether what else happened will not be bettered by more runs."""
        return self.others >= 2 and self.others >= self.runs


def rate(failing: Iterable[ProbeTally]) -> float:
    """The rate that a failure is taken to have at least: 0.9 when no failing place ever passed,
    else the lower end of the 60 % interval over all places where it failed.
    """
    tallies = [tally for tally in failing if tally.failures]
    if not any(tally.mixed for tally in tallies):
        return _ALWAYS
    low = _low(sum(tally.failures for tally in tallies), sum(tally.runs for tally in tallies))
    return min(max(low, _LEAST), _ALWAYS)


@lru_cache(maxsize=1024)
def _low(failures: int, runs: int) -> float:
    return lower_end(failures, runs, 0.6)


def branches(places: int) -> int:
    """The most branches of a search over so many places, both ways: doubling out and halving in,
    each way.
    """
    return 4 * (places.bit_length() + 1)


def test(least_rate: float, places: int, risk: float) -> SequentialTest:
    """The test of one probe, such that the chance of any wrong branch is at most `risk`
    (Bonferroni's bound).
    """
    share = risk / branches(places)
    return SequentialTest(p0=_SPONTANEOUS, p1=least_rate, alpha=share, beta=share)


# The clone and the two commits of a bisection: checks that the clone is of the failing package,
# and that both commits behave as the user said.

_MOST_NAMES = 6


@dataclass(frozen=True, slots=True)
class End:
    """One of the two commits, by the name it was given."""

    ref: str
    commit: Commit

    @property
    def words(self) -> str:
        """The name, and the id where that is not what was given."""
        short = self.commit.id[:12]
        return short if self.commit.id.startswith(self.ref) else f"{self.ref} ({short})"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a clone provides of what fails; `tops` are the modules by which the failing program
    gets at it. A program that lies in the tree itself uses what lies beside it.
    """

    name: str
    tops: tuple[str, ...]
    commits: Commits
    source: RepoSource
    is_in_tree: bool = False

    def unbuilt(self, commit: str) -> str:
        """Why nothing can be tested at a commit that only lies on the path; "" when it can.
        Where its modules are not found there, the program would import what is installed. Raises
        as reading the history does.
        """
        if self.is_in_tree:
            return ""
        provided_packages = self.commits.provides(self.source, commit)
        if provided.importable(provided_packages, self.name, self.tops):
            return ""
        there = provided.package_in_use(provided_packages, self.tops, (self.name,))
        return "it could not be built" if there else f"the clone does not provide {self.name} there"


def line(
    commits: Commits, source: RepoSource, good: End, bad: End
) -> tuple[tuple[Commit, ...], bool]:
    """The commits from the older end to the newer one, and whether the bad one is the older.

    Raises UserError when the two are the same, or not on one line.
    """
    if good.commit.id == bad.commit.id:
        raise UserError(
            f"{good.ref} and {bad.ref} are the same commit ({good.commit.id[:12]}).",
            "Name one that passes and one that fails.",
        )
    row = commits.line(source, good.ref, bad.ref)
    if row:
        return (good.commit, *row), False
    row = commits.line(source, bad.ref, good.ref)
    if row:
        return (bad.commit, *row), True
    raise UserError(
        f"Neither {good.ref} nor {bad.ref} is an ancestor of the other.",
        "Name two commits on the same branch.",
    )


def subject(
    runner: Runner,
    commits: Commits,
    source: RepoSource,
    ends: tuple[End, ...],
    failing: Failing,
) -> Subject:
    """What the clone provides of what fails. Raises UserError when that is nothing which the
    failing program uses: every commit would be tested on the installed package, and found alike.
    """
    tops = _tops(runner, failing.script)
    if failing.script.command:  # a program of the repository uses what lies beside it
        return Subject(failing.script.entry, tops, commits, source, is_in_tree=True)
    name = ""
    for end in ends:
        provided_packages = commits.provides(source, end.commit.id)
        name = provided.package_in_use(
            provided_packages, tops, [package.name for package in failing.environment.packages]
        )
        if not name:
            modules = (
                provided_packages.name
                or ", ".join((provided_packages.on_path or provided_packages.built)[:3])
                or "no Python package"
            )
            raise UserError(
                f"At {end.words} the clone provides {modules}, which the failing program does not "
                "use.",
                f"Pass a clone of a package that it imports: {', '.join(tops[:_MOST_NAMES])}.",
            )
    return Subject(name, tops, commits, source)


def _tops(runner: Runner, script: Script) -> tuple[str, ...]:
    """The top-level modules that the program imports, and those that its failure went through."""
    own = {name.partition("/")[0].removesuffix(".py") for name in script.files}
    modules = [top for text in script.files.values() for top in symbols.top_level(text)]
    failures = (attempt.judgement.failure for attempt in runner.attempts.matched())
    frames = [frame.package for failure in failures if failure for frame in failure.frames]
    return tuple(
        top for top in dict.fromkeys((*modules, *frames)) if top not in own and top.isidentifier()
    )


def not_as_named(good: End, bad: End, probes: tuple[Probe, ...]) -> str:
    """What the two commits did, when that contradicts the user; "" when it does not, or when one of
    them was not tried.
    """
    outcomes = {probe.at: probe for probe in probes}
    ours, theirs = outcomes.get(good.commit.id), outcomes.get(bad.commit.id)
    if ours is None or theirs is None:
        return ""
    if (ours.outcome, theirs.outcome) == ("fails", "passes"):
        question = f"did you mean --good {bad.ref} --bad {good.ref}?"
        return f"{question} {good.words} {_did(ours)} and {bad.words} {_did(theirs)}"
    parts = []
    if ours.outcome != "passes":
        parts.append(f"{good.words}, given as good, {_did(ours)}")
    if theirs.outcome != "fails":
        parts.append(f"{bad.words}, given as bad, {_did(theirs)}")
    return "; ".join(parts)


def _did(probe: Probe) -> str:
    match probe.outcome:
        case "fails":
            return f"fails ({probe.failures} of {probe.runs})"
        case "passes":
            return f"passes ({probe.failures} of {probe.runs} failed)"
    return f"could not be tested ({probe.reason or probe.outcome})"
