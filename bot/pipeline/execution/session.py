"""What lasts for a whole job: its environments, attempts, notes and timings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic

from bot.errors import Stopped
from bot.models.attempt import Attempt, Judgement, Script
from bot.models.environment import Environment, EnvironmentSpec
from bot.models.job import Note, Proof
from bot.pipeline.execution.run_state import AttemptLog, CompletedRun, J, RunContext
from bot.ports import Ports, Progress, Stage
from sandbox.port import OnOutput, RunResult, RunSpec


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

    def say(self, stage: Stage, text: str, done: int = 0, total: int = 0) -> None:
        """Report progress to the listener. Raises Stopped once the cancel flag is set."""
        self.context.check()
        self.ports.listener(Progress(stage=stage, text=text, done=done, total=total))

    def note(self, text: str) -> None:
        """Add a note on what is going on: the proof being made, or the run itself."""
        self.notes.append(Note(kind=self.proof or "run", text=text))

    def matched(self, spec: EnvironmentSpec) -> EnvironmentSpec:
        """The spec with the distributions that its imports mean; what is left out is noted once."""
        found, told = self.ports.builder.matched(spec)
        for text in told:
            if all(text != note.text for note in self.notes):
                self.note(text)
        return found

    def build(self, spec: EnvironmentSpec) -> Environment:
        """The environment of a spec, built once."""
        key = spec.model_dump_json()
        if key in self.environments:
            return self.environments[key][1]
        with self.stage("environment", "building the environment"):
            built = self.ports.builder.build(spec, cancel=self.ports.cancel)
        if built.note and all(built.note != known.note for _, known in self.environments.values()):
            self.note(built.note)
        self.environments[key] = spec, built
        return built

    def adopt(self, spec: EnvironmentSpec, built: Environment) -> None:
        """Take over an environment that was built elsewhere."""
        self.environments[spec.model_dump_json()] = spec, built

    def execute(self, spec: RunSpec, on_output: OnOutput | None = None) -> RunResult:
        """Run anything in the sandbox. Raises Stopped when it is cancelled."""
        self.context.check()
        result = self.ports.sandbox.run(spec, cancel=self.ports.cancel, on_output=on_output)
        if result.cancelled:
            raise Stopped(self.context.interruption)
        return result

    def reached(self) -> SearchResult | None:
        """How far an interrupted search came: its newest run, with the spec of its environment."""
        for attempt in reversed(self.attempts):
            script = self.attempts.programs[attempt.script]
            for spec, built in self.environments.values():
                if built.id == attempt.environment:
                    return SearchResult(script, spec, built, CompletedRun(attempt))
        return None
