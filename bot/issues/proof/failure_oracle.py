"""Whether smaller programs show the confirmed failure and no other: one program by runs,
many in a batch.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from pydantic import ValidationError

from bot.issues import judge, observe
from bot.issues.reduce.failure_identity import FailureIdentity, difference
from bot.issues.reduce.statements import Stack
from bot.issues.runner import Runner
from bot.issues.signature import copied, freeze, staged
from bot.kernel import batch, launch
from bot.kernel.attempt import Attempt, Failure, Judgement, Match, Mode, Script
from bot.kernel.batch import DEGREE, BatchServer, CandidateResult, Coverage, late_imports, libraries
from bot.kernel.bug import (
    AnySignature,
    CrashSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    WarningSignature,
    members_of,
)
from bot.kernel.environment import Environment
from bot.kernel.statistics import SequentialTest, TestDecision
from sandbox.port import Limits, RunResult, RunSpec, SandboxError

# Whether runs of a smaller program show the confirmed failure and no other. Ordinary runs under
# new seeds confirm the result.

OFTEN = 0.95
_RATE_ERROR = 0.2  # how far a rate estimated from 60 runs may lie from the true one
NonFiniteKind = Literal["", "nan", "inf"]
PURPOSE = "minimize"
_MAX_FAILURE_RUNS, _MIN_RUNS = 60, 12
_SEEDS = 100_003
_LAST, _MAX_LAST = 4, 0.5
"""Runs for which time is kept (the last confirmation, its control, the final test), and the largest
part of the whole time.
"""
_SLACK_S = 1.0
_BETA = 0.02


@dataclass(frozen=True, slots=True)
class FailureTest:
    """The confirmed failure: the signature that its run matched, and its identity."""

    signature: AnySignature
    identity: FailureIdentity

    @property
    def rate(self) -> float:
        """The part of the runs that fail."""
        return self.identity.rate

    @property
    def always(self) -> bool:
        """Whether every run fails."""
        return self.identity.rate == 1.0

    @property
    def hangs(self) -> bool:
        """Whether the program may hang."""
        return any(isinstance(member, HangSignature) for member in members_of(self.signature))

    @property
    def member(self) -> Member:
        """The member of the signature that was matched."""
        return members_of(self.signature)[self.identity.member]

    @property
    def depends_on_values(self) -> bool:
        """Whether the failure is a value, or arises in a statement of the program with few words:
        other values in the program may well cause the same one for another reason.
        """
        identity = self.identity
        return not isinstance(self.member, CrashSignature) or not (identity.path or identity.shapes)

    @property
    def non_finite(self) -> NonFiniteKind:
        """The kind of non-finite value that the failure is about, "" when it is about another
        thing.
        """
        if self.hangs or not isinstance(self.member, NonFiniteSignature):
            return ""
        return "nan" if any("nan" in value.lower() for value in self.member.values) else "inf"

    def with_rate(self, rate: float) -> Self:
        """The same failure at another rate."""
        return replace(self, identity=self.identity.model_copy(update={"rate": rate}))

    def shows(self, judgement: Judgement, script: Script) -> bool:
        """Whether a judged run shows the confirmed failure and no other."""
        is_match = judgement.match is Match.MATCHED
        return is_match and not difference(self.identity, judgement, script)

    def stages(self, script: Script) -> bool:
        """Whether any file of a program causes the failure by itself; what a copy of the
        repository's code raises is the repository's.
        """
        if script.fault_code is not None:
            return not copied.is_contained(script)
        if freeze.self_made(script.source, self.member):
            return True
        member = self.member
        if not isinstance(member, CrashSignature | WarningSignature):
            return False
        others = script.files.keys() - {script.entry}
        texts = (script.files[path] for path in others if path.endswith(".py"))
        return any(staged.staged(text, member) for text in texts)

    def decide(self, failures: int, runs: int, beta: float = 0.1) -> TestDecision:
        """What so many failures in so many runs show of an intermittent failure: it must come at
        least as often as it did, against a quarter of that, and not much more often: what then
        fails is another thing.
        """
        low, high = self.rate * (1 - _RATE_ERROR), min(self.rate * (1 + _RATE_ERROR), OFTEN)
        at_least = SequentialTest(p0=max(0.02, self.rate / 4), p1=low, alpha=0.02, beta=beta)
        more = SequentialTest(p0=high, p1=(1 + high) / 2, alpha=beta / 2, beta=0.1)
        decisions = (at_least.decide(failures, runs), more.decide(failures, runs))
        if decisions[0] == "passes" or decisions[1] == "fails":
            return "passes"
        return "fails" if decisions == ("fails", "passes") else "undecided"


@dataclass(slots=True)
class FreshRuns:
    """Runs programs in one environment; `count` counts the runs."""

    runner: Runner
    environment: Environment
    count: int = 0

    def fails(self, script: Script, test: FailureTest, *, final: bool) -> bool:
        """Whether a program fails: in one run where it always does, else, and at the end, in as
        many as the sequential test needs.
        """
        failures = 0
        for runs in range(1, _MAX_FAILURE_RUNS + 1):
            seed = self._seed(runs)
            earlier = self._earlier(script, seed) if test.always and final else None
            failures += test.shows(earlier or self.run(script, seed, "smaller program"), script)
            if test.always and not final:
                return failures > 0
            sequential = SequentialTest().decide(failures, runs)
            decision = sequential if test.always else test.decide(failures, runs, _BETA)
            if decision != "undecided":
                return decision == "fails"
        return False

    def intermittent_rate(self, script: Script, test: FailureTest) -> float | None:
        """How often a failure comes that came every time so far; None when it never or always
        comes.
        """
        failures = 0
        for runs in range(1, _MAX_FAILURE_RUNS + 1):
            failures += test.shows(self.run(script, self._seed(runs), "the program again"), script)
            decision = SequentialTest().decide(failures, runs)
            if decision != "undecided" and runs >= _MIN_RUNS:
                return failures / runs if decision == "fails" and failures < runs else None
        return None

    def run(self, script: Script, seed: int, change: str, purpose: str = PURPOSE) -> Judgement:
        """One run, judged."""
        self.count += 1
        return self.runner.run(script, self.environment, seed, purpose, change).judgement

    def reserve_s(self, script: Script, test: FailureTest, total_s: float) -> float:
        """Seconds for the runs that come after the search."""
        seconds = (
            row.execution.seconds for row in self.runner.attempts if row.script == script.digest
        )
        expected_runs = 1.0 if test.always else 3 / test.rate
        one = max(seconds, default=0.0) + _SLACK_S
        return min(_MAX_LAST * total_s, _LAST * one * expected_runs)

    def fits(self, attempt: Attempt, script: Script, test: FailureTest) -> bool:
        """Whether an attempt of a killed process shows the failure and no other (a control's run
        is in another environment).
        """
        here = attempt.environment == self.environment.id
        return here and test.shows(attempt.judgement, script)

    def _earlier(self, script: Script, seed: int) -> Judgement | None:
        """The judgement of the same run, where it was made already: again it would show no more."""
        key = (script.digest, self.environment.id, PURPOSE, seed)
        same = (
            row.judgement
            for row in self.runner.attempts
            if (row.script, row.environment, row.purpose, row.execution.seed) == key
        )
        return next(same, None)

    def _seed(self, run: int) -> int:
        return self.runner.job.limits.seed + _SEEDS + run


# Runs many programs, in one sandboxed run or each in its own, and returns the result of each.

_IMPORT_S, _LIMIT_S, _LIMIT_CPU_S, _SLOWER, _MAX_WALL_S = 60.0, 1.0, 0.5, 8, 600.0
_MAX_DEATHS = 3
Job = tuple[Script, int]


@dataclass(frozen=True, slots=True)
class CandidateRun:
    """A run of a program: its result, the first operation with a non-finite result, and what it
    left in its working directory.
    """

    result: RunResult
    origin: str = ""
    left: frozenset[str] = frozenset()


@dataclass(slots=True)
class BatchRunner:
    """Runs programs with a seed each. `runs` counts the processes; what has not begun `until`
    then, by the job's clock, is not run. A batch may import what `base` imports beforehand, and
    the limits of time are in terms of how long `base` takes.
    """

    runner: Runner
    environment: Environment
    signature: AnySignature
    mode: Mode = "fork"
    watch: NonFiniteKind = ""
    until: float = math.inf
    runs: int = 0
    base: Script | None = None
    coverage: Coverage = field(default_factory=Coverage)
    late_imports: tuple[str, ...] = ()
    limit_s: float = field(init=False)
    limit_cpu_s: float = field(init=False)
    cover: bool = False
    _server: BatchServer | None = None

    def __post_init__(self) -> None:
        self._unlimited()

    def close(self) -> None:
        """End the server; the next round would start another."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def begin(self, base: Script, mode: Mode, watch: NonFiniteKind) -> None:
        """Run programs in another way from here on."""
        self.close()
        self._unlimited()
        self.base, self.mode, self.watch = base, mode, watch

    def rebase(self, base: Script) -> None:
        """Go on from a smaller program: what it no longer imports, a new server will not have
        imported either.
        """
        if self.base is not None and set(libraries(base)) < set(libraries(self.base)):
            self.close()
            self.late_imports = ()
            self._unlimited()  # the next run imports by itself what the server has not
        self.base, self.cover = base, True

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self.runner.ports.clock() > self.until

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, CandidateRun]]:
        """What became of each program, with its place among the jobs. One that ended the server
        is tried alone, and the rest again.
        """
        remaining, alone, deaths = list(range(len(jobs))), list[list[int]](), 0
        while remaining and deaths <= _MAX_DEATHS and not self.late:
            completed_places = set[int]()
            for at, run in self._round([jobs[place] for place in remaining]):
                completed_places.add(at)
                yield remaining[at], run
            missing_places = [
                place for at, place in enumerate(remaining) if at not in completed_places
            ]
            remaining = []
            if missing_places and len(completed_places) + len(missing_places) > 1:
                deaths += 1
                alone += [[place] for place in missing_places[:DEGREE]]
                remaining = missing_places[DEGREE:]
            if not remaining and alone:
                remaining = alone.pop()

    def _round(self, jobs: Sequence[Job]) -> Iterator[tuple[int, CandidateRun]]:
        if self.mode != "single":
            yield from self._batch(jobs)
            return
        for place, (script, seed) in enumerate(jobs):
            if not self.late:
                self.runs += 1
                yield place, self._single(script, seed)

    def _single(self, script: Script, seed: int) -> CandidateRun:
        plain = self._spec(script, seed)
        result = self.runner.execute(replace(plain, artifacts=(*plain.artifacts, "*")))
        names = {path for path in result.artifacts if not path.startswith(".reprise/")}
        return CandidateRun(result, left=frozenset(names - script.files.keys()))

    def _batch(self, jobs: Sequence[Job]) -> Iterator[tuple[int, CandidateRun]]:
        """One round of a server; nothing of a program that took the server with it."""
        assert self.base is not None
        self.runs += len(jobs)
        base, mode, seed = self.base, self.mode, jobs[0][1]
        if self._server is None or self._server.worn:
            self.close()
            self._server = BatchServer(
                self.runner,
                lambda inbox: batch.serving(self._spec(base, seed), inbox, mode),
            )
        remaining_s = max(0.0, self.until - self.runner.ports.clock())
        wait = min(_MAX_WALL_S, remaining_s, _IMPORT_S + self.limit_s * (1 + len(jobs) / DEGREE))
        for _, data in self._server.ask(self._plan(base, jobs), wait):
            with suppress(ValidationError):
                row = CandidateResult.model_validate_json(data)
                self._learn(row, base)
                if 0 <= row.id < len(jobs):
                    self._limit(row, jobs[row.id][0])
                    yield row.id, CandidateRun(row.result(), row.first, frozenset(row.left))

    def _spec(self, script: Script, seed: int) -> RunSpec:
        job = self.runner.job
        return launch.spec(script, self.environment, job, self.signature, seed, "minimise")

    def _plan(self, base: Script, jobs: Sequence[Job]) -> dict[str, object]:
        cover, self.cover = base if self.cover else None, False
        return {
            "jobs": batch.jobs(jobs, cover),
            "mode": self.mode,
            "watch": self.watch,
            "degree": DEGREE,
            "limit_s": self.limit_s,
            "limit_cpu_s": self.limit_cpu_s,
            "output_bytes": Limits().output_bytes // 8,
            "modules": [*libraries(base), *self.late_imports],
        }

    def _learn(self, row: CandidateResult, base: Script) -> None:
        """Which lines ran, and what libraries import only when they need it: the next server
        imports that beforehand.
        """
        if row.covered:
            with suppress(ValidationError):
                self.coverage = coverage = Coverage.model_validate_json(row.covered)
                self.late_imports = late_imports(coverage, base)

    def _limit(self, row: CandidateResult, script: Script) -> None:
        if script == self.base and not row.timed_out:
            most = self.runner.job.limits.timeout_s
            self.limit_s = min(most, _LIMIT_S + _SLOWER * row.seconds)
            self.limit_cpu_s = min(most, _LIMIT_CPU_S + _SLOWER * row.cpu)

    def _unlimited(self) -> None:
        """Nothing is known yet of how long a program takes."""
        self.limit_s = self.limit_cpu_s = self.runner.job.limits.timeout_s


# The oracle of the reduction: which of many programs still show the confirmed failure, judged as
# every run is.

_MAX_WAVES = 10
_FIRST_WAVE, _WAVE, _SEVERAL_SEEDS, _MAX_BATCH_RUNS = 2, 4, 3, 40
_SEED = 7919
_RATE_RUNS = 60


@dataclass(slots=True)
class RunMarks:
    """What else the unreduced program does, which a smaller one must not change: the operations
    that its first non-finite value comes from (an empty mean is NaN too), and whether it leaves
    files in the working directory.
    """

    learning: bool = False
    origins: set[str] = field(default_factory=set)
    leaves_files: bool = False

    def fit(self, run: CandidateRun, *, is_watched: bool) -> bool:
        """Whether a failing run is like those that were learned from."""
        if self.learning:
            self.origins.add(run.origin)
            self.leaves_files |= bool(run.left)
        is_covered = not is_watched or run.origin in self.origins
        return is_covered and (self.leaves_files or not run.left)


@dataclass(slots=True)
class Oracle:
    """Tests programs against a confirmed failure. `tests` counts the programs tried; `seeds` are
    those with which it is known to fail.
    """

    runner: BatchRunner
    test: FailureTest
    seeds: tuple[int, ...] = ()
    tests: int = 0
    verdicts: dict[str, bool] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    marks: RunMarks = field(default_factory=RunMarks)
    seeds_each: int = 1
    _ended_otherwise: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.close()

    def settle(self, script: Script) -> bool:
        """Find the fastest way of running in which the failure shows as often as it did, and the
        lines that a run reaches. False when it no longer shows.
        """
        modes: tuple[Mode, ...] = ("single",) if self.test.hangs else ("fork", "fresh", "single")
        kind = self.test.non_finite
        ways: list[tuple[Mode, NonFiniteKind]] = [("fork", kind)] if kind else []
        ways += [(mode, "") for mode in modes]
        return any(self._settles(script, mode, watch) for mode, watch in ways)

    def _settles(self, script: Script, mode: Mode, watch: NonFiniteKind) -> bool:
        self.runner.begin(script, mode, watch)
        self.tests += 1
        self.marks = RunMarks(learning=True)
        try:
            self.verdicts[script.digest] = shows_failure = self._shows(script)
        except SandboxError:
            # a daemon that does not see this process's folders can still do single runs
            if mode == "single":
                raise
            return False
        finally:
            self.marks.learning = False
        return shows_failure

    def _shows(self, script: Script) -> bool:
        """Whether the failure comes as often as it did when programs are run in this way."""
        always, mode = self.test.always, self.runner.mode
        wave = _WAVE if not always else 1 if mode == "single" else _SEVERAL_SEEDS
        for turn in range(1 if always else _MAX_WAVES):
            self.runner.cover = mode == "fork" and turn == 0
            seeds = range(wave * turn, wave * (turn + 1))
            fails = self._fail([(script, self.seed(number)) for number in seeds])
            if all(fails) if always else any(fails):
                return True
        return False

    @property
    def knows_origin(self) -> bool:
        """Whether the operation is known that a non-finite value comes from."""
        return bool(self.runner.watch and all(self.marks.origins))

    def measure_rate(self, script: Script) -> None:
        """How often an intermittent failure comes, from more runs than confirming it took."""
        if not self.test.always and self.runner.mode != "single":
            fails = self._fail([(script, _SEED + turn) for turn in range(_RATE_RUNS)])
            self.test = self.test.with_rate(min(max(sum(fails), 1) / _RATE_RUNS, OFTEN))

    def refresh(self, script: Script) -> None:
        """Look again at what a run reaches, now that the program is smaller."""
        if self.runner.mode == "fork":
            self.runner.rebase(script)
            self._fail([(script, self.seed(0))])

    def use_fresh_processes(self) -> None:
        """From here on a process of its own for every program: what forked children showed was
        not confirmed.
        """
        self.runner.close()
        self.runner.mode = "single" if self.runner.mode == "single" else "fresh"
        self.verdicts.clear()

    def use_several_seeds(self) -> None:
        """From here on more than one seed for every program: what failed under the first did not
        under another.
        """
        self.seeds_each = _SEVERAL_SEEDS
        self.verdicts.clear()

    def fails(self, scripts: Sequence[Script]) -> list[bool]:
        """Which of these show the failure; a program that was tried before is not run again."""
        fresh = {one.digest: one for one in scripts if one.digest not in self.verdicts}
        self.tests += len(fresh)
        self.verdicts |= dict.fromkeys(fresh, False)
        undecided = {one.digest: one for one in fresh.values() if not self.test.stages(one)}
        failures, runs = dict.fromkeys(undecided, 0), 0
        while undecided and not self.runner.late:
            wave = self.seeds_each if self.test.always else _WAVE if runs else _FIRST_WAVE
            seeds = [self.seed(turn) for turn in range(runs, runs + wave)]
            jobs = [(script, seed) for script in undecided.values() for seed in seeds]
            for (script, _), failed in zip(jobs, self._fail(jobs), strict=True):
                failures[script.digest] += failed
            runs += wave
            for digest in list(undecided):
                verdict = self._verdict(digest, failures[digest], runs)
                if verdict is not None:
                    self.verdicts[digest] = verdict
                    del undecided[digest]
        return [self.verdicts[script.digest] for script in scripts]

    def _verdict(self, digest: str, failures: int, runs: int) -> bool | None:
        """Whether a program shows the failure, None when more runs must decide."""
        if self.test.always:
            return failures == runs
        if digest in self._ended_otherwise and not failures:
            return False  # it ends in another way, which no further run would change
        decision = self.test.decide(failures, runs)
        return None if decision == "undecided" and runs < _MAX_BATCH_RUNS else decision == "fails"

    def seed(self, turn: int) -> int:
        """Seeds with which it is known to fail come first."""
        return self.seeds[turn] if turn < len(self.seeds) else _SEED + turn

    def _fail(self, jobs: list[tuple[Script, int]]) -> list[bool]:
        """Which of these runs show the failure; one that was not made does not."""
        results = [False] * len(jobs)
        for place, run in self.runner.run(jobs):
            results[place] = self._judged(run, jobs[place][0])
        return results

    def _judged(self, run: CandidateRun, script: Script) -> bool:
        observation = observe.observe(run.result, self.runner.environment.roots)
        judgement = judge.judge(observation, self.test.signature, script)
        fails = self.test.shows(judgement, script)
        if judgement.match in {Match.OTHER, Match.SETUP_FAILURE}:
            self._ended_otherwise.add(script.digest)
        if fails and judgement.failure is not None:
            self.stacks[script.digest] = _stack(judgement.failure, script)
        return fails and self.marks.fit(run, is_watched=bool(self.runner.watch))


def _stack(failure: Failure, script: Script) -> Stack:
    return frozenset(
        (path, frame.line)
        for frame in failure.frames
        for path in script.files
        if frame.line is not None and not frame.package and frame.path.endswith(f"/{path}")
    )
