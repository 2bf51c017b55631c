"""The oracle of the reduction: which of many programs still show the confirmed failure, judged as
every run is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from bot.models.attempt import Failure, Match, Mode, Script
from bot.pipeline.execution import judge, observe
from bot.pipeline.proof.batch_runner import BatchRunner, CandidateRun
from bot.pipeline.proof.failure_test import OFTEN, FailureTest, NonFiniteKind
from bot.rules.reduce.statements import Stack
from sandbox.port import SandboxError

_MAX_WAVES = 10
_FIRST_WAVE, _WAVE, _SEVERAL_SEEDS, _MAX_RUNS = 2, 4, 3, 40
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

    def fit(self, run: CandidateRun, *, watched: bool) -> bool:
        """Whether a failing run is like those that were learned from."""
        if self.learning:
            self.origins.add(run.origin)
            self.leaves_files |= bool(run.left)
        known = not watched or run.origin in self.origins
        return known and (self.leaves_files or not run.left)


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
            self.verdicts[script.digest] = found = self._shows(script)
        except SandboxError:
            # a daemon that does not see this process's folders can still do single runs
            if mode == "single":
                raise
            return False
        finally:
            self.marks.learning = False
        return found

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
        return None if decision == "undecided" and runs < _MAX_RUNS else decision == "fails"

    def seed(self, turn: int) -> int:
        """Seeds with which it is known to fail come first."""
        return self.seeds[turn] if turn < len(self.seeds) else _SEED + turn

    def _fail(self, jobs: list[tuple[Script, int]]) -> list[bool]:
        """Which of these runs show the failure; one that was not made does not."""
        found = [False] * len(jobs)
        for place, run in self.runner.run(jobs):
            found[place] = self._judged(run, jobs[place][0])
        return found

    def _judged(self, run: CandidateRun, script: Script) -> bool:
        observation = observe.observe(run.result, self.runner.environment.roots)
        judgement = judge.judge(observation, self.test.signature, script)
        fails = self.test.shows(judgement, script)
        if judgement.match in {Match.OTHER, Match.SETUP_FAILURE}:
            self._ended_otherwise.add(script.digest)
        if fails and judgement.failure is not None:
            self.stacks[script.digest] = _stack(judgement.failure, script)
        return fails and self.marks.fit(run, watched=bool(self.runner.watch))


def _stack(failure: Failure, script: Script) -> Stack:
    return frozenset(
        (path, frame.line)
        for frame in failure.frames
        for path in script.files
        if frame.line is not None and not frame.package and frame.path.endswith(f"/{path}")
    )
