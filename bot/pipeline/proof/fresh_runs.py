"""Ordinary runs under new seeds: only these confirm a smaller program."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models.attempt import Attempt, Judgement, Script
from bot.models.environment import Environment
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof.failure_test import FailureTest
from bot.rules.statistics import SequentialTest

PURPOSE = "minimize"
_MAX_RUNS, _MIN_RUNS = 60, 12
_SEEDS = 100_003
_LAST, _MAX_LAST = 4, 0.5
"""Runs for which time is kept (the last confirmation, its control, the final test), and the largest
part of the whole time.
"""
_SLACK_S = 1.0
_BETA = 0.02


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
        for runs in range(1, _MAX_RUNS + 1):
            seed = self._seed(runs)
            earlier = self._earlier(script, seed) if test.always and final else None
            judgement = earlier or self.run(script, seed, "smaller program")
            failures += test.shows(judgement, script)
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
        for runs in range(1, _MAX_RUNS + 1):
            judgement = self.run(script, self._seed(runs), "the program again")
            failures += test.shows(judgement, script)
            decision = SequentialTest().decide(failures, runs)
            if decision != "undecided" and runs >= _MIN_RUNS:
                return failures / runs if decision == "fails" and failures < runs else None
        return None

    def run(self, script: Script, seed: int, change: str, purpose: str = PURPOSE) -> Judgement:
        """One run, judged."""
        self.count += 1
        return self.runner.run(script, self.environment, seed, purpose, change)

    def reserve_s(self, script: Script, test: FailureTest, total_s: float) -> float:
        """Seconds for the runs that come after the search."""
        spent = (
            row.execution.seconds for row in self.runner.attempts if row.script == script.digest
        )
        repeated = 1.0 if test.always else 3 / test.rate
        one = max(spent, default=0.0) + _SLACK_S
        return min(_MAX_LAST * total_s, _LAST * one * repeated)

    def fits(self, attempt: Attempt, script: Script, test: FailureTest) -> bool:
        """Whether an attempt of a killed process shows the failure and no other (a control's run
        is in another environment).
        """
        here = attempt.environment == self.environment.id
        return here and test.shows(attempt.judgement, script)

    def _earlier(self, script: Script, seed: int) -> Judgement | None:
        """The judgement of the same run, where it was made already: again it would show no more."""
        wanted = (script.digest, self.environment.id, PURPOSE, seed)
        for row in self.runner.attempts:
            if (row.script, row.environment, row.purpose, row.execution.seed) == wanted:
                return row.judgement
        return None

    def _seed(self, run: int) -> int:
        return self.runner.job.options.seed + _SEEDS + run
