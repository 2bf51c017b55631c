"""What lasts for a whole job: environments, attempts, notes, timings and an interruptible limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from time import monotonic
from typing import Generic, NamedTuple

from typing_extensions import TypeVar

from bot.kernel.attempt import Attempt, Judgement, Match, Script
from bot.kernel.environment import Environment, EnvironmentSpec
from bot.kernel.errors import Stopped
from bot.kernel.job import Interruption, JobOptions, Note, Proof
from bot.kernel.journal import ATTEMPTS, LOGS, PROGRAMS, RunLog
from bot.kernel.ports import Journal, Ports, Progress, Stage
from sandbox.port import OnOutput, RunResult, RunSpec

# A run's streams as one text: how it ended, then what it printed.


def run_log(number: int, script: Script, result: RunResult) -> RunLog:
    """The log of one run; a stream that was cut says so."""
    flags = [flag for flag in ("timed_out", "idle", "oom", "cancelled") if getattr(result, flag)]
    ended = (
        f"signal {result.signal}" if result.signal is not None else f"exit code {result.exit_code}"
    )
    head = f"script {script.digest[:12]} · {', '.join([ended, *flags])} · {result.seconds:.2f} s\n"
    streams = (
        ("stdout", result.stdout, result.stdout_truncated),
        ("stderr", result.stderr, result.stderr_truncated),
    )
    text = head + "".join(
        f"\n--- {name}{' (truncated)' if cut else ''}\n{text}" for name, text, cut in streams
    )
    return RunLog(number=number, text=text)


# The state of a run: the job with its ports and an interruptible limit, and the attempts so far,
# in order.

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
        limited_context = replace(self, ports=replace(self.ports, cancel=Event()), expired=Event())
        deadline, finished_event = monotonic() + seconds, Event()

        def watch() -> None:
            while not finished_event.wait(_POLL_S):
                cancelled = self.ports.cancel.is_set()
                if cancelled or monotonic() > deadline:
                    if not cancelled or self.expired.is_set():
                        limited_context.expired.set()
                    limited_context.ports.cancel.set()
                    return

        watcher = Thread(target=watch, name="limit", daemon=True)
        watcher.start()
        try:
            yield limited_context
        finally:
            finished_event.set()
            watcher.join()


class _EitherEvent(Event):
    """Set once one of several events is."""

    def __init__(self, *events: Event) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._events)


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
        self._kept = {
            number: earlier for number, earlier in self._kept.items() if number < len(self)
        }
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
        match, number = None, len(self) + 1
        while (attempt := self._kept.get(number)) is not None:
            if attempt.purpose == purpose and attempt.judgement.match is Match.MATCHED:
                script = self.programs.get(attempt.script)
                match = script if script is not None and fits(attempt, script) else match
            number += 1
        return match


# What lasts for a whole job: its environments, attempts, notes and timings.


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Where a search ended: the script, its environment and its last run."""

    script: Script
    spec: EnvironmentSpec
    environment: Environment
    run: CompletedRun

    @property
    def judgement(self) -> Judgement:
        """How the last run was judged."""
        return self.run.judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Session(Generic[J]):
    """What lasts for a whole job: its attempts, environments, notes and timings.

    All four only grow. `proof` is the proof that is being made: building and running are shown
    as part of it.
    """

    context: RunContext[J]
    attempts: AttemptLog
    environments: dict[str, tuple[EnvironmentSpec, Environment]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    proof: Proof | None = None

    @classmethod
    def begin(cls, job: J, ports: Ports, earlier: Iterable[Attempt] = ()) -> Session[J]:  # type: ignore[misc]
        """A session for a new job, or for one that goes on after `earlier` attempts."""
        return cls(context=RunContext(job, ports), attempts=AttemptLog(ports.journal, earlier))

    @property
    def job(self) -> J:
        """What was asked for."""
        return self.context.job

    @property
    def ports(self) -> Ports:
        """The outside world."""
        return self.context.ports

    @contextmanager
    def stage(self, name: Stage, text: str = "") -> Iterator[None]:
        """Report a stage to the listener and time it; a stage that is entered again adds up."""
        self.say(self.proof or name, text or name)
        started = self.ports.clock()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.ports.clock() - started

    def timings(self, started: float) -> dict[str, float]:
        """Seconds of the stages so far, and of the whole since the clock's reading `started`."""
        return {**self.seconds, "total": self.ports.clock() - started}

    def say(self, stage: Stage, text: str, completed: int = 0, total: int = 0) -> None:
        """Report progress to the listener. Raises Stopped once the cancel flag is set."""
        self.context.check()
        self.ports.listener(Progress(stage=stage, text=text, done=completed, total=total))

    def note(self, text: str) -> None:
        """Add a note on what is going on: the proof being made, or the run itself."""
        self.notes.append(Note(kind=self.proof or "run", text=text))

    def matched(self, spec: EnvironmentSpec) -> EnvironmentSpec:
        """The spec with the distributions that its imports mean; what is left out is noted once."""
        matched_spec, notes = self.ports.builder.matched(spec)
        for text in notes:
            if all(text != note.text for note in self.notes):
                self.note(text)
        return matched_spec

    def build(self, spec: EnvironmentSpec) -> Environment:
        """The environment of a spec, built once."""
        key = spec.model_dump_json()
        if key in self.environments:
            return self.environments[key][1]
        with self.stage("environment", "building the environment"):
            environment = self.ports.builder.build(spec, cancel=self.ports.cancel)
        if environment.note and all(
            environment.note != other.note for _, other in self.environments.values()
        ):
            self.note(environment.note)
        self.environments[key] = spec, environment
        return environment

    def adopt(self, spec: EnvironmentSpec, environment: Environment) -> None:
        """Take over an environment that was built elsewhere."""
        self.environments[spec.model_dump_json()] = spec, environment

    def execute(
        self, spec: RunSpec, on_output: OnOutput | None = None, end: Event | None = None
    ) -> RunResult:
        """Run anything in the sandbox. Once `end` is set, the run ends as if its time were up.
        Raises Stopped when it is cancelled.
        """
        self.context.check()
        cancel = self.ports.cancel if end is None else _EitherEvent(self.ports.cancel, end)
        result = self.ports.sandbox.run(spec, cancel=cancel, on_output=on_output)
        if result.cancelled and end is not None and not self.ports.cancel.is_set():
            return replace(result, cancelled=False, timed_out=True)
        if result.cancelled:
            raise Stopped(self.context.interruption)
        return result

    def reached(self) -> SearchResult | None:
        """How far an interrupted search came: its newest run, with the spec of its environment."""
        for attempt in reversed(self.attempts):
            script = self.attempts.programs[attempt.script]
            for spec, environment in self.environments.values():
                if environment.id == attempt.environment:
                    return SearchResult(script, spec, environment, CompletedRun(attempt))
        return None
