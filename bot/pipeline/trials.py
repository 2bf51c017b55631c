"""Many programs in one run of the sandbox: who still shows the confirmed failure, judged as every run is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import ValidationError

from bot.models.attempt import Failure, Judgement, Match, Script
from bot.models.environment import Environment
from bot.models.reduced import Mode
from bot.models.signature import CrashSignature, HangSignature, Member, NonFiniteSignature, WarningSignature
from bot.pipeline import judge, launch, observe, rounds
from bot.pipeline.desk import Desk
from bot.pipeline.rounds import DEGREE, Covered, Row, heavy, own
from bot.pipeline.serving import Server
from bot.pipeline.signature import members_of
from bot.rules.reduce.dead import Stack
from bot.rules.reduce.reached import Reached
from bot.rules.reduce.slip import Reference, slipped
from bot.rules.reduce.synthetic import Seen
from bot.rules.signatures import readings, staged
from bot.rules.statistics import Decision, SequentialTest
from sandbox.port import Limits, RunResult, RunSpec, SandboxError

_UNSURE = 0.2  # how far a rate that was read off 60 runs may lie from the true one
Kind = Literal["", "nan", "inf"]
_IMPORT_S, _LIMIT_S, _LIMIT_CPU_S, _SLOWER, _MOST_WALL_S = 60.0, 1.0, 0.5, 8, 600.0
_DEATHS = 3
_SOME_WAVES = 10
_FIRST_WAVE, _WAVE, _ALWAYS, _MOST_RUNS = 2, 4, 3, 40
_SEED = 7919
_GAUGE, _OFTEN = 60, 0.95
_NAME = re.compile(r"(?!__)\w+(?:\.\w+)*")
_MOST_LATE = 4000


@dataclass(slots=True)
class Trials:
    """Holds programs against a confirmed failure. `tests` counts the programs tried, `runs` the processes started for them,
    `rounds` the times that some were tried together. What is not done at `until`, by the desk's clock, counts as passed.
    """

    desk: Desk
    environment: Environment
    held: Reference
    seeds: tuple[int, ...] = ()
    mode: Mode = "fork"
    limit_s: float = field(init=False)
    limit_cpu_s: float = field(init=False)
    tests: int = 0
    runs: int = 0
    rounds: int = 0
    seconds: float = 0.0
    known: dict[str, bool] = field(default_factory=dict)
    base: Script | None = None
    reached: Reached = frozenset()
    cover: bool = False
    seen: tuple[Seen, ...] = ()
    stacks: dict[str, Stack] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    each: int = 1
    late: list[str] = field(default_factory=list)
    server: Server | None = None
    until: float = math.inf
    watch: Kind = ""
    settling: bool = False
    origins: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._unlimited()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server; the next round would start another."""
        if self.server is not None:
            self.server.close()
            self.server = None

    def settle(self, script: Script) -> bool:
        """Find the fastest way in which the failure shows as often as it did, and the lines that a run reaches. False when it
        no longer does.
        """
        signature = self.desk.signature
        assert signature is not None
        hang = any(isinstance(member, HangSignature) for member in members_of(signature))
        modes: tuple[Mode, ...] = ("single",) if hang else ("fork", "fresh", "single")
        self.base = script
        self._unlimited()
        kind = "" if hang else _not_finite(members_of(signature)[self.held.member])
        ways: list[tuple[Mode, Kind]] = [(mode, "") for mode in modes]
        if kind:
            ways.insert(0, ("fork", kind))
        self.settling = True
        try:
            return any(self._can(script, mode, watch) for mode, watch in ways)
        finally:
            self.settling = False

    def _can(self, script: Script, mode: Mode, watch: Kind) -> bool:
        """Whether the failure shows in this way. A daemon that does not see this process's folders cannot serve rounds; runs of
        their own it can do.
        """
        try:
            return self._shows(script, mode, watch)
        except SandboxError:
            if mode == "single":
                raise
            return False

    def _shows(self, script: Script, mode: Mode, watch: Kind) -> bool:
        """Whether the failure is there as often as it was when programs are run in this way."""
        self.close()
        self.mode, self.watch = mode, watch
        self.tests += 1
        self.origins.clear()
        for turn in range(1 if self.held.rate == 1.0 else _SOME_WAVES):
            self.cover = self.mode == "fork" and turn == 0
            wave = _WAVE if self.held.rate < 1.0 else 1 if self.mode == "single" else _ALWAYS
            met = self._hold([(script, self.seed(wave * turn + place)) for place in range(wave)])
            if any(met) if self.held.rate < 1.0 else all(met):
                self.known[script.digest] = True
                return True
        return False

    @property
    def placed(self) -> bool:
        """Whether the operation is known that a value which is not finite comes from."""
        return bool(self.watch and all(self.origins))

    def gauge(self, script: Script) -> None:
        """How often a failure that comes and goes is there, from more runs than confirming it took."""
        if self.held.rate < 1 and self.mode != "single":
            met = self._hold([(script, _SEED + turn) for turn in range(_GAUGE)])
            rate = min(max(sum(met), 1) / _GAUGE, _OFTEN)
            self.held = self.held.model_copy(update={"rate": rate})

    def refresh(self, script: Script) -> None:
        """Look again at what a run reaches, now that the program is smaller. What it no longer imports, a new server will not
        have imported either.
        """
        if self.mode == "fork":
            if self.base is not None and set(heavy(script)) < set(heavy(self.base)):
                self.close()
                self.late = []
                self._unlimited()  # the next run imports on its own what the server has not
            self.base, self.cover = script, True
            self._hold([(script, self.seed(0))])

    def careful(self) -> None:
        """From here on a process of its own for every program: what forked children showed did not hold."""
        self.close()
        self.mode = "single" if self.mode == "single" else "fresh"
        self.known.clear()

    def several(self) -> None:
        """From here on more than one seed for every program: what failed under the first did not under another."""
        self.each = _ALWAYS
        self.known.clear()

    def meets(self, scripts: Sequence[Script]) -> list[bool]:
        """Which of these show the failure; a program that was tried before is not run again."""
        fresh = {script.digest: script for script in scripts if script.digest not in self.known}
        self.tests += len(fresh)
        self.known |= dict.fromkeys(fresh, False)
        open_ = {digest: script for digest, script in fresh.items() if not self._stages(script)}
        counts = dict.fromkeys(open_, (0, 0))
        while open_ and not self._late():
            wave = self.each if self.held.rate == 1.0 else _WAVE if any(runs for _, runs in counts.values()) else _FIRST_WAVE
            jobs = [(script, self.seed(counts[digest][1] + turn)) for digest, script in open_.items() for turn in range(wave)]
            for (script, _), met in zip(jobs, self._hold(jobs), strict=True):
                failures, runs = counts[script.digest]
                counts[script.digest] = (failures + met, runs + 1)
            for digest in list(open_):
                decided = self._decided(*counts[digest])
                if digest in self.broken and not counts[digest][0]:
                    decided = False  # it ends in another way, which no further run would mend
                if decided is not None:
                    self.known[digest] = decided
                    del open_[digest]
        return [self.known[script.digest] for script in scripts]

    def holds(self, judgement: Judgement, script: Script) -> bool:
        """Whether a judged run shows the confirmed failure and no other."""
        return judgement.match is Match.MET and not slipped(self.held, judgement, script)

    def decide(self, failures: int, runs: int, beta: float = 0.1) -> Decision:
        """What so many failures in so many runs show of a failure that comes and goes: it must come at least as often as it
        did, against a quarter of that, and not come ever so much more often: what then fails is another thing.
        """
        held = self.held.rate
        low, high = held * (1 - _UNSURE), min(held * (1 + _UNSURE), _OFTEN)
        enough = SequentialTest(p0=max(0.02, held / 4), p1=low, alpha=0.02, beta=beta).decide(failures, runs)
        more = SequentialTest(p0=high, p1=(1 + high) / 2, alpha=beta / 2, beta=0.1).decide(failures, runs)
        if enough == "passes" or more == "fails":
            return "passes"
        return "fails" if (enough, more) == ("fails", "passes") else "undecided"

    def _late(self) -> bool:
        return self.desk.ports.clock() > self.until

    def _decided(self, failures: int, runs: int) -> bool | None:
        if self.held.rate == 1.0:
            return failures == runs
        decision = self.decide(failures, runs)
        if decision == "undecided" and runs < _MOST_RUNS:
            return None
        return decision == "fails"

    def seed(self, turn: int) -> int:
        """Seeds with which it is known to fail come first."""
        return self.seeds[turn] if turn < len(self.seeds) else _SEED + turn

    def _stages(self, script: Script) -> bool:
        """Whether any file of a program brings the failure about by itself."""
        assert self.desk.signature is not None
        member = members_of(self.desk.signature)[self.held.member]
        others = [text for path, text in script.files.items() if path != script.entry and path.endswith(".py")]
        return bool(readings.self_made(script.source, member)) or any(_crash_staged(text, member) for text in others)

    def _hold(self, jobs: list[tuple[Script, int]]) -> list[bool]:
        clock = self.desk.ports.clock
        began = clock()
        try:
            if self.mode == "single":
                return [not self._late() and self._single(script, seed) for script, seed in jobs]
            return self._batched(jobs)
        finally:
            self.seconds += clock() - began

    def _single(self, script: Script, seed: int) -> bool:
        assert self.desk.signature is not None
        spec = launch.spec(script, self.environment, self.desk.job.options, self.desk.signature, seed, "minimise")
        self.runs, self.rounds = self.runs + 1, self.rounds + 1
        return self._met(self.desk.execute(spec), script)

    def _met(self, result: RunResult, script: Script) -> bool:
        assert self.desk.signature is not None
        judgement = judge.judge(observe.observe(result, self.environment.roots), self.desk.signature, script)
        met = self.holds(judgement, script)
        if judgement.match in {Match.OTHER, Match.DECOY}:
            self.broken.add(script.digest)
        if met and judgement.failure is not None:
            self.stacks[script.digest] = _stack(judgement.failure, script)
        return met

    def _batched(self, jobs: list[tuple[Script, int]]) -> list[bool]:
        """One run of the sandbox; where a program ended the server, that one is tried alone and the rest again."""
        met = [False] * len(jobs)
        left, deaths = list(range(len(jobs))), 0
        alone: list[list[int]] = []
        while left and deaths <= _DEATHS and not self._late():
            found = set[int]()
            for at, row in self._run([jobs[place] for place in left]):
                script = jobs[left[at]][0]
                met[left[at]] = self._met(row.result(), script) and self._arises(row)
                self._note(row, script)
                found.add(at)
            lost = [place for at, place in enumerate(left) if at not in found]
            if lost and len(left) > 1:
                deaths += 1
                alone.extend([place] for place in lost[:DEGREE])
                left = lost[DEGREE:]
            else:
                left = []
            if not left and alone and deaths <= _DEATHS:
                left = alone.pop()
        return met

    def _arises(self, row: Row) -> bool:
        """Whether a value that is not finite comes from the operation that it came from in the program as it was settled with:
        an empty mean is NaN too.
        """
        if not self.watch:
            return True
        if self.settling:
            self.origins.add(row.first)
        return row.first in self.origins

    def _note(self, row: Row, script: Script) -> None:
        if self.base is not None and script.digest == self.base.digest and not row.timed_out:
            most = self.desk.job.options.timeout_s
            self.limit_s = min(most, _LIMIT_S + _SLOWER * row.seconds)
            self.limit_cpu_s = min(most, _LIMIT_CPU_S + _SLOWER * row.cpu)

    def _unlimited(self) -> None:
        """Nothing is known yet of how long a program takes."""
        self.limit_s = self.limit_cpu_s = self.desk.job.options.timeout_s

    def _run(self, jobs: list[tuple[Script, int]]) -> Iterator[tuple[int, Row]]:
        """What became of each program, as it ends; nothing of one that took the server with it."""
        self.runs, self.rounds = self.runs + len(jobs), self.rounds + 1
        if self.server is None or self.server.worn:
            self.close()
            self.server = Server(self.desk, lambda inbox: self._spec(jobs[0][1], inbox))
        left = max(0.0, self.until - self.desk.ports.clock())
        wait = min(_MOST_WALL_S, left, _IMPORT_S + self.limit_s * (1 + len(jobs) / DEGREE))
        for _, data in self.server.ask(self._round(jobs), wait):
            try:
                row = Row.model_validate_json(data)
            except ValidationError:
                continue
            if row.covered:
                self._learn(row.covered)
            if 0 <= row.id < len(jobs):
                yield row.id, row

    def _learn(self, covered: str) -> None:
        """Which lines ran, and what libraries import only when it is needed, which the next server does beforehand."""
        with suppress(ValidationError):
            found = Covered.model_validate_json(covered)
            self.reached, self.seen = frozenset(found.lines), found.tensors
            ours = own(self.base) if self.base is not None else set()
            names = [name for name in found.modules if _NAME.fullmatch(name) and name.split(".")[0] not in ours]
            self.late = names[:_MOST_LATE]

    def _spec(self, seed: int, inbox: str) -> RunSpec:
        assert self.desk.signature is not None
        assert self.base is not None
        plain = launch.spec(self.base, self.environment, self.desk.job.options, self.desk.signature, seed, "minimise")
        return rounds.serving(plain, inbox, self.mode)

    def _round(self, scripts: list[tuple[Script, int]]) -> dict[str, object]:
        assert self.base is not None
        cover, self.cover = self.base if self.cover else None, False
        return {
            "jobs": rounds.jobs(scripts, cover),
            "mode": self.mode,
            "watch": self.watch,
            "degree": DEGREE,
            "limit_s": self.limit_s,
            "limit_cpu_s": self.limit_cpu_s,
            "output_bytes": Limits().output_bytes // 8,
            "modules": [*heavy(self.base), *self.late],
        }


def _not_finite(member: Member) -> Kind:
    """Which kind of value a failure is about, "" when it is about another thing."""
    if not isinstance(member, NonFiniteSignature):
        return ""
    return "nan" if any("nan" in value.lower() for value in member.values) else "inf"


def _stack(failure: Failure, script: Script) -> Stack:
    """The lines of the program on which a failure arose."""
    return frozenset(
        (path, frame.line)
        for frame in failure.frames
        for path in script.files
        if frame.line is not None and not frame.package and frame.path.endswith(f"/{path}")
    )


def _crash_staged(text: str, member: object) -> bool:
    """The checks of a single file that make sense for one that is not the program's entry."""
    return isinstance(member, CrashSignature | WarningSignature) and bool(staged.staged(text, member))
