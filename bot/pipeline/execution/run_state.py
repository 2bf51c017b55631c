"""The state of a run: the job with its ports and an interruptible limit, and the attempts so far,
in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from time import monotonic
from typing import Generic, NamedTuple

from typing_extensions import TypeVar

from bot.errors import Stopped
from bot.models.attempt import Attempt, Judgement, Match, Script
from bot.models.environment import Environment
from bot.models.job import Interruption, JobOptions
from bot.models.journal import ATTEMPTS, LOGS, PROGRAMS
from bot.pipeline.execution.log_text import run_log
from bot.ports import Journal, Ports
from sandbox.port import RunResult

_POLL_S = 0.1
J = TypeVar("J", bound=JobOptions, default=JobOptions, covariant=True)


@dataclass(frozen=True, slots=True)
class RunContext(Generic[J]):
    """The job and the ports. A context derived by `within` has a cancel flag of its own."""

    job: J
    ports: Ports
    expired: Event = field(default_factory=Event)

    @property
    def interruption(self) -> Interruption:
        """Why work in this context stopped, once it has."""
        return Interruption.OUT_OF_TIME if self.expired.is_set() else Interruption.STOPPED

    def check(self) -> None:
        """Raise Stopped once the cancel flag is set."""
        if self.ports.cancel.is_set():
            raise Stopped(self.interruption)

    @contextmanager
    def within(self, seconds: float) -> Iterator[RunContext[J]]:
        """A context whose cancel flag is also set after `seconds`.

        It interrupts builds and runs too: they raise Stopped, and `interruption` says why.
        """
        limited = replace(self, ports=replace(self.ports, cancel=Event()), expired=Event())
        deadline, done = monotonic() + seconds, Event()

        def watch() -> None:
            while not done.wait(_POLL_S):
                cancelled = self.ports.cancel.is_set()
                if cancelled or monotonic() > deadline:
                    if not cancelled or self.expired.is_set():
                        limited.expired.set()
                    limited.ports.cancel.set()
                    return

        watcher = Thread(target=watch, name="limit", daemon=True)
        watcher.start()
        try:
            yield limited
        finally:
            done.set()
            watcher.join()


class CompletedRun(NamedTuple):
    """A run as an attempt, with its streams; `result` is None when an earlier process made it."""

    attempt: Attempt
    result: RunResult | None = None

    @property
    def judgement(self) -> Judgement:
        """How the run was judged."""
        return self.attempt.judgement

    @property
    def match(self) -> Match:
        """How the run compares with the signature."""
        return self.attempt.judgement.match


class AttemptLog(list[Attempt]):
    """Keeps every attempt and hands it to the journal at once; `add` is the only way in.

    `earlier` are the attempts of a finished run that is taken up again; `programs` are those of all
    attempts, by digest.
    """

    def __init__(self, journal: Journal, earlier: Iterable[Attempt] = ()) -> None:
        super().__init__(earlier)
        self._journal = journal
        self._kept = {attempt.number: attempt for attempt in journal.read(ATTEMPTS)}
        self.programs = {script.digest: script for script in journal.read(PROGRAMS)}

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

    def add(self, attempt: Attempt, script: Script, result: RunResult | None) -> CompletedRun:
        """Append an attempt; one that was made now goes to the journal as well."""
        self.append(attempt)
        if result is not None:
            self._keep(attempt, script, result)
        self.programs[script.digest] = script
        return CompletedRun(attempt, result)

    def _keep(self, attempt: Attempt, script: Script, result: RunResult) -> None:
        self._kept = {number: kept for number, kept in self._kept.items() if number < len(self)}
        if script.digest not in self.programs:
            self._journal.append(PROGRAMS, script)
        self._journal.append(LOGS, run_log(attempt.number, script, result))
        self._journal.append(ATTEMPTS, attempt)

    def kept(
        self, script: Script, environment: Environment, seed: int, purpose: str, change: str
    ) -> Attempt | None:
        """What a killed process recorded under the next number, if it was this very run."""
        attempt = self._kept.get(len(self) + 1)
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
        while (attempt := self._kept.get(number)) is not None:
            if attempt.purpose == purpose and attempt.judgement.match is Match.MATCHED:
                script = self.programs.get(attempt.script)
                found = script if script is not None and fits(attempt, script) else found
            number += 1
        return found
