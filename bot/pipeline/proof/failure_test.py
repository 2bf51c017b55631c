"""Whether runs of a smaller program show the confirmed failure and no other. Ordinary runs under
new seeds confirm the result.
"""

from dataclasses import dataclass, replace
from typing import Literal, Self

from bot.models.attempt import Attempt, Judgement, Match, Script
from bot.models.environment import Environment
from bot.models.signature import (
    AnySignature,
    CrashSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    WarningSignature,
    members_of,
)
from bot.pipeline.execution.runner import Runner
from bot.rules.reduce.failure_identity import FailureIdentity, difference
from bot.rules.signatures import readings, staged
from bot.rules.statistics import SequentialTest, TestDecision

OFTEN = 0.95
_RATE_ERROR = 0.2  # how far a rate estimated from 60 runs may lie from the true one
NonFiniteKind = Literal["", "nan", "inf"]
PURPOSE = "minimize"
_MAX_RUNS, _MIN_RUNS = 60, 12
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
        known = self.identity
        return not isinstance(self.member, CrashSignature) or not (known.path or known.shapes)

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
        matched = judgement.match is Match.MATCHED
        return matched and not difference(self.identity, judgement, script)

    def stages(self, script: Script) -> bool:
        """Whether any file of a program causes the failure by itself."""
        if readings.self_made(script.source, self.member):
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
        for runs in range(1, _MAX_RUNS + 1):
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
        for runs in range(1, _MAX_RUNS + 1):
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
        same = (
            row.judgement
            for row in self.runner.attempts
            if (row.script, row.environment, row.purpose, row.execution.seed) == wanted
        )
        return next(same, None)

    def _seed(self, run: int) -> int:
        return self.runner.job.limits.seed + _SEEDS + run
