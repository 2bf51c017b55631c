"""Runs many programs, in one sandboxed run or each in its own, and returns the result of each."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from bot.models.attempt import Mode, Script
from bot.models.environment import Environment
from bot.models.signature import AnySignature
from bot.pipeline.execution import launch
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof import batch_server
from bot.pipeline.proof.batch_server import (
    DEGREE,
    BatchServer,
    CandidateResult,
    Coverage,
    late_imports,
    libraries,
)
from bot.pipeline.proof.failure_test import NonFiniteKind
from sandbox.port import Limits, RunResult, RunSpec

_IMPORT_S, _LIMIT_S, _LIMIT_CPU_S, _SLOWER, _MAX_WALL_S = 60.0, 1.0, 0.5, 8, 600.0
_MAX_DEATHS = 3
Job = tuple[Script, int]


@dataclass(frozen=True, slots=True)
class CandidateRun:
    """A run of a program: its result, the first operation with a non-finite result, and what it
    left in its working directory.
    """

    result: RunResult
    origin: str = ""
    left: frozenset[str] = frozenset()


@dataclass(slots=True)
class BatchRunner:
    """Runs programs with a seed each. `runs` counts the processes; what has not begun `until`
    then, by the job's clock, is not run. A batch may import what `base` imports beforehand, and
    the limits of time are in terms of how long `base` takes.
    """

    runner: Runner
    environment: Environment
    signature: AnySignature
    mode: Mode = "fork"
    watch: NonFiniteKind = ""
    until: float = math.inf
    runs: int = 0
    base: Script | None = None
    coverage: Coverage = field(default_factory=Coverage)
    late_imports: tuple[str, ...] = ()
    limit_s: float = field(init=False)
    limit_cpu_s: float = field(init=False)
    cover: bool = False
    _server: BatchServer | None = None

    def __post_init__(self) -> None:
        self._unlimited()

    def close(self) -> None:
        """End the server; the next round would start another."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def begin(self, base: Script, mode: Mode, watch: NonFiniteKind) -> None:
        """Run programs in another way from here on."""
        self.close()
        self._unlimited()
        self.base, self.mode, self.watch = base, mode, watch

    def rebase(self, base: Script) -> None:
        """Go on from a smaller program: what it no longer imports, a new server will not have
        imported either.
        """
        if self.base is not None and set(libraries(base)) < set(libraries(self.base)):
            self.close()
            self.late_imports = ()
            self._unlimited()  # the next run imports by itself what the server has not
        self.base, self.cover = base, True

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self.runner.ports.clock() > self.until

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, CandidateRun]]:
        """What became of each program, with its place among the jobs. One that ended the server
        is tried alone, and the rest again.
        """
        left, alone, deaths = list(range(len(jobs))), list[list[int]](), 0
        while left and deaths <= _MAX_DEATHS and not self.late:
            found = set[int]()
            for at, run in self._round([jobs[place] for place in left]):
                found.add(at)
                yield left[at], run
            lost = [place for at, place in enumerate(left) if at not in found]
            left = []
            if lost and len(found) + len(lost) > 1:
                deaths += 1
                alone += [[place] for place in lost[:DEGREE]]
                left = lost[DEGREE:]
            if not left and alone:
                left = alone.pop()

    def _round(self, jobs: Sequence[Job]) -> Iterator[tuple[int, CandidateRun]]:
        if self.mode != "single":
            yield from self._batch(jobs)
            return
        for place, (script, seed) in enumerate(jobs):
            if not self.late:
                self.runs += 1
                yield place, self._single(script, seed)

    def _single(self, script: Script, seed: int) -> CandidateRun:
        plain = self._spec(script, seed)
        result = self.runner.execute(replace(plain, artifacts=(*plain.artifacts, "*")))
        names = {path for path in result.artifacts if not path.startswith(".reprise/")}
        return CandidateRun(result, left=frozenset(names - script.files.keys()))

    def _batch(self, jobs: Sequence[Job]) -> Iterator[tuple[int, CandidateRun]]:
        """One round of a server; nothing of a program that took the server with it."""
        assert self.base is not None
        self.runs += len(jobs)
        base, mode, seed = self.base, self.mode, jobs[0][1]
        if self._server is None or self._server.worn:
            self.close()
            self._server = BatchServer(
                self.runner,
                lambda inbox: batch_server.serving(self._spec(base, seed), inbox, mode),
            )
        left = max(0.0, self.until - self.runner.ports.clock())
        wait = min(_MAX_WALL_S, left, _IMPORT_S + self.limit_s * (1 + len(jobs) / DEGREE))
        for _, data in self._server.ask(self._plan(base, jobs), wait):
            with suppress(ValidationError):
                row = CandidateResult.model_validate_json(data)
                self._learn(row, base)
                if 0 <= row.id < len(jobs):
                    self._limit(row, jobs[row.id][0])
                    yield row.id, CandidateRun(row.result(), row.first, frozenset(row.left))

    def _spec(self, script: Script, seed: int) -> RunSpec:
        job = self.runner.job
        return launch.spec(script, self.environment, job, self.signature, seed, "minimise")

    def _plan(self, base: Script, jobs: Sequence[Job]) -> dict[str, object]:
        cover, self.cover = base if self.cover else None, False
        return {
            "jobs": batch_server.jobs(jobs, cover),
            "mode": self.mode,
            "watch": self.watch,
            "degree": DEGREE,
            "limit_s": self.limit_s,
            "limit_cpu_s": self.limit_cpu_s,
            "output_bytes": Limits().output_bytes // 8,
            "modules": [*libraries(base), *self.late_imports],
        }

    def _learn(self, row: CandidateResult, base: Script) -> None:
        """Which lines ran, and what libraries import only when they need it: the next server
        imports that beforehand.
        """
        if row.covered:
            with suppress(ValidationError):
                self.coverage = found = Coverage.model_validate_json(row.covered)
                self.late_imports = late_imports(found, base)

    def _limit(self, row: CandidateResult, script: Script) -> None:
        if script == self.base and not row.timed_out:
            most = self.runner.job.limits.timeout_s
            self.limit_s = min(most, _LIMIT_S + _SLOWER * row.seconds)
            self.limit_cpu_s = min(most, _LIMIT_CPU_S + _SLOWER * row.cpu)

    def _unlimited(self) -> None:
        """Nothing is known yet of how long a program takes."""
        self.limit_s = self.limit_cpu_s = self.runner.job.limits.timeout_s
