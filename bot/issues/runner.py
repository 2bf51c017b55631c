"""Builds environments, runs scripts, judges the runs and writes the attempts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bot.issues import judge, observe
from bot.kernel import launch
from bot.kernel.attempt import Attempt, Execution, Script
from bot.kernel.bug import AnySignature, BugReport
from bot.kernel.environment import Environment
from bot.kernel.job import Proof, ReproduceIssue
from bot.kernel.journal import log_name
from bot.kernel.session import CompletedRun, Session

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
        result = self.execute(spec)
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
            judgement=judge.judge(observation, self.signature, script),
            change=change,
        )
        return self.attempts.add(attempt, script, result)

    @contextmanager
    def proving(self, proof: Proof, seconds: float) -> Iterator[Runner]:
        """A runner for one proof, with a time limit and notes of its own."""
        with self.context.within(seconds) as context:
            yield replace(self, context=context, proof=proof, notes=[])


def judging(session: IssueSession, bug: BugReport, signature: AnySignature) -> Runner:
    """A runner that judges by a signature; it shares everything else with the session."""
    shared = {name: getattr(session, name) for name in Session.__slots__}
    return Runner(**shared, bug=bug, signature=signature)
