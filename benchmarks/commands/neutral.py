"""Other ground truths of a folder of training programs."""

from __future__ import annotations

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


def neutral(
    folder: FaultCases,
    budget: SearchBudget = 200,
    only: Only = "",
    jobs: CaseJobs = 1,
    sandbox: SandboxName = "auto",
    python: TrainingPython = None,
    timeout: TrainingTimeout = 600,
    out: Kept = None,
    as_json: AsJson = False,
) -> None:
    """Find other configurations of faulty programs that learn as well as the key's repair.

    Neighbours that differ in one hyperparameter, breadth first, with paired seeds. Trials are
    stored: a stopped run resumes, and a larger budget goes further.
    """
    with boundary():
        from benchmarks.commands.printing import print_whole, printed
        from benchmarks.fault_runs import find
        from benchmarks.neutral_runs import NeutralBench, line, neutral_table, run
        from benchmarks.recorded_programs import BenchRuns
        from sandbox.select import choose

        settings = load()
        options = JobOptions(
            environment=EnvironmentOptions(sandbox=sandbox), limits=RunLimits(timeout_s=timeout)
        )
        kept = out or settings.runs_dir / "neutral"
        bench = BenchRuns(settings, options, choose(sandbox), kept, python, budget)
        cases = find(folder, [each for each in only.split(",") if each])
        rows = printed(run(cases, bench, jobs), line)
        whole = NeutralBench(cases=tuple(sorted(rows, key=lambda row: row.id)))
        print_whole(whole, neutral_table, as_json=as_json)
