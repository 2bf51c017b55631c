"""A folder of training programs, repaired by each arm on equal budgets."""

from __future__ import annotations

from typing import Annotated

import typer

from benchmarks.commands.arguments import (
    AsJson,
    CaseJobs,
    FaultCases,
    Kept,
    Only,
    SandboxName,
    SearchBudget,
    TrainingPython,
    TrainingTimeout,
)
from bot.cli.error_boundary import boundary
from bot.kernel.job import EnvironmentOptions, JobOptions, RunLimits
from bot.kernel.settings import load


def repairs(
    folder: FaultCases,
    arms: Annotated[
        str,
        typer.Option(
            help="Searches: reprise, random, tpe, bohb, hebo, autotrainer.", metavar="NAME,..."
        ),
    ] = "reprise,random,bohb",
    budget: SearchBudget = 10,
    only: Only = "",
    jobs: CaseJobs = 1,
    sandbox: SandboxName = "auto",
    python: TrainingPython = None,
    timeout: TrainingTimeout = 600,
    out: Kept = None,
    as_json: AsJson = False,
) -> None:
    """Repair training programs with known faults, and compare each patch with the key's repair.

    Every patch is trained with six seeds that no search has used. Trials are stored, so a
    stopped run resumes.
    """
    with boundary():
        from benchmarks.commands.printing import print_whole, printed
        from benchmarks.fault_runs import find
        from benchmarks.repair_runs import RepairBenchRuns, run
        from benchmarks.repair_tables import line, repairs_table
        from benchmarks.repairs import summarise
        from sandbox.select import choose

        settings = load()
        options = JobOptions(
            environment=EnvironmentOptions(sandbox=sandbox), limits=RunLimits(timeout_s=timeout)
        )
        kept, names = out or settings.runs_dir / "repairs", tuple(arms.split(","))
        bench = RepairBenchRuns(settings, options, choose(sandbox), kept, python, budget, names)
        cases = find(folder, [each for each in only.split(",") if each])
        whole = summarise(printed(run(cases, bench, jobs), line))
        print_whole(whole, repairs_table, as_json=as_json)
