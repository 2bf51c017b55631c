"""What one job has in hand: the world, the frozen signature, the attempts so far, and the time each stage took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from time import monotonic

from bot.errors import Stopped
from bot.models.attempt import Attempt, Execution, Judgement, Match, Script
from bot.models.bisect import Bisection
from bot.models.bug import BugReport, Mend
from bot.models.environment import Environment, EnvironmentSpec, RepoSource
from bot.models.job import PROOFS, Job, Proof
from bot.models.plan import Reconstruction
from bot.models.reduced import Reduced
from bot.models.report import Claim
from bot.models.signature import AnySignature
from bot.pipeline import judge, launch, observe
from bot.ports import Ports, Progress, Stage
from bot.rules.reduce.edits import size
from sandbox.port import RunResult, RunSpec

_LOOK_S = 0.1
STOPPED, OUT_OF_TIME = "stopped on request", "the time for it was up"


@dataclass(slots=True)
class Desk:
    """Mutable while a job runs; the report is read off it, also when the job is stopped half-way. `begun` are the proofs that
    an earlier round was cut short of: they go on from its runs.
    """

    job: Job
    ports: Ports
    bug: BugReport | None = None
    signature: AnySignature | None = None
    spec: EnvironmentSpec | None = None
    environment: Environment | None = None
    script: Script | None = None
    attempts: list[Attempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proof_notes: dict[Proof, tuple[str, ...]] = field(default_factory=dict)
    defects: dict[Proof, str] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    built: dict[str, Environment] = field(default_factory=dict)
    reconstruction: Reconstruction | None = None
    bisection: Bisection | None = None
    other_bisections: tuple[Bisection, ...] = ()
    clone: RepoSource | None = None
    reduced: Reduced | None = None
    control_spec: EnvironmentSpec | None = None
    contrasts: tuple[Script, ...] = ()
    cut_short: dict[Proof, str] = field(default_factory=dict)
    begun: frozenset[Proof] = frozenset()
    gone_on: Script | None = None
    proving: Stage | None = None
    out_of_time: bool = False
    spent: str = ""
    last: RunResult | None = None
    _told: set[int] = field(default_factory=set, init=False)

    @contextmanager
    def stage(self, name: Stage, text: str = "") -> Iterator[None]:
        """Time a stage and tell the listener that it began; a stage that is entered again adds up. What a proof has built is
        told as part of the proof: whoever watches is not sent back to the beginning.
        """
        self.say(self.proving or name, text or name)
        started, outer = self.ports.clock(), self.proving
        self.proving = name if name in PROOFS else outer
        try:
            yield
        finally:
            self.proving = outer
            self.seconds[name] = self.seconds.get(name, 0.0) + self.ports.clock() - started

    def keep(self, found: Bisection) -> None:
        """Take up a bisection: what found a boundary comes first, then what is newer. An earlier one of the same package goes,
        unless it alone found a boundary.
        """
        earlier = (self.bisection, *self.other_bisections) if self.bisection is not None else ()
        rest = [each for each in earlier if not each.told_by(found)]
        self.bisection, *others = sorted((found, *rest), key=lambda each: not each.bounded)
        self.other_bisections = tuple(others)

    @contextmanager
    def noting(self, proof: Proof) -> Iterator[None]:
        """What is noted in the block tells how this proof went, and is stale once it is made again; a proof within a proof has
        its own.
        """
        before = len(self.notes)
        try:
            yield
        finally:
            ours = [at for at in range(before, len(self.notes)) if at not in self._told]  # the rest is of proofs within
            self._told.update(ours)
            self.proof_notes[proof] = (*self.proof_notes.get(proof, ()), *(self.notes[at] for at in ours))

    def say(self, stage: Stage, text: str, done: int = 0, total: int = 0) -> None:
        """Tell the listener; stop here when someone asked to."""
        self.stop_if_asked()
        self.ports.listener(Progress(stage=stage, text=text, done=done, total=total))

    def stop_if_asked(self) -> None:
        """Raise Stopped once the cancel flag is set."""
        if self.ports.cancel.is_set():
            raise Stopped(STOPPED)

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Stop what is done in the block after so many seconds, in the middle of a build or a run too: it raises Stopped, as
        for a request, and `why_stopped` tells the two apart.
        """
        outer, over, done = self.ports, Event(), Event()
        until = monotonic() + seconds
        self.out_of_time = False

        def watch() -> None:
            while not done.wait(_LOOK_S):
                if outer.cancel.is_set() or monotonic() > until:
                    self.out_of_time = not outer.cancel.is_set()
                    over.set()
                    return

        watcher = Thread(target=watch, name="limit", daemon=True)
        self.ports = replace(outer, cancel=over)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            self.ports = outer

    @property
    def why_stopped(self) -> str:
        """After Stopped, or while `limited` holds: who stopped it."""
        return OUT_OF_TIME if self.out_of_time else STOPPED

    def ended(self, proof: Proof, why: str) -> None:
        """Keep why a proof ended, where that was a stop or the time: there may be more to find. Other reasons are ends."""
        if why in {STOPPED, OUT_OF_TIME}:
            self.cut_short[proof] = why

    def build(self, spec: EnvironmentSpec) -> Environment:
        """The environment of a spec, built once."""
        key = spec.model_dump_json()
        if key not in self.built:
            with self.stage("environment", "building the environment"):
                self.built[key] = self.ports.builder.build(spec, cancel=self.ports.cancel)
            if (note := self.built[key].note) and note not in self.notes:
                self.notes.append(note)
        self.spec, self.environment = spec, self.built[key]
        return self.built[key]

    def run(self, script: Script, environment: Environment, seed: int, purpose: str, change: str = "") -> Judgement:
        """Run a script once and judge it; the attempt is kept at once. One that an earlier, killed process had already made
        and kept is not made again.
        """
        assert self.signature is not None
        number = len(self.attempts) + 1
        self.script, self.environment = script, environment
        kept = self.ports.recorder.recall(number)
        if kept is not None and _same(kept, script, environment, seed, purpose, change):
            self.stop_if_asked()
            self.attempts.append(kept)
            return kept.judgement
        result = self.execute(launch.spec(script, environment, self.job.options, self.signature, seed, f"run {number}"))
        self.last = result
        judgement = judge.judge(observe.observe(result, environment.roots), self.signature, script)
        attempt = Attempt(
            number=number,
            purpose=purpose,
            script=script.digest,
            origin=script.origin,
            environment=environment.id,
            execution=_execution(result, seed, self.ports.recorder.log(number, script, result)),
            judgement=judgement,
            change=change,
        )
        self.attempts.append(attempt)
        self.ports.recorder.attempt(attempt)
        return judgement

    def left(self, purpose: str, fits: Callable[[Attempt, Script], bool]) -> Script | None:
        """The last program that an earlier, killed process saw fail as reported in a run of this purpose, of those that fit:
        only what lies ahead of the attempts so far counts. Failing that, the result of an earlier try that ended by itself.
        """
        recorder, found, number = self.ports.recorder, None, len(self.attempts) + 1
        while (kept := recorder.recall(number)) is not None:
            if kept.purpose == purpose and kept.judgement.match is Match.MET:
                script = recorder.program(number)
                found = script if script is not None and fits(kept, script) else found
            number += 1
        self.gone_on = found
        earlier = self.reduced
        if found is None and earlier is not None and earlier.before == self.script != earlier.script:
            found = earlier.script
        if found is not None:
            self.say(self.proving or "minimize", f"going on from {size(found.files)[0]} lines, confirmed earlier")
        return found

    def execute(self, spec: RunSpec) -> RunResult:
        """Run anything in the sandbox."""
        self.stop_if_asked()
        result = self.ports.sandbox.run(spec, cancel=self.ports.cancel)
        if result.cancelled:
            raise Stopped(STOPPED)
        return result


def _same(kept: Attempt, script: Script, environment: Environment, seed: int, purpose: str, change: str) -> bool:
    ran = (kept.script, kept.environment, kept.execution.seed, kept.purpose)
    # Commits of a repository on the path share one environment: only the words tell them apart.
    told = kept.change == change or purpose not in {"control", "bisect"}
    return told and ran == (script.digest, environment.id, seed, purpose)


def changed(script: Script, source: str, mends: tuple[Mend, ...]) -> Script:
    """A script with a new text and the mends that made it."""
    return script.model_copy(update={"files": {**script.files, script.entry: source}, "mends": (*script.mends, *mends)})


def _execution(result: RunResult, seed: int, log: str) -> Execution:
    return Execution(
        exit_code=result.exit_code,
        signal=result.signal,
        timed_out=result.timed_out,
        idle=result.idle,
        oom=result.oom,
        seconds=result.seconds,
        seed=seed,
        log=log,
    )
