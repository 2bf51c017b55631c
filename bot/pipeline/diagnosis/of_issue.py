"""The diagnosis beside a verdict: of the program that a bug report trains with, in the environment
of its runs. No diagnosis changes the verdict.
"""

import traceback
from collections.abc import Callable

from bot.errors import RepriseError, Stopped
from bot.models.attempt import Script
from bot.models.bug import BugReport
from bot.models.diagnosis import DiagnosedRun, TrainingProgram
from bot.models.environment import EnvironmentSpec
from bot.models.job import Note, ReproduceIssue
from bot.models.report import Report
from bot.models.run import RunPlan
from bot.models.signature import AlternativesSignature, CrashSignature, members_of
from bot.pipeline import reporting
from bot.pipeline.diagnosis import RecordedRun, diagnosed, record_run
from bot.pipeline.diagnosis.opinion import second_opinion
from bot.pipeline.environment import specify
from bot.pipeline.execution.runner import IssueSession
from bot.pipeline.execution.session import Session
from bot.pipeline.reading import report_excerpt
from bot.pipeline.search import candidates
from bot.pipeline.search.model_budget import ModelBudget
from bot.ports import Ports
from bot.rules.code import loops
from bot.rules.parsing import tree_of
from sandbox.port import SandboxError

Then = Callable[[Report, TrainingProgram, RecordedRun, IssueSession], Report]
_UNRUN = {"needs_hardware", "setup_failed", "cancelled", "budget_reached"}
_ANY = AlternativesSignature(members=())


def planned(draft: RunPlan, job: ReproduceIssue) -> RunPlan:
    """The plan with the program to diagnose, where asked for and not the verdict's own."""
    script = trains_in(draft.bug) if job.training is not None else None
    if script is None or script.source in {each.source for each in draft.scripts}:
        return draft
    spec = draft.spec or _spec(script, draft.bug, job)
    return draft.model_copy(update={"training": script, "spec": spec})


def trains_in(bug: BugReport) -> Script | None:
    """The program of a bug report that trains, None when there is none."""
    scored = [(_training(script), script) for script in candidates.propose(bug, _ANY)]
    best = max((score for score, _ in scored), default=0.0)
    return next((script for score, script in scored if score == best > 0), None)


def _training(script: Script) -> float:
    tree = tree_of(script.source)
    return loops.training_score(tree) if tree is not None else 0.0


def of_report(report: Report, job: ReproduceIssue, ports: Ports) -> Report:
    """A finished report with a diagnosis made now."""
    started, session = ports.clock(), Session.begin(job, ports, report.attempts)
    budget = ModelBudget(ports, job.model, started)
    return reporting.finished(with_diagnosis(report, session, budget), session, started)


def with_diagnosis(
    report: Report, session: IssueSession, budget: ModelBudget, then: Then | None = None
) -> Report:
    """The report with the diagnosis of its training program, or a note on why there is none. A
    model's second opinion has what is left of the budget. `then` goes on from the recorded run.
    """
    bug, why = report.bug, _crashes(report)
    if bug is None or report.verdict.kind in _UNRUN:
        return report
    before = report.reduced.before if report.reduced is not None else report.script
    script = before if before is not None and _training(before) else trains_in(bug)
    if script is None:
        why = "the bug report contains no program that trains"
    if why or script is None:
        return _noted(report, f"there is no diagnosis of the training: {why}")
    spec = report.spec if script is before else None
    try:
        made, program, run = _made(
            report, script, spec or _spec(script, bug, session.job), session, budget
        )
    except Stopped:
        return _noted(report, "the diagnosis of the training was stopped")
    except (RepriseError, SandboxError) as error:
        return _noted(report, f"the training could not be diagnosed: {error}")
    except Exception as error:
        noted = _noted(report, "the training could not be diagnosed: a bug in Reprise")
        details = "".join(traceback.format_exception(error))
        return noted.model_copy(update={"defects": {**report.defects, "diagnose": details}})
    return made if then is None else then(made, program, run, session)


def _made(
    report: Report,
    script: Script,
    spec: EnvironmentSpec,
    session: IssueSession,
    budget: ModelBudget,
) -> tuple[Report, TrainingProgram, RecordedRun]:
    files = {name: text.encode("utf-8", "replace") for name, text in script.files.items()}
    program = TrainingProgram(files=files, entry=script.entry)
    recorded = record_run(program, spec, session)
    assert report.bug is not None
    told = report_excerpt.report(session.job.issue, report.bug, again=True)
    run = second_opinion(diagnosed(recorded), recorded.trace, program, session, budget, told)
    notes = dict.fromkeys((*report.notes, *session.notes))
    built = report.environment or recorded.environment
    update = {"diagnosis": run, "notes": tuple(notes), "environment": built, **_billed(report, run)}
    return report.model_copy(update=update), program, recorded


def _billed(report: Report, run: DiagnosedRun) -> dict[str, object]:
    """What the report says of the models that were asked, with the second opinion."""
    opinion = run.opinion
    if opinion is None or not opinion.prompt:
        return {}
    models = dict.fromkeys(filter(None, (*report.models, opinion.model)))
    prompts = {**report.prompts, opinion.prompt.partition("@")[0]: opinion.prompt}
    return {"cost": report.cost + opinion.usage, "models": tuple(models), "prompts": prompts}


def _spec(script: Script, bug: BugReport, job: ReproduceIssue) -> EnvironmentSpec:
    return specify.specify(bug, job.issue, job.environment, script.source)


def _crashes(report: Report) -> str:
    """Why an exception, not the training, is what is wrong; "" when it is not."""
    failed = report.verdict.kind in {"reproduced", "different_failure"}
    members = members_of(report.signature) if report.signature is not None else ()
    crash = any(isinstance(member, CrashSignature) for member in members)
    return "the program ends with an exception" if failed and crash else ""


def _noted(report: Report, text: str) -> Report:
    return report.model_copy(update={"notes": (*report.notes, Note(kind="run", text=text))})
