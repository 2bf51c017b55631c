"""The kinds of job, a row each: what runs it. An issue may have its training diagnosed as well."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import overload

from bot import pipeline
from bot.kernel.engine import Engine, JobKind
from bot.models.job import DiagnoseProgram, JobOptions, RepairProgram, ReproduceIssue
from bot.models.repair import Repair
from bot.models.report import Report
from bot.models.run import RunPlan
from bot.pipeline.diagnosis import of_issue, of_program
from bot.pipeline.diagnosis.of_program import ProgramDiagnosis
from bot.pipeline.execution.runner import IssueSession
from bot.pipeline.repair.of_issue import with_repair
from bot.pipeline.repair.of_program import repair_program
from bot.pipeline.search.model_budget import ModelBudget
from bot.ports import Ports, Stage


def plan(
    job: ReproduceIssue,
    stage: Callable[[Stage, str], AbstractContextManager[None]] = lambda *_: nullcontext(),
) -> RunPlan:
    """What will be run for an issue, with the program to diagnose where that is asked for."""
    return of_issue.planned(pipeline.plan(job, stage), job)


def reproduce(job: ReproduceIssue, ports: Ports) -> Report:
    """Reproduce an issue; then diagnose and repair its training where that is asked for."""
    return pipeline.run(job, ports, pipeline.Beside(of_issue.planned, _train))


def _train(report: Report, session: IssueSession, budget: ModelBudget) -> Report:
    training = session.job.training
    if training is None:
        return report
    then = with_repair if training.repair is not None else None
    return of_issue.with_diagnosis(report, session, budget, then)


ENGINE = Engine(
    JobKind(ReproduceIssue, reproduce),
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
