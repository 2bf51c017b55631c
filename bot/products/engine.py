"""The kinds of job, a row each: what runs it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import overload

from bot.issues import reproduce as issues_reproduce
from bot.issues.runner import IssueSession
from bot.kernel.engine import Engine, JobKind
from bot.kernel.job import (
    DiagnoseProgram,
    JobOptions,
    RepairProgram,
    ReproduceIssue,
    ReproducePaper,
    RequestedJob,
)
from bot.kernel.ports import Ports, Stage
from bot.kernel.report import (
    DiagnosisReport,
    IssueReport,
    PaperReport,
    RepairReport,
    ReportDraft,
    RequestedReport,
    RunReport,
)
from bot.kernel.run import JobPlan, PaperPlan, RunPlan
from bot.kernel.session import Session
from bot.kernel.training_types import DiagnosedRun
from bot.model.budget import ModelBudget
from bot.papers.origin import named_paper
from bot.products.issue_training import (
    add_diagnosis,
    add_repair,
    may_decide,
    plan_diagnosis,
)
from bot.training import diagnose
from bot.training.diagnose import RecordedRun


def plan(
    job: ReproduceIssue,
    stage: Callable[[Stage, str], AbstractContextManager[None]] = lambda *_: nullcontext(),
) -> RunPlan:
    """What will be run for an issue, with the program to diagnose where that is asked for."""
    return plan_diagnosis(issues_reproduce.plan(job, stage), job)


def plan_job(job: RequestedJob) -> JobPlan:
    """What will be run for a job that is asked for on an issue."""
    if isinstance(job, ReproduceIssue):
        return plan(job)
    environment = job.environment
    return PaperPlan(
        paper=job.source or named_paper(job.issue),
        claim=job.claim,
        command=environment.command,
        repo=environment.repo or "",
        ref=environment.ref or "",
    )


def reproduce(job: ReproduceIssue, ports: Ports) -> IssueReport:
    """Reproduce an issue; then diagnose and repair its training where that is asked for."""
    return issues_reproduce.run(job, ports, issues_reproduce.Extension(plan_diagnosis, _train))


def _train(report: ReportDraft, session: IssueSession, budget: ModelBudget) -> None:
    training = session.job.training
    if training is None and not may_decide(report):
        return
    then = add_repair if training is not None and training.repair is not None else None
    add_diagnosis(report, session, budget, then)


def diagnose_program(job: DiagnoseProgram, ports: Ports) -> DiagnosisReport:
    """Diagnose a training program; with a budget, confirm the findings by trainings."""
    if not job.budget:
        return diagnose.diagnose(job, ports)
    from bot.training.repair.interventions import intervene  # LibCST is slow to import

    def confirm(recorded: RecordedRun, run: DiagnosedRun, session: Session) -> DiagnosedRun:
        listener = ports.training.trial
        return intervene(job.program, recorded, run, session, job.budget, on_trial=listener)

    return diagnose.diagnose(job, ports, confirm)


def repair_program(job: RepairProgram, ports: Ports) -> RepairReport:
    """Diagnose a training program and try changes of it."""
    from bot.training.repair import repair  # LibCST is slow to import

    return repair.repair_program(job, ports)


def reproduce_paper(job: ReproducePaper, ports: Ports) -> PaperReport:
    """Compare a paper's number with runs of its repository."""
    from bot.papers import reproduce as papers  # LibCST is slow to import

    return papers.reproduce(job, ports)


ENGINE = Engine(
    JobKind(ReproduceIssue, reproduce),
    JobKind(DiagnoseProgram, diagnose_program),
    JobKind(RepairProgram, repair_program),
    JobKind(ReproducePaper, reproduce_paper),
)


@overload
def execute(job: ReproduceIssue, ports: Ports) -> IssueReport: ...
@overload
def execute(job: DiagnoseProgram, ports: Ports) -> DiagnosisReport: ...
@overload
def execute(job: RepairProgram, ports: Ports) -> RepairReport: ...
@overload
def execute(job: ReproducePaper, ports: Ports) -> PaperReport: ...
@overload
def execute(job: RequestedJob, ports: Ports) -> RequestedReport: ...
def execute(job: JobOptions, ports: Ports) -> RunReport:
    """The report of a job of any kind."""
    return ENGINE.execute(job, ports)
