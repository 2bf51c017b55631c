"""Trials of a program with patches: each patch, seed and part of the data once, in parallel,
kept as they end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from statistics import fmean
from typing import NamedTuple

from pydantic import ValidationError

from bot.kernel import batch, endings, launch, training_trace as trace
from bot.kernel.attempt import Script
from bot.kernel.batch import BatchServer, CandidateResult, Coverage, late_imports
from bot.kernel.environment import Environment
from bot.kernel.journal import EntryKind
from bot.kernel.launch import Part
from bot.kernel.session import Session
from bot.kernel.training_types import (
    Edit,
    Hyperparameter,
    KeptTrial,
    Metric,
    Patch,
    TrainingProgram,
    TrainingTrace,
    Trial,
)
from bot.program import hyperparameters
from bot.program.line_edits import EditRefused, check_edit
from bot.program.literals import Observation
from bot.program.modules import ProgramFile
from bot.training.repair import metric
from bot.training.repair.metric import score
from sandbox.port import Limits, RunResult, RunSpec

# Runs trials: forks of one sandboxed process that has imported the framework once, where the
# program allows that, otherwise each in a run of its own.

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
        pending = dict(enumerate(runs))
        if not self.probed and not self._alone and all(map(_forkable, runs)):
            for place, result in self._forked(runs):
                if pending.pop(place, None) is not None:
                    yield place, result
            self._alone = bool(pending)
        for place, one in pending.items():
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
                coverage = Coverage.model_validate_json(row.covered or "{}")
                self._late = late_imports(coverage, _script(runs[0].program)) or self._late

    def _serving(self, one: TrialRun) -> Callable[[str], RunSpec]:
        plain = self._spec(one)

        def begin(inbox: str) -> RunSpec:
            served = batch.serving(plain, inbox, "fork")
            trial = {launch.TRIAL: plain.files[launch.TRIAL]}
            return replace(served, files={**served.files, **trial})

        return begin

    def _plan(self, runs: Sequence[TrialRun]) -> dict[str, object]:
        scripts = [(_script(one.program), one.seed) for one in runs]
        jobs = batch.jobs(scripts, late=0 if self._late else 1)
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
            "modules": [*batch.libraries(scripts[0][0]), *self._late],
        }

    def _spec(self, one: TrialRun) -> RunSpec:
        return launch.trial_spec(
            one.program, self.environment, self.session.job, one.part, one.seed,
            limit_s=self.limit_s, with_probe=self.probed,
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


# Trials of a program with patches: each patch, seed and part of the data once, in parallel, kept
# as they end, and counted against a budget.


class TrialRequest(NamedTuple):
    """A training to make."""

    patch: Patch
    seed: int
    part: Part


@dataclass(frozen=True, kw_only=True)
class FaultyProgram:
    """The program under repair: where it runs, what it is judged by (which may be the `loss`
    itself), how long it takes, and what a run told of its values.
    """

    program: TrainingProgram
    environment: Environment
    trace: TrainingTrace
    metric: Metric
    seconds: float
    loss: bool = False
    split: bool = False
    observed: Observation = field(default_factory=dict)

    @property
    def guide(self) -> Part:
        """The part that patches are chosen on."""
        return "guide" if self.split else "whole"

    @property
    def held_out(self) -> Part:
        """The part that a patch is proven on."""
        return "held-out" if self.split else "whole"

    @cached_property
    def files(self) -> tuple[ProgramFile, ...]:
        """The program's modules."""
        return hyperparameters.program_files(self.program.files, self.program.entry)

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """Those of the program and its modules."""
        return hyperparameters.find(self.program.source, self.trace, self.files, self.observed)

    def refusal(self, edit: Edit) -> str:
        """Why lines that a model would replace are not tried; "" where they may be."""
        texts = {"": self.program.source, **{file.name: file.text for file in self.files}}
        try:
            check_edit(texts, edit, self.metric, is_loss=self._may_be_loss)
        except EditRefused as error:
            return str(error)
        return ""

    @property
    def _may_be_loss(self) -> bool:
        """Whether the loss is what is compared, perhaps by what `evaluate` of Keras returns."""
        trace = self.trace
        is_keras = any(model.framework == "keras" for model in trace.models)
        names = (loss.name for loss in trace.losses)
        return self.loss or (is_keras and metric.may_be_loss(self.metric, names))

    def patched(self, patch: Patch) -> TrainingProgram:
        """The program with a patch. Raises NotApplicable, also for lines that a model may not
        replace.
        """
        program = self.program
        if not patch:
            return program
        for edit in patch:
            if edit.kind == "lines" and (why := self.refusal(edit)):
                raise hyperparameters.NotApplicable(f"The edit is refused: {why}.")
        patched_program = hyperparameters.patch_program(
            program.source, patch, self.trace, self.files, self.observed
        )
        changed_files = {**patched_program.files, program.entry: patched_program.source}
        files = {**program.files, **{name: text.encode() for name, text in changed_files.items()}}
        return program.model_copy(update={"files": files})


@dataclass(slots=True)
class Trials:
    """Makes trials and remembers them; `budget_s` is for those that are searched with. A kept trial
    counts when it is asked for, so that a search that goes on does what it did before. What `look`
    sees in the trace of a probed trial is kept with it.
    """

    subject: FaultyProgram
    session: Session
    key: str
    runs: TrialRuns
    budget_s: float
    heard: Callable[[Trial], None] = lambda _: None
    look: Callable[[TrainingTrace], str] | None = None
    made: dict[object, Trial] = field(default_factory=dict)
    _kept: dict[object, KeptTrial] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for recorded in self.session.ports.journal.read(TRIALS):
            if recorded.key == self.key:
                trial = recorded.trial
                self._kept[_key(TrialRequest(trial.patch, trial.seed, trial.part))] = recorded

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left; trials of the unpatched program are free."""
        return self.budget_s - sum(x.seconds for x in self.made.values() if x.patch)

    def run(self, tasks: Iterable[TrialRequest]) -> list[Trial]:
        """The trials in the order of the tasks. Raises Stopped."""
        requests = list(tasks)
        new = list({_key(task): task for task in requests if _key(task) not in self._kept}.values())
        programs = [self.subject.patched(task.patch) for task in new]
        runs = [TrialRun(p, task.seed, task.part) for p, task in zip(programs, new, strict=True)]
        for place, result in self.runs.run(runs) if runs else ():
            trial = self._trial(new[place], result)
            self._kept[_key(new[place])] = trial
            self.session.ports.journal.append(TRIALS, trial)
            self.heard(trial.trial)
        self.made |= {_key(task): self._kept[_key(task)].trial for task in requests}
        return [self.made[_key(task)] for task in requests]

    def made_with(self, task: TrialRequest) -> Trial | None:
        """The trial, if it was made or asked for."""
        return self.made.get(_key(task))

    @property
    def trainings(self) -> list[Trial]:
        """The trials that were made, each once: one whose rows could not be split may stand for
        one on all rows as well.
        """
        return [
            trial
            for trial in self.made.values()
            if trial.rows_split
            or trial.part == "whole"
            or _key(TrialRequest(trial.patch, trial.seed, "whole")) not in self.made
        ]

    def keep_whole(self, trial: Trial) -> None:
        """Keep a trial whose rows could not be split as one on all rows, which it was."""
        whole = trial.model_copy(update={"part": "whole"})
        task = TrialRequest(trial.patch, trial.seed, "whole")
        self._kept[_key(task)] = KeptTrial(key=self.key, trial=whole)

    def symptom(self, task: TrialRequest) -> str:
        """What `look` saw in the trace of a trial that was made with it."""
        return self._kept[_key(task)].symptom

    def score(self, patch: Patch, seeds: Sequence[int]) -> float:
        """The mean of a patch on the guide's part over seeds, more is better."""
        rows = self.run(TrialRequest(patch, seed, self.subject.guide) for seed in seeds)
        return fmean(score(row.value, self.subject.metric.direction) for row in rows)

    def _trial(self, task: TrialRequest, result: RunResult) -> KeptTrial:
        trial_trace = trace.read_trace(result.artifacts) if self.runs.probed else None
        value = metric.read_value(self.subject.metric, result.stdout, trial_trace)
        is_completed = endings.ending_of(result) == "completed" and value is not None
        trial = Trial(
            patch=task.patch,
            seed=task.seed,
            part=task.part,
            value=value if is_completed else None,
            seconds=result.seconds,
            rows_split=any(launch.SPLIT in name for name in result.artifacts),
            error="" if is_completed else _why(result),
        )
        symptom = self.look(trial_trace) if self.look and trial_trace else ""
        return KeptTrial(key=self.key, trial=trial, symptom=symptom)


def _entry_key(entry: KeptTrial) -> str:
    trial = entry.trial
    edits = sorted((edit.parameter, edit.after) for edit in trial.patch)
    return sha256(repr((entry.key, edits, trial.seed, trial.part)).encode()).hexdigest()


TRIALS = EntryKind("trials", KeptTrial, _entry_key, until_report=True)


def _key(task: TrialRequest) -> object:
    edits = frozenset((edit.parameter, edit.after) for edit in task.patch)
    return edits, task.seed, task.part


def _why(result: RunResult) -> str:
    if endings.ending_of(result) == "completed":
        return "the program printed no finite metric"
    return endings.error(result) or f"the program {endings.ending_of(result)}"
