"""Runs the programs of a repair bench through each arm on equal budgets, and measures every patch
on seeds that no arm has used. Trials are kept, so that a stopped bench goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from benchmarks.fault_runs import FaultCase
from benchmarks.recorded_programs import BenchRuns, RecordedProgram
from benchmarks.repair_arms import ARMS
from benchmarks.repairs import RepairRow, measured, recovered, truth_edits
from bot.kernel.errors import RepriseError
from bot.kernel.session import Session
from bot.kernel.training_types import Patch, RepairRequest, Trial
from bot.report.run_folder import Folder
from bot.training.repair import metric
from bot.training.repair.repair import FRESH, changeable, open_trials, repair
from bot.training.repair.trials import TrialRequest, Trials
from sandbox.port import SandboxError

SEEDS = tuple(range(3001, 3001 + metric.SEEDS))
"""What patches are measured with; no arm trains with them."""
OURS = "reprise"


@dataclass(frozen=True, slots=True)
class RepairBenchRuns(BenchRuns):
    """How the programs are run, and through which arms."""

    arms: tuple[str, ...] = ("reprise",)


def run(cases: Sequence[FaultCase], bench: RepairBenchRuns, jobs: int) -> Iterator[RepairRow]:
    """The rows of each case as it ends; healthy programs have nothing to repair."""
    faulty = [case for case in cases if not case.healthy]
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="repairs") as pool:
        for done in as_completed([pool.submit(_rows, case, bench) for case in faulty]):
            yield from done.result()


def _rows(case: FaultCase, bench: RepairBenchRuns) -> list[RepairRow]:
    if case.unclear:
        return [_bare(case, arm).model_copy(update={"error": case.unclear}) for arm in bench.arms]
    try:
        with closing(Folder(bench.out / case.id / "recorded")) as folder:
            subject = RecordedProgram.of(case, bench, folder)
            return [_row(case, arm, bench, subject) for arm in bench.arms]
    except (RepriseError, SandboxError) as error:
        text = f"{type(error).__name__}: {error}"[:300]
        return [_bare(case, arm).model_copy(update={"error": text}) for arm in bench.arms]


class _Outcome(NamedTuple):
    """What an arm came to: its patch, whether it calls it proven, and what it searched with."""

    patch: Patch
    claimed: bool
    spent: Sequence[Trial]


def _bare(case: FaultCase, arm: str) -> RepairRow:
    truth = case.key.get("repaired") or ()
    return RepairRow(
        id=case.id, arm=arm, improvement_rate=None, significant=False, edits=0,
        truth_edits=0 if case.unclear else truth_edits(case.key["ground_truth"]), trainings=0,
        truth=fmean(truth) if truth else None,
    )  # fmt: skip


def _row(case: FaultCase, arm: str, bench: RepairBenchRuns, subject: RecordedProgram) -> RepairRow:
    request, row = bench.request(case), _bare(case, arm)
    with closing(Folder(bench.out / case.id / arm)) as folder:
        own = subject.session_in(folder)
        with open_trials(subject.program, subject.run, own, request) as trials:
            if isinstance(trials, str):
                return row.model_copy(update={"error": trials})
            found = None if arm == OURS else _theirs(arm, trials)
        found = found or _ours(subject, own, request)
    told = {
        "edits": len(found.patch),
        "claimed": found.claimed,
        "trainings": len(found.spent),
        "seconds": sum(trial.seconds for trial in found.spent),
        "budget_s": trials.budget_s,
        "complexity": len(found.patch) / len(changeable(trials)),
        "recovered": recovered((x.operator for x in found.patch), case.key["ground_truth"]),
        "patch": tuple(f"{x.parameter} {x.before} → {x.after}" for x in found.patch),
    }
    with closing(Folder(bench.out / case.id / "measured")) as folder:
        before, after = _measured_nodes(found.patch, trials, subject.session_in(folder))
    direction = trials.subject.metric.direction
    return measured(row.model_copy(update=told), before, after, direction)


def _ours(subject: RecordedProgram, session: Session, request: RepairRequest) -> _Outcome:
    found = repair(subject.program, subject.run, session, request)
    return _Outcome(found.patch, found.proven, [x for x in found.tried if x.seed not in FRESH])


def _theirs(arm: str, trials: Trials) -> _Outcome:
    patch = ARMS[arm](trials, changeable(trials))
    return _Outcome(patch, claimed=False, spent=tuple(trials.made.values()))


def _measured_nodes(
    patch: Patch, trials: Trials, session: Session
) -> tuple[list[float | None], list[float | None]]:
    """The metric of the faulty and of the patched program on all rows, with fresh seeds. Each may
    take as long as in a proof: what a search could just wait for must not fail here.
    """
    limit = 2 * trials.runs.limit_s
    with closing(replace(trials.runs, session=session, limit_s=limit)) as runs:
        fresh = Trials(trials.subject, session, "measured", runs, budget_s=0.0)
        tasks = [TrialRequest(each, seed, "whole") for each in ((), patch) for seed in SEEDS]
        values = [row.value for row in fresh.run(tasks)]
    return values[: len(SEEDS)], values[len(SEEDS) :]
