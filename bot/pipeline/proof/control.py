"""A confirmed failure → its control: the same program where it should pass, run in turn with the
failing one under the same seeds.

A candidate that fails too, or fails for another reason, is no control; the next one is tried.
See docs/method.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from bot.errors import Stopped, TransientError
from bot.models.attempt import Judgement, Match, Script
from bot.models.environment import Environment
from bot.models.job import Interruption
from bot.models.report import Claim, Control, Effect
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof import control_environments, version_claims
from bot.pipeline.proof.control_candidates import Candidate, Candidates
from bot.pipeline.proof.control_environments import ControlEnvironment, Unavailable
from bot.pipeline.proof.outcome import Failing, ProofOutcome
from bot.rules import fisher

AS_REPORTED = "as reported"


@dataclass(slots=True)
class _Side:
    """The runs of one environment by seed."""

    script: Script
    environment: Environment
    change: str
    runs: dict[int, Judgement] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        return _failures(self.runs.values())


def control(failing: Failing, runner: Runner, seconds: float = 600.0) -> ProofOutcome:
    """The first candidate that passes where the failing environment fails, with both counts.

    A release or commit that a bisection found to pass goes first, the report's own contrasts go
    last. No new candidate and no new pair of runs is begun after `seconds`.
    """
    search = _Search(failing, runner, runner.ports.clock() + seconds)
    try:
        with runner.stage("control", "looking for a version that works"):
            return search.first()
    except Stopped:
        why = runner.context.interruption
        runner.note(f"{why} while a control was run")
        return search.outcome(why)
    except TransientError as error:
        runner.note(f"no control: {error}")
        return search.outcome()


class _Search:
    def __init__(self, failing: Failing, runner: Runner, deadline: float) -> None:
        self.failing, self.runner, self.deadline = failing, runner, deadline
        self.claims: list[Claim] = []
        self.interruption: Interruption | None = None

    def first(self) -> ProofOutcome:
        failing, runner = self.failing, self.runner
        confirmed = runner.attempts.by_seed(failing.script, failing.environment, "confirm")
        side = _Side(failing.script, failing.environment, AS_REPORTED, confirmed)
        side.runs |= self._earlier(side)
        most = max(5, runner.job.limits.max_runs)
        wanted = fisher.pairs(side.failures, len(side.runs), most=most)
        contrasts = (
            Candidate("report-contrast", script.origin, (failing.spec,), script=script)
            for script in failing.contrasts
        )
        for candidate in chain(Candidates(failing, runner).all(), contrasts):
            if runner.ports.clock() > self.deadline:
                runner.note("the time limit for a control was reached")
                self.interruption = Interruption.OUT_OF_TIME
                break
            found = self._try(candidate, side, wanted)
            if found is not None:
                return found
        return self.outcome(self.interruption)

    def outcome(self, interruption: Interruption | None = None) -> ProofOutcome:
        """The outcome without a control."""
        notes, claims = tuple(self.runner.notes), tuple(self.claims)
        return ProofOutcome("control", notes, claims, interruption=interruption)

    def _try(self, candidate: Candidate, failing: _Side, wanted: int) -> ProofOutcome | None:
        """The candidate's control; None when it is none, and a note says why."""
        self.runner.say("control", f"control: {candidate.what}")
        why, first = "", 0
        while True:
            built = control_environments.build(
                self.runner, candidate.specs, candidate.package, candidate.version, first
            )
            if isinstance(built, Unavailable):
                why = why or built.why
                break
            ours, there = self.failing.environment, built.environment
            if candidate.script is None and (there.id, there.commit) == (ours.id, ours.commit):
                why = why or "it is what failed"
                break
            change = f"control: {candidate.what}"
            passing = _Side(candidate.script or self.failing.script, built.environment, change)
            passing.runs |= self._earlier(passing)
            why = self._alternate(failing, passing, wanted)
            if not why or passing.failures:
                return self._concluded(candidate, built, failing, passing, why)
            first = built.index + 1
        self._reject(candidate, None, why, why)
        return None

    def _concluded(
        self,
        candidate: Candidate,
        built: ControlEnvironment,
        failing: _Side,
        passing: _Side,
        why: str,
    ) -> ProofOutcome | None:
        counts = f"{passing.failures} of {len(passing.runs)} runs failed with {candidate.what}"
        if why:
            self._reject(candidate, False, counts, why)
            return None
        self._claim(candidate, True, counts)
        contrast = candidate.type == "report-contrast"
        return ProofOutcome(
            "control",
            tuple(self.runner.notes),
            tuple(self.claims),
            control=self._counted(candidate, failing, passing),
            control_spec=None if contrast else built.spec,
            interruption=self.interruption,
        )

    def _alternate(self, failing: _Side, passing: _Side, wanted: int) -> str:
        """Run both sides in turn under the same seeds; why it is no control, "" when it is one."""
        first = self.runner.job.limits.seed + 1
        for done, seed in enumerate(range(first, first + wanted)):
            if done and self.runner.ports.clock() > self.deadline:
                text = f"the time limit for a control was reached after {done} of {wanted} pairs"
                self.runner.note(text)
                self.interruption = Interruption.OUT_OF_TIME
                break
            self.runner.say("control", passing.change, done + 1, wanted)
            for side in (failing, passing):
                if seed not in side.runs:
                    side.runs[seed] = self.runner.run(
                        side.script, side.environment, seed, "control", side.change
                    ).judgement
            judgement = passing.runs[seed]
            if judgement.match is Match.MATCHED:
                return "it fails there too"
            if judgement.doubt:
                return f"that run cannot be relied on: {judgement.doubt}"
            if judgement.match is not Match.PASSED:
                return f"the program does not finish there: {control_environments.words(judgement)}"
        return ""

    def _earlier(self, side: _Side) -> dict[int, Judgement]:
        """What an interrupted search had run of a side, by seed; none if it came to an end."""
        resumed = self.failing.resumed == "control"
        return {
            row.execution.seed: row.judgement
            for row in self.runner.attempts.of(side.script, side.environment, "control")
            if resumed and row.change == side.change and row.execution.seed is not None
        }

    def _counted(self, candidate: Candidate, failing: _Side, passing: _Side) -> Control:
        paired = [run for seed, run in failing.runs.items() if seed in passing.runs]
        failures, runs, passed = _failures(paired), len(paired), list(passing.runs.values())
        before, after = self.failing.environment, passing.environment
        return Control(
            type=candidate.type,
            runs=len(passed),
            failures=passing.failures,
            p=fisher.one_sided(failures, runs, passing.failures, len(passed)),
            what=candidate.what,
            paired_runs=runs,
            paired_failures=failures,
            effect=_effect(paired, passed),
            environment=after.id,
            python=after.python,
            moved=control_environments.moved(before, after, candidate.package),
        )

    def _reject(self, candidate: Candidate, holds: bool | None, evidence: str, why: str) -> None:
        self.runner.note(f"no control with {candidate.what}: {why}")
        self._claim(candidate, holds, evidence)

    def _claim(self, candidate: Candidate, holds: bool | None, evidence: str) -> None:
        if candidate.claim is not None:
            text = version_claims.works(candidate.claim)
            self.claims.append(Claim(text=text, holds=holds, evidence=evidence))


def _failures(runs: Iterable[Judgement]) -> int:
    return sum(run.match is Match.MATCHED for run in runs)


def _effect(paired: list[Judgement], passed: list[Judgement]) -> Effect:
    gap, low, high = fisher.difference(
        _failures(paired), len(paired), _failures(passed), len(passed)
    )
    ours, theirs = _values(paired), _values(passed)
    return Effect(
        difference=gap,
        interval=(low, high),
        delta=fisher.cliffs_delta(ours, theirs) if ours and theirs else None,
        values=ours,
        control_values=theirs,
    )


def _values(runs: list[Judgement]) -> tuple[float, ...]:
    """The numbers that the runs observed; none when any of them observed no number."""
    values = tuple(run.value for run in runs if run.value is not None)
    return values if len(values) == len(runs) else ()
