"""The attempts of a job, in order. Attempts are only ever added."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bot.models.attempt import Attempt, Judgement, Match, Script
from bot.models.environment import Environment
from bot.ports import Recorder
from sandbox.port import RunResult


@dataclass(frozen=True, slots=True)
class LastRun:
    """The run that was made last. `result` is None when an earlier process made it."""

    script: Script
    environment: Environment
    result: RunResult | None


class AttemptLog(list[Attempt]):
    """Keeps every attempt and hands it to the recorder at once; `add` is the only way in.

    `earlier` are the attempts of a finished run that is taken up again.
    """

    def __init__(self, recorder: Recorder, earlier: Iterable[Attempt] = ()) -> None:
        super().__init__(earlier)
        self._recorder = recorder
        self.last_run: LastRun | None = None

    def of(self, script: Script, environment: Environment, *purposes: str) -> list[Attempt]:
        """The attempts of a script in an environment, for these purposes or any."""
        return [
            attempt
            for attempt in self
            if (attempt.script, attempt.environment) == (script.digest, environment.id)
            and (not purposes or attempt.purpose in purposes)
        ]

    def matched(self) -> list[Attempt]:
        """The attempts that matched the signature."""
        return [row for row in self if row.judgement.match is Match.MATCHED]

    def by_seed(
        self, script: Script, environment: Environment, *purposes: str
    ) -> dict[int, Judgement]:
        """The last judgement under each seed."""
        rows = self.of(script, environment, *purposes)
        return {row.execution.seed: row.judgement for row in rows if row.execution.seed is not None}

    def add(self, attempt: Attempt, run: LastRun) -> None:
        """Append an attempt; one that was made now goes to the recorder as well."""
        self.append(attempt)
        self.last_run = run
        if run.result is not None:
            self._recorder.attempt(attempt)

    def kept(
        self, script: Script, environment: Environment, seed: int, purpose: str, change: str
    ) -> Attempt | None:
        """What a killed process recorded under the next number, if it was this very run."""
        attempt = self._recorder.recall(len(self) + 1)
        if attempt is None:
            return None
        same = (attempt.script, attempt.environment, attempt.execution.seed, attempt.purpose) == (
            script.digest,
            environment.id,
            seed,
            purpose,
        )
        # Commits of a repository on the path share one environment: only `change` differs.
        told_apart = attempt.change == change or purpose not in {"control", "bisect"}
        return attempt if same and told_apart else None

    def resumable(self, purpose: str, fits: Callable[[Attempt, Script], bool]) -> Script | None:
        """The last script that a killed process saw fail as reported, of those that fit.

        Only what lies ahead of the attempts so far counts.
        """
        found, number = None, len(self) + 1
        while (attempt := self._recorder.recall(number)) is not None:
            if attempt.purpose == purpose and attempt.judgement.match is Match.MATCHED:
                script = self._recorder.program(number)
                found = script if script is not None and fits(attempt, script) else found
            number += 1
        return found
