"""The repair beside a verdict: of the program whose training was diagnosed. No repair changes the
verdict.
"""

import traceback
from dataclasses import replace

from bot.errors import RepriseError, Stopped
from bot.models.diagnosis import TrainingProgram
from bot.models.job import Note
from bot.models.report import Report
from bot.pipeline.diagnosis import RecordedRun
from bot.pipeline.execution.runner import IssueSession
from bot.pipeline.repair import repair
from sandbox.port import SandboxError


def with_repair(
    report: Report, program: TrainingProgram, recorded: RecordedRun, session: IssueSession
) -> Report:
    """The report with the patch that was found for its program, or a note on why there is none."""
    options = session.job.training
    assert options is not None
    assert options.repair is not None
    try:
        with session.context.within(60 * options.repair_minutes) as context:
            limited = replace(session, context=context)
            suspected = report.diagnosis.suspected if report.diagnosis is not None else ()
            found = repair(program, recorded, limited, options.repair, suspect=lambda: suspected)
    except Stopped as stopped:
        return _noted(report, f"the repair did not finish: {stopped}")
    except (RepriseError, SandboxError) as error:
        return _noted(report, f"the program could not be repaired: {error}")
    except Exception as error:
        noted = _noted(report, "the program could not be repaired: a bug in Reprise")
        details = "".join(traceback.format_exception(error))
        return noted.model_copy(update={"defects": {**report.defects, "repair": details}})
    return report.model_copy(update={"repair": found})


def _noted(report: Report, text: str) -> Report:
    return report.model_copy(update={"notes": (*report.notes, Note(kind="run", text=text))})
