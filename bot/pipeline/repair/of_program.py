"""A training program by itself → the patch that is proven to help it."""

from bot.errors import BuildError
from bot.models.job import RepairProgram
from bot.models.repair import Repair
from bot.pipeline.diagnosis.of_program import judge, record_program
from bot.pipeline.execution.session import Session
from bot.pipeline.repair import repair
from bot.ports import Ports


def repair_program(job: RepairProgram, ports: Ports) -> Repair:
    """The repair of a program. Raises UserError, Stopped and SandboxError."""
    session = Session.begin(job, ports)
    try:
        recorded = record_program(job.program, session)
        return repair(
            job.program, recorded, session, job.repair,
            suspect=lambda: judge(job.program, recorded, session).suspected,
            heard=ports.training.trial,
        )  # fmt: skip
    except BuildError as error:
        return Repair(undecided=str(error))
