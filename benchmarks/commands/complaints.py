"""A folder of training programs as bug reports that complain of them."""

from __future__ import annotations

from threading import Event
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
)
from bot.cli.error_boundary import boundary
from bot.kernel.errors import UserError
from bot.kernel.job import EnvironmentOptions, IssueOptions, RunLimits, TrainingOptions
from bot.kernel.settings import load


def complaints(
    folder: FaultCases,
    only: Only = "",
    jobs: CaseJobs = 1,
    sandbox: SandboxName = "auto",
    out: Kept = None,
    budget: SearchBudget = 5.0,
    timeout: Annotated[float, typer.Option(help="Seconds per program.", metavar="S")] = 300,
    as_json: AsJson = False,
) -> None:
    """Reproduce training complaints, repair them, and read the same report with the repaired
    program.
    """
    with boundary():
        from benchmarks.commands.printing import print_whole, printed
        from benchmarks.complaints import ComplaintBench, line, run, summarise, table
        from bot.kernel.training_types import RepairRequest
        from sandbox.select import choose

        prefixes = tuple(each for each in only.split(",") if each)
        paths = sorted((folder / "cases").glob("*.json"))
        selected_paths = [path for path in paths if not prefixes or path.stem.startswith(prefixes)]
        if not selected_paths:
            raise UserError(f"{folder} has no such case.", "Name a folder with cases/*.json.")
        settings = load()
        training = TrainingOptions(repair=RepairRequest(budget=budget))
        options = IssueOptions(
            environment=EnvironmentOptions(sandbox=sandbox),
            limits=RunLimits(timeout_s=timeout),
            training=training,
        )
        runs = out or settings.runs_dir / "complaints"
        bench = ComplaintBench(settings, options, choose(sandbox), runs, Event())
        rows = printed(run(selected_paths, bench, jobs), line)
        print_whole(summarise(rows), table, as_json=as_json)
