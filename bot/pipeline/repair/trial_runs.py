"""Runs trials: forks of one sandboxed process that has imported the framework once, where the
program allows that, otherwise each in a run of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import ValidationError

from bot.models.attempt import Script
from bot.models.diagnosis import TrainingProgram
from bot.models.environment import Environment
from bot.pipeline.execution import launch
from bot.pipeline.execution.session import Session
from bot.pipeline.proof import batch_server
from bot.pipeline.proof.batch_server import BatchServer, CandidateResult, Coverage, late_imports
from sandbox.port import Limits, RunResult, RunSpec

_IMPORT_S = 120.0
_MOST_TEXT = 2 << 20


class TrialRun(NamedTuple):
    """A program to train, with a seed, on a part of the rows that it tests on."""

    program: TrainingProgram
    seed: int
    part: launch.Part


@dataclass(slots=True)
class TrialRuns:
    """Where the trials of one program run. `jobs` are at work at the same time, each for `limit_s`
    at most. `probed`: with the training probe. `close` must be called.
    """

    session: Session
    environment: Environment
    limit_s: float
    jobs: int = 1
    probed: bool = False
    _server: BatchServer | None = None
    _alone: bool = False
    _late: tuple[str, ...] = ()

    def run(self, runs: Sequence[TrialRun]) -> Iterator[tuple[int, RunResult]]:
        """The result of each, with its place, as they end. One that took the server with it runs
        again by itself. Raises Stopped.
        """
        left = dict(enumerate(runs))
        if not self.probed and not self._alone and all(map(_forkable, runs)):
            for place, result in self._forked(runs):
                if left.pop(place, None) is not None:
                    yield place, result
            self._alone = bool(left)
        for place, one in left.items():
            yield place, self.session.execute(self._spec(one))

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _forked(self, runs: Sequence[TrialRun]) -> Iterator[tuple[int, RunResult]]:
        if self._server is None or self._server.worn:
            self.close()
            self._server = BatchServer(self.session, self._serving(runs[0]))
        rounds = -(-len(runs) // self.jobs)
        wait = _IMPORT_S + self.limit_s * (1 + rounds)
        for _, data in self._server.ask(self._plan(runs), wait):
            with suppress(ValidationError):
                row = CandidateResult.model_validate_json(data)
                yield row.id, row.result()
                reached = Coverage.model_validate_json(row.covered or "{}")
                self._late = late_imports(reached, _script(runs[0].program)) or self._late

    def _serving(self, one: TrialRun) -> Callable[[str], RunSpec]:
        plain = self._spec(one)

        def begin(inbox: str) -> RunSpec:
            served = batch_server.serving(plain, inbox, "fork")
            trial = {launch.TRIAL: plain.files[launch.TRIAL]}
            return replace(served, files={**served.files, **trial})

        return begin

    def _plan(self, runs: Sequence[TrialRun]) -> dict[str, object]:
        scripts = [(_script(one.program), one.seed) for one in runs]
        jobs = batch_server.jobs(scripts, late=0 if self._late else 1)
        for job, one in zip(jobs, runs, strict=True):
            job["env"] = {"REPRISE_TRIAL": one.part}
        return {
            "jobs": jobs,
            "mode": "fork",
            "watch": "",
            "degree": self.jobs,
            "limit_s": self.limit_s,
            "limit_cpu_s": self.limit_s * max(self.jobs, Limits().cpus),
            "output_bytes": Limits().output_bytes // 8,
            "modules": [*batch_server.libraries(scripts[0][0]), *self._late],
        }

    def _spec(self, one: TrialRun) -> RunSpec:
        return launch.trial_spec(
            one.program, self.environment, self.session.job, one.part, one.seed,
            limit_s=self.limit_s, probed=self.probed,
        )  # fmt: skip


def _forkable(one: TrialRun) -> bool:
    """Whether a fork can be this program: it is given all files anew, as texts."""
    program = one.program
    if program.arguments or sum(map(len, program.files.values())) > _MOST_TEXT:
        return False
    try:
        return all(data.decode() is not None for data in program.files.values())
    except UnicodeDecodeError:
        return False


def _script(program: TrainingProgram) -> Script:
    texts = {name: data.decode("utf-8", "replace") for name, data in program.files.items()}
    return Script(files=texts, entry=program.entry)
