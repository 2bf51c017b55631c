"""The runs of one bisection: the revisions visited, their environments, and how often each
failed.
"""

import re
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, count
from threading import Event
from typing import Self

from packaging.utils import canonicalize_name

from bot.environment import imports, releases
from bot.issues.proof import bisect_steps, control
from bot.issues.proof.bisect_steps import Edge, ProbeTally, Quality, bracket, following
from bot.issues.proof.control import Unavailable
from bot.issues.proof.outcome import Failing
from bot.issues.runner import Runner
from bot.kernel.attempt import Judgement, Match
from bot.kernel.bug import Outcome, Probe
from bot.kernel.environment import Environment, EnvironmentSpec
from bot.kernel.errors import BuildError, Stopped, TransientError
from bot.kernel.job import Interruption
from bot.kernel.ports import Builder
from bot.kernel.statistics import SequentialTest

# The revisions that a bisection visits, with the runs at each. While a program runs, the
# environments that are likely to come next are built in the background.

FRESH = ("confirm", "control", "bisect")
_LACKING = re.compile(r"\b(?:module|cannot import name '\w+' from) '(?P<module>\w+)[\w.]*'")
_DECISIVE = {Match.MATCHED, Match.PASSED}


@dataclass(slots=True)
class Revision:
    """A release or commit on the line. `specs` are the ways to have it, the closest to the known
    bad one first. `unbuilt` says why it cannot be tested when it only lies on the path, because
    something else would be tested in its place; "" when it can.
    """

    name: str
    date: datetime | None
    specs: Callable[[], tuple[EnvironmentSpec, ...]]
    subject: str = ""
    unbuilt: Callable[[], str] = lambda: ""


@dataclass(slots=True)
class Visit:
    """What is known of one revision."""

    environment: Environment | None = None
    tally: ProbeTally = field(default_factory=ProbeTally)
    seeds: set[int] = field(default_factory=set)
    why: str = ""
    index: int = 0

    def count(self, judgement: Judgement) -> None:
        """Count one run."""
        if judgement.match in _DECISIVE:
            self.tally.runs += 1
            self.tally.failures += judgement.match is Match.MATCHED
            return
        # A failure of the environment itself is there every time: it counts twice.
        self.tally.others += 2 if judgement.match is Match.SETUP_FAILURE else 1
        self.tally.why = self.why = control.words(judgement)

    def lacks(self, package: str) -> bool:
        """Whether the program broke because the release does not have what it uses: other
        companions change nothing.
        """
        match = _LACKING.search(self.why)
        return match is not None and package in {
            imports.distribution(match["module"]),
            canonicalize_name(match["module"]),
        }


def earlier(
    failing: Failing, runner: Runner, environment: Environment, purposes: Collection[str]
) -> ProbeTally:
    """The runs of the failing program in an environment for these purposes.

    A run that was repeated under its seed, as a control that is made anew does, counts once.
    """
    attempts = runner.attempts.of(failing.script, environment, *purposes)
    decisive = [row for row in attempts if row.judgement.match in _DECISIVE]
    first = {row.execution.seed: row.judgement.match for row in reversed(decisive)}
    failures = sum(match is Match.MATCHED for match in first.values())
    return ProbeTally(runs=len(first), failures=failures)


def used_seeds(
    failing: Failing, runner: Runner, environment: Environment, match: Match | None = None
) -> list[int]:
    """The seeds under which the program ran in an environment, or those with one outcome."""
    attempts = runner.attempts.of(failing.script, environment, *FRESH)
    matching_attempts = (row for row in attempts if match in {None, row.judgement.match})
    seeds = (row.execution.seed for row in matching_attempts)
    return list(dict.fromkeys(seed for seed in seeds if seed is not None))


class Prefetch:
    """Builds at most two environments at a time, each spec once. Only builds go on in threads:
    runs, judgements and what is kept of them stay with the caller. Leaving the context stops
    what nobody asked for in the end.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder, self._flag = builder, Event()
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prefetch")
        self._started: dict[str, Future[Environment | None]] = {}

    def start(self, spec: EnvironmentSpec) -> None:
        """Begin with an environment, unless that was done before."""
        key = spec.model_dump_json()
        if key not in self._started:
            self._started[key] = self._pool.submit(self._made, spec)

    def take(self, spec: EnvironmentSpec, cancel: Event) -> Environment | None:
        """What was built ahead, waiting for it; None when nothing was, or when it has to be
        tried again in earnest.
        """
        future = self._started.pop(spec.model_dump_json(), None)
        if future is None or future.cancel():
            return None
        while not future.done():
            if cancel.wait(0.05):
                return None
        return future.result()

    def _made(self, spec: EnvironmentSpec) -> Environment | None:
        try:
            return self._builder.build(spec, cancel=self._flag)
        except (BuildError, Stopped, TransientError):
            return None  # whoever needs it builds it again, and hears why it fails

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flag.set()
        self._pool.shutdown(wait=True, cancel_futures=True)


# The probes of one bisection: the revisions that ran, and how often each failed.

_QUALITY: dict[Outcome, Quality] = {"fails": "bad", "passes": "good"}
_MOST_RUNS = 80
"""At one revision, before it is left undecided."""

_MOST_SUBSTITUTES = 3
"""Releases in whose place the failing one would be installed, before the search gives up."""

_DOUBT = 0.3
"""Failure rate below which a revision that is named as bad is contradicted."""


class _Pointless(Exception):
    """More probes would decide nothing more; the text says why."""


class BisectSearch:
    """Probes of revisions on one line; `bad` is the position of the one that is known to fail.

    Outcomes are computed anew from the counts after each run, because a failure that turns out to
    be rarer than it seemed asks for more runs at revisions that were settled before. `package` is
    what has the releases, "" on a line of commits; `subject` is what those provide.
    """

    def __init__(
        self,
        failing: Failing,
        runner: Runner,
        revisions: list[Revision],
        bad: int,
        package: str,
        prefetch: Prefetch,
        *,
        seconds: float,
        risk: float,
        subject: str = "",
    ) -> None:
        self.failing, self.runner, self.revisions = failing, runner, revisions
        self.bad, self.package, self.prefetch = bad, package, prefetch
        self.risk, self.stopped, self.subject = risk, "", subject or package
        self._deadline = runner.ports.clock() + seconds
        self._visits: dict[int, Visit] = {}
        self._asked: list[int] = []
        self._substitutes = 0
        self._confirmed = ProbeTally()
        here = failing.environment
        self._failing_seeds = used_seeds(failing, runner, here, Match.MATCHED)
        if package:
            self._visits[bad] = Visit(here, earlier(failing, runner, here, FRESH))
        else:
            # Commits may share one environment; confirming runs still tell the failure rate.
            self._confirmed = earlier(failing, runner, here, {"confirm"})

    @property
    def rate(self) -> float:
        """The rate at which the failure is taken to occur at least."""
        return bisect_steps.rate(
            (self._confirmed, *(visit.tally for visit in self._visits.values()))
        )

    def edge(self, way: int, hints: tuple[int, ...] = ()) -> Edge:
        """The boundary towards older (-1) or newer (1) revisions, as far as it is known when the
        search has to stop.
        """
        size = self.bad if way < 0 else len(self.revisions) - 1 - self.bad

        def search() -> None:
            self._reference()
            while not isinstance(step := following(size, self._known(way), hints), Edge):
                self._prefetch(way, step, size, hints)
                self._probe(self.bad + way * step)

        self._until_stopped(search)
        return bracket(size, self._known(way))

    def look(self, at: int) -> None:
        """Probe one revision, unless the search had to stop before."""
        self._until_stopped(lambda: self._probe(at))

    def _until_stopped(self, work: Callable[[], None]) -> None:
        if self.stopped:
            return
        try:
            work()
        except Stopped:
            self.stopped = self.runner.context.interruption
        except (TransientError, _Pointless) as error:
            self.stopped = str(error)

    def outcome(self, at: int) -> Outcome | None:
        """What is known of a revision; None when it was not tried."""
        visit = self._visits.get(at)
        if at == self.bad and self.package:
            return "fails"
        if visit is None:
            return None
        if visit.environment is None:
            return "uninstallable" if visit.why else None
        if visit.tally.hopeless:
            return "untestable"
        decision = self._test(at).decide(visit.tally.failures, visit.tally.runs)
        if decision == "undecided":
            return "undecided" if visit.tally.runs else None
        return decision

    def seen(self) -> dict[int, Quality]:
        """Every settled revision by its distance from the known bad one, older ones negative."""
        return {
            at - self.bad: quality
            for at in self._visits
            if (quality := self._settled(at)) is not None
        }

    def probes(self) -> tuple[Probe, ...]:
        """Everything that was tried, in the order of the line."""
        rows = [(at, visit, self.outcome(at)) for at, visit in sorted(self._visits.items())]
        return tuple(self._row(at, visit, out) for at, visit, out in rows if out is not None)

    def _row(self, at: int, visit: Visit, outcome: Outcome) -> Probe:
        environment, changes = visit.environment, tuple[str, ...]()
        if environment is not None:
            changes = control.changed_packages(self.failing.environment, environment, self.subject)
        return Probe(
            at=self.revisions[at].name,
            date=self.revisions[at].date,
            outcome=outcome,
            runs=visit.tally.runs,
            failures=visit.tally.failures,
            reason=visit.why,
            moved=changes,
            environment=environment.id if environment is not None else "",
        )

    def risk_taken(self) -> float:
        """The bound on the chance that any settled probe is wrong."""
        count = sum(at != self.bad and self._settled(at) in {"bad", "good"} for at in self._visits)
        return min(self.risk, count * self.risk / bisect_steps.branches(len(self.revisions)))

    def _test(self, at: int) -> SequentialTest:
        rate = min(self.rate, _DOUBT) if at == self.bad else self.rate
        return bisect_steps.test(rate, len(self.revisions), self.risk)

    def _known(self, way: int) -> dict[int, Quality]:
        steps = {(at - self.bad) * way: self._settled(at) for at in self._visits}
        return {
            step: quality for step, quality in steps.items() if step > 0 and quality is not None
        }

    def _settled(self, at: int) -> Quality | None:
        """What a revision counts as for the search, None while more runs may decide."""
        outcome, visit = self.outcome(at), self._visits[at]
        if outcome in _QUALITY:
            return _QUALITY[outcome]
        capped = visit.tally.runs + visit.tally.others >= _MOST_RUNS
        if outcome == "untestable" and visit.lacks(self.package):
            return "lacks"
        return "skip" if capped or outcome in {"untestable", "uninstallable"} else None

    def _reference(self) -> None:
        """Enough runs of the known bad revision to read the rate from."""
        visit = self._visits.get(self.bad)
        if visit is None or visit.environment is None:
            return
        while visit.tally.runs + visit.tally.others < bisect_steps.REFERENCE:
            seeds = used_seeds(self.failing, self.runner, visit.environment)
            first = self.runner.job.limits.seed + 1
            self._run(self.bad, visit, next(seed for seed in count(first) if seed not in seeds))

    def _probe(self, at: int) -> None:
        """Runs at one revision until it is settled; where the program breaks otherwise, in the
        next way to have it too.
        """
        visit = self._visits.setdefault(at, Visit())
        if visit.environment is None:
            self._check_time()
            self._say(at, "building")
            self._enter(at, visit, 0)
        self._settle(at, visit)
        is_untestable = self.outcome(at) == "untestable" and not visit.lacks(self.package)
        if is_untestable and self._enter(at, visit, visit.index + 1):
            self._settle(at, visit)
        tally, outcome = visit.tally, self.outcome(at)
        counts = f" ({tally.failures} of {tally.runs} runs failed)" if outcome in _QUALITY else ""
        self._say(at, f"{outcome}{counts}")

    def _enter(self, at: int, visit: Visit, first: int) -> bool:
        """Build a revision, from one of its specs on; False when it cannot be had, or only as it
        was had already.
        """
        revision = self.revisions[at]
        specs = revision.specs()
        early = self.prefetch.take(specs[0], self.runner.ports.cancel) if first == 0 else None
        if early is not None:
            self.runner.adopt(specs[0], early)
        control_environment = control.build(self.runner, specs, self.package, revision.name, first)
        if isinstance(control_environment, Unavailable):
            visit.why = visit.why or control_environment.why
            self._count_substitute(control_environment)
            return False
        environment = control_environment.environment
        if visit.environment is not None and visit.environment.id == environment.id:
            return False
        if environment.roots and (why := revision.unbuilt()):
            visit.why = why
            return False
        visit.environment, visit.index, visit.why = environment, control_environment.index, ""
        # Only the environment of a release is its own: commits may share one.
        ours = bool(self.package)
        visit.tally = (
            earlier(self.failing, self.runner, environment, FRESH) if ours else ProbeTally()
        )
        visit.seeds = {*used_seeds(self.failing, self.runner, environment)} if ours else set()
        return True

    def _count_substitute(self, control: Unavailable) -> None:
        """Stop the search when the index of this machine only has the version that fails."""
        ours = self.failing.environment.version(self.package)
        self._substitutes += bool(control.instead) and releases.same(control.instead, ours)
        if self._substitutes >= _MOST_SUBSTITUTES:
            raise _Pointless(f"no version of {self.package} except {control.instead} is available")

    def _settle(self, at: int, visit: Visit) -> None:
        """Run until the revision is settled. Seeds that are known to fail come first: a failure
        that depends on the seed is then there at every bad revision.
        """
        while visit.environment is not None and self._settled(at) is None:
            seeds = chain(self._failing_seeds, count(self.runner.job.limits.seed + 1))
            self._run(at, visit, next(seed for seed in seeds if seed not in visit.seeds))

    def _run(self, at: int, visit: Visit, seed: int) -> None:
        assert visit.environment is not None
        self._check_time()
        change = f"{self.package} {self.revisions[at].name}".strip()
        script = self.failing.script
        run = self.runner.run(script, visit.environment, seed, "bisect", change)
        visit.count(run.judgement)
        visit.seeds.add(seed)

    def _prefetch(self, way: int, step: int, size: int, hints: tuple[int, ...]) -> None:
        """Start building the environments that will be wanted next, whichever way this goes."""
        qualities = self._known(way)
        for quality in ("bad", "good"):
            after = following(size, {**qualities, step: quality}, hints)
            if not isinstance(after, Edge) and (self.bad + way * after) not in self._visits:
                self.prefetch.start(self.revisions[self.bad + way * after].specs()[0])

    def _say(self, at: int, text: str) -> None:
        if at not in self._asked:
            self._asked.append(at)
        name, count_completed, size = self.revisions[at].name, len(self._asked), len(self.revisions)
        total = min(max(count_completed, 2 * size.bit_length() + 2), size)
        short = name if self.package else name[:12]
        self.runner.say("bisect", f"bisect: {short} {text}", count_completed, total)

    def _check_time(self) -> None:
        self.runner.context.check()
        if self.runner.ports.clock() > self._deadline:
            raise _Pointless(Interruption.OUT_OF_TIME)
