"""The products, a row each: what a kind of job is run by."""

from typing import overload

from bot import pipeline
from bot.kernel.engine import Engine, JobKind
from bot.models.job import DiagnoseProgram, JobOptions, RepairProgram, ReproduceIssue
from bot.models.repair import Repair
from bot.models.report import Report
from bot.pipeline.diagnosis import of_program
from bot.pipeline.diagnosis.of_program import ProgramDiagnosis
from bot.pipeline.repair.of_program import repair_program
from bot.ports import Ports

ENGINE = Engine(
    JobKind(ReproduceIssue, pipeline.run),
    JobKind(DiagnoseProgram, of_program.diagnose),
    JobKind(RepairProgram, repair_program),
)


@overload
def execute(job: ReproduceIssue, ports: Ports) -> Report: ...
@overload
def execute(job: DiagnoseProgram, ports: Ports) -> ProgramDiagnosis: ...
@overload
def execute(job: RepairProgram, ports: Ports) -> Repair: ...
def execute(job: JobOptions, ports: Ports) -> object:
    """What came of a job of any kind."""
    return ENGINE.execute(job, ports)
