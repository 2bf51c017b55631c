"""Builds environments, runs scripts, judges the runs and writes the attempts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event

from bot.issues import judge, observe
from bot.kernel import launch
from bot.kernel.attempt import Attempt, Execution, Judgement, Match, Script
from bot.kernel.bug import AnySignature, BugReport, trains
from bot.kernel.environment import Environment
from bot.kernel.job import Proof, ReproduceIssue
from bot.kernel.journal import log_name
from bot.kernel.plain_text import duration
from bot.kernel.session import CompletedRun, Session
from bot.kernel.training_progress import Rest, TrainingProgress, planned_counts
from sandbox.port import RunResult, RunSpec, Stream

_FIRST_LOOK_S = 30.0
"""What a program may take to come up to its speed."""

IssueSession = Session[ReproduceIssue]
"""The session of an issue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner(IssueSession):
    """A session in which runs can be judged: the signature is frozen."""

    bug: BugReport
    signature: AnySignature

    def run(
        self, script: Script, environment: Environment, seed: int, purpose: str, change: str = ""
    ) -> CompletedRun:
        """Run a script once, judge it, and keep the attempt.

        An attempt that an earlier, killed process kept is taken over instead of repeated.
        """
        previous = self.attempts.kept(script, environment, seed, purpose, change)
        if previous is not None:
            self.context.check()
            return self.attempts.add(previous, script, None)
        number = len(self.attempts) + 1
        spec = launch.spec(script, environment, self.job, self.signature, seed, f"run {number}")
        result, rest = self._watched(spec, script)
        key, mounts = spec.files[launch.KEY], environment.mounts
        observation = observe.observe(result, environment.roots, key=key, mounts=mounts)
        self.context.check()
        attempt = Attempt(
            number=number,
            purpose=purpose,
            script=script.digest,
            origin=script.origin,
            environment=environment.id,
            execution=Execution.of(result, seed, log_name(number)),
            judgement=_with_rest(judge.judge(observation, self.signature, script), result, rest),
            change=change,
        )
        return self.attempts.add(attempt, script, result)

    def _watched(self, spec: RunSpec, script: Script) -> tuple[RunResult, Rest | None]:
        """What a run did, and what its counters say is left. Where only the end of a training
        counts, one that will by far not come to it is stopped early.
        """
        words = planned_counts(" ".join(script.command))
        progress = TrainingProgress(self.ports.clock, {**planned_counts(script.source), **words})
        end, limit = Event(), spec.limits.longest_s
        is_early = trains(self.signature)

        def hear(stream: Stream, line: str) -> None:
            progress.hear(stream, line)
            if is_early and _FIRST_LOOK_S < progress.elapsed < limit:
                rest = progress.rest()
                if rest is not None and progress.elapsed + rest.seconds > limit:
                    end.set()

        return self.execute(spec, hear, end), progress.rest()

    @contextmanager
    def proving(self, proof: Proof, seconds: float) -> Iterator[Runner]:
        """A runner for one proof, with a time limit and notes of its own."""
        with self.context.within(seconds) as context:
            yield replace(self, context=context, proof=proof, notes=[])


def _with_rest(judgement: Judgement, result: RunResult, rest: Rest | None) -> Judgement:
    """The judgement of a run that was stopped, with how far it was from its end."""
    if rest is None or not result.timed_out or judgement.match is not Match.UNDECIDED:
        return judgement
    reason = f"after {result.seconds:.0f} s the program was at {rest}"
    whole = duration(result.seconds + rest.seconds)
    changes = {"reason": f"{reason}; all of it takes {whole} or more", "rest_s": rest.seconds}
    return judgement.model_copy(update=changes)


def judging(session: IssueSession, bug: BugReport, signature: AnySignature) -> Runner:
    """A runner that judges by a signature; it shares everything else with the session."""
    shared = {name: getattr(session, name) for name in Session.__slots__}
    return Runner(**shared, bug=bug, signature=signature)
