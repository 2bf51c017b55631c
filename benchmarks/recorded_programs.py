"""The faulty programs of a bench, each with the run that tells how it trains."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.fault_runs import FaultCase, TrainingBench, recorded
from bot.kernel.session import Session
from bot.kernel.training_types import RepairRequest, TrainingProgram
from bot.report.run_folder import Folder
from bot.training.diagnose import RecordedRun


@dataclass(frozen=True, slots=True)
class BenchRuns(TrainingBench):
    """A bench of searches. `budget` is in times of one run of the faulty program."""

    budget: float = 10

    def request(self, case: FaultCase) -> RepairRequest:
        """What is asked for a case: its own metric within the budget."""
        name = str(case.data.get("metric", {}).get("name", ""))
        return RepairRequest(metric=name, budget=self.budget)


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """A faulty program with the run that tells how it trains."""

    program: TrainingProgram
    session: Session
    run: RecordedRun

    @classmethod
    def of(cls, case: FaultCase, bench: BenchRuns, folder: Folder) -> RecordedProgram:
        """Run the program of a case. Raises RepriseError, SandboxError."""
        return cls(*recorded(case, bench, folder))

    def session_in(self, folder: Folder) -> Session:
        """A session that keeps its trials in a folder of its own."""
        ports = replace(self.session.ports, journal=folder)
        return Session.begin(self.session.job, ports)
