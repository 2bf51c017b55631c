"""A training program by itself → its diagnosis: recorded once, judged by rules and, where one is
configured, by a model.
"""

from dataclasses import dataclass

from bot.errors import BuildError
from bot.models.diagnosis import DiagnosedRun, TrainingProgram
from bot.models.environment import Environment
from bot.models.job import DiagnoseProgram
from bot.pipeline.diagnosis import RecordedRun, diagnosed, record_run, wanted
from bot.pipeline.diagnosis.opinion import second_opinion
from bot.pipeline.execution.session import Session
from bot.pipeline.search.model_budget import ModelBudget
from bot.ports import Ports


@dataclass(frozen=True, slots=True)
class ProgramDiagnosis:
    """A diagnosed program and where it ran; without an environment it did not run."""

    run: DiagnosedRun
    environment: Environment | None = None


def diagnose(job: DiagnoseProgram, ports: Ports) -> ProgramDiagnosis:
    """The diagnosis of a program. Raises UserError, Stopped and SandboxError."""
    session = Session.begin(job, ports)
    try:
        recorded = record_program(job.program, session)
    except BuildError as error:
        return ProgramDiagnosis(DiagnosedRun(undecided=str(error)))
    return ProgramDiagnosis(judge(job.program, recorded, session), recorded.environment)


def record_program(program: TrainingProgram, session: Session) -> RecordedRun:
    """Run the program with the probe. Raises BuildError and Stopped."""
    watch = session.ports.training
    spec = wanted.spec(program, session.job.environment)
    recorded = record_run(program, spec, session, watch.loss)
    watch.recorded(recorded.result)
    return recorded


def judge(program: TrainingProgram, recorded: RecordedRun, session: Session) -> DiagnosedRun:
    """What the rules say of a run, and a model where one is configured."""
    budget = ModelBudget(session.ports, session.job.model, session.ports.clock())
    return second_opinion(diagnosed(recorded), recorded.trace, program, session, budget)
