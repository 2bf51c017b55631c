"""Trials of a program with patches: each patch, seed and part of the data once, in parallel,
kept as they end, and counted against a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from statistics import fmean
from typing import NamedTuple

from bot.models.diagnosis import TrainingProgram
from bot.models.environment import Environment
from bot.models.journal import EntryKind
from bot.models.repair import Hyperparameter, KeptTrial, Metric, Patch, Trial
from bot.models.training import TrainingTrace
from bot.pipeline.diagnosis import endings, trace as traces
from bot.pipeline.execution import launch
from bot.pipeline.execution.launch import Part
from bot.pipeline.execution.session import Session
from bot.pipeline.repair.trial_runs import TrialRun, TrialRuns
from bot.rules import hyperparameters
from bot.rules.hyperparameters import Observation, ProgramFile
from bot.rules.repair import metric as metrics
from bot.rules.repair.comparing import score
from sandbox.port import RunResult


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

    def patched(self, patch: Patch) -> TrainingProgram:
        """The program with a patch. Raises NotApplicable."""
        program = self.program
        if not patch:
            return program
        made = hyperparameters.patched(program.source, patch, self.trace, self.files, self.observed)
        changed = {**made.files, program.entry: made.source}
        files = {**program.files, **{name: text.encode() for name, text in changed.items()}}
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
        for each in self.session.ports.journal.read(TRIALS):
            if each.key == self.key:
                trial = each.trial
                self._kept[_key(TrialRequest(trial.patch, trial.seed, trial.part))] = each

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left; trials of the unpatched program are free."""
        return self.budget_s - sum(x.seconds for x in self.made.values() if x.patch)

    def run(self, tasks: Iterable[TrialRequest]) -> list[Trial]:
        """The trials in the order of the tasks. Raises Stopped."""
        asked = list(tasks)
        new = list({_key(task): task for task in asked if _key(task) not in self._kept}.values())
        programs = [self.subject.patched(task.patch) for task in new]
        runs = [TrialRun(p, task.seed, task.part) for p, task in zip(programs, new, strict=True)]
        for place, result in self.runs.run(runs) if runs else ():
            made = self._trial(new[place], result)
            self._kept[_key(new[place])] = made
            self.session.ports.journal.append(TRIALS, made)
            self.heard(made.trial)
        self.made |= {_key(task): self._kept[_key(task)].trial for task in asked}
        return [self.made[_key(task)] for task in asked]

    def symptom(self, task: TrialRequest) -> str:
        """What `look` saw in the trace of a trial that was made with it."""
        return self._kept[_key(task)].symptom

    def score(self, patch: Patch, seeds: Sequence[int]) -> float:
        """The mean of a patch on the guide's part over seeds, more is better."""
        rows = self.run(TrialRequest(patch, seed, self.subject.guide) for seed in seeds)
        return fmean(score(row.value, self.subject.metric.direction) for row in rows)

    def _trial(self, task: TrialRequest, result: RunResult) -> KeptTrial:
        seen = traces.read(result.artifacts) if self.runs.probed else None
        value = metrics.read(self.subject.metric, result.stdout, seen)
        told = endings.ended(result) == "completed" and value is not None
        trial = Trial(
            patch=task.patch,
            seed=task.seed,
            part=task.part,
            value=value if told else None,
            seconds=result.seconds,
            rows_split=any(launch.SPLIT in name for name in result.artifacts),
            error="" if told else _why(result),
        )
        symptom = self.look(seen) if self.look and seen else ""
        return KeptTrial(key=self.key, trial=trial, symptom=symptom)


def _entry_key(kept: KeptTrial) -> str:
    trial = kept.trial
    edits = sorted((edit.parameter, edit.after) for edit in trial.patch)
    return sha256(repr((kept.key, edits, trial.seed, trial.part)).encode()).hexdigest()


TRIALS = EntryKind("trials", KeptTrial, _entry_key, until_report=True)


def _key(task: TrialRequest) -> object:
    edits = frozenset((edit.parameter, edit.after) for edit in task.patch)
    return edits, task.seed, task.part


def _why(result: RunResult) -> str:
    if endings.ended(result) == "completed":
        return "the program printed no finite metric"
    return endings.error(result) or f"the program {endings.ended(result)}"
