"""The training of a bug report's program beside its verdict: its diagnosis, its repair, and what
a proven patch decides.
"""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from bot.environment import specify
from bot.issues import build_report
from bot.issues.judge_training import learns_too_little
from bot.issues.reading import issue
from bot.issues.runner import IssueSession
from bot.issues.search import report_programs
from bot.issues.search.report_text import report_text
from bot.kernel import metrics, statistics
from bot.kernel.attempt import Script
from bot.kernel.bug import (
    AlternativesSignature,
    AnySignature,
    BugReport,
    CrashSignature,
    TrainingSignature,
    members_of,
)
from bot.kernel.environment import Environment, EnvironmentSpec
from bot.kernel.errors import RepriseError, Stopped, UserError
from bot.kernel.job import (
    Extra,
    Note,
    ReproduceIssue,
)
from bot.kernel.metrics import direction_of
from bot.kernel.ports import Ports
from bot.kernel.report import (
    AnyVerdict,
    Control,
    IssueReport,
    ReportDraft,
    Reproduced,
)
from bot.kernel.run import RunPlan
from bot.kernel.session import Session
from bot.kernel.source import training_loops
from bot.kernel.source.syntax import tree_of
from bot.kernel.training_types import DiagnosedRun, Repair, TrainingProgram
from bot.kernel.trees import read_tree
from bot.model.budget import ModelBudget
from bot.training.diagnose import RecordedRun, diagnose_recording, record, record_run
from bot.training.diagnosis import rules
from bot.training.opinion import second_opinion
from sandbox.port import SandboxError

# The diagnosis beside a verdict: of the program that a bug report trains with, in the environment
# of its runs. No diagnosis changes the verdict.

AfterDiagnosis = Callable[[ReportDraft, TrainingProgram, RecordedRun, IssueSession], None]
_NOT_DIAGNOSED = {"needs_hardware", "setup_failed", "cancelled"}
_ANY = AlternativesSignature(members=())


def plan_diagnosis(draft: RunPlan, job: ReproduceIssue) -> RunPlan:
    """The plan with the program to diagnose, where asked for and not the verdict's own, or where
    only its training can decide.
    """
    is_needed = job.training is not None or only_trains(draft.bug, draft.signature)
    script = trains_in(draft.bug) if is_needed else None
    if script is None or script.source in {source_script.source for source_script in draft.scripts}:
        return draft
    spec = draft.spec or _spec(script, draft.bug, job)
    return draft.model_copy(update={"training": script, "spec": spec})


def trains_in(bug: BugReport) -> Script | None:
    """The program of a bug report that trains, None when there is none."""
    scores = [(_training(script), script) for script in report_programs.propose(bug, _ANY)]
    best = max((score for score, _ in scores), default=0.0)
    return next((script for score, script in scores if score == best > 0), None)


def _learns(report: ReportDraft, script: Script) -> bool:
    """Whether a command of the repository is a training, by what the report says of it."""
    members = members_of(report.signature) if report.signature is not None else ()
    return bool(script.command) and any(isinstance(row, TrainingSignature) for row in members)


def _training_program(script: Script, environment: Environment | None) -> TrainingProgram:
    """The program with the files beside it; of a command, with those of its tree. Raises UserError
    where it is started in a way that a training is not yet recorded in.
    """
    files = {name: text.encode("utf-8", "replace") for name, text in script.files.items()}
    if not script.command:
        return TrainingProgram(files=files, entry=script.entry)
    if script.folder or script.command[0] != script.entry:
        raise UserError(
            f"a training started by `python {' '.join(script.command)}` cannot be recorded.",
            "Start the file from the root of the repository.",
        )
    tree = read_tree(environment.tree) if environment is not None else {}
    program_files = {**tree, **(files if script.fixes else {})}
    return TrainingProgram(files=program_files, entry=script.entry, arguments=script.command[1:])


def _training(script: Script) -> float:
    tree = tree_of(script.source)
    return training_loops.training_score(tree) if tree is not None else 0.0


def of_report(report: IssueReport, job: ReproduceIssue, ports: Ports) -> IssueReport:
    """A finished report with a diagnosis made now."""
    started, session = ports.clock(), Session.begin(job, ports, report.attempts)
    draft = report.draft()
    draft.bug = report.bug or issue.read_issue(report.issue)
    add_diagnosis(draft, session, ModelBudget(ports, job.model, started))
    return build_report.finish(draft, session, started)


def add_diagnosis(
    report: ReportDraft,
    session: IssueSession,
    budget: ModelBudget,
    then: AfterDiagnosis | None = None,
) -> None:
    """Add the diagnosis of the training program to the report, or a note on why there is none. A
    model's second opinion has what is left of the budget. `then` goes on from the recorded run.
    """
    bug, why = report.bug, _crashes(report)
    if bug is None or report.verdict.kind in _NOT_DIAGNOSED:
        return
    before = report.reduced.before if report.reduced is not None else report.script
    is_own = before is not None and bool(_training(before) or _learns(report, before))
    script = before if is_own else trains_in(bug)
    if script is None:
        why = "the bug report contains no program that trains"
    if why or script is None:
        _add_note(report, f"there is no diagnosis of the training: {why}")
        return
    spec = (report.spec if script is before else None) or _spec(script, bug, session.job)
    with _errors_noted(report, "diagnose", "the training could not be diagnosed"):
        try:
            program, recording = _diagnose(report, script, spec, session, budget)
        except Stopped:
            _add_note(report, "the diagnosis of the training was stopped")
            return
        if then is not None:
            then(report, program, recording, session)
        decided_by_runs(report, program, recording, session)


def _diagnose(
    report: ReportDraft,
    script: Script,
    spec: EnvironmentSpec,
    session: IssueSession,
    budget: ModelBudget,
) -> tuple[TrainingProgram, RecordedRun]:
    program = _training_program(script, report.environment)
    recording = record_run(program, spec, session, session.ports.training.loss)
    assert report.bug is not None
    excerpt = report_text(session.job.issue, report.bug, again=True)
    run, output = diagnose_recording(recording), recording.result.stdout
    run = second_opinion(run, recording.trace, program, session, budget, excerpt, output)
    report.diagnosis = _confirmed(program, recording, run, session)
    report.notes = tuple(dict.fromkeys((*report.notes, *session.notes)))
    report.environment = report.environment or recording.environment
    _add_bill(report, run)
    return program, recording


def _confirmed(
    program: TrainingProgram, recording: RecordedRun, run: DiagnosedRun, session: IssueSession
) -> DiagnosedRun:
    """The diagnosis, confirmed or refuted by trainings where there is a budget for them."""
    training = session.job.training
    if training is None or not training.budget:
        return run
    from bot.training.repair.interventions import intervene  # LibCST is slow to import

    return intervene(program, recording, run, session, training.budget)


def _add_bill(report: ReportDraft, run: DiagnosedRun) -> None:
    """Add the second opinion to what the report says of the models that were asked."""
    opinion = run.opinion
    if opinion is None or not opinion.prompt:
        return
    report.cost += opinion.usage
    report.models = tuple(dict.fromkeys(filter(None, (*report.models, opinion.model))))
    report.prompts = {**report.prompts, opinion.prompt.partition("@")[0]: opinion.prompt}


def _spec(script: Script, bug: BugReport, job: ReproduceIssue) -> EnvironmentSpec:
    return specify.specify(bug, job.issue, job.environment, script.source)


def _crashes(report: IssueReport) -> str:
    """Why an exception, not the training, is what is wrong; "" when it is not."""
    failed = report.verdict.kind in {"reproduced", "different_failure"}
    members = members_of(report.signature) if report.signature is not None else ()
    crash = any(isinstance(member, CrashSignature) for member in members)
    return "the program ends with an exception" if failed and crash else ""


def _add_note(report: ReportDraft, text: str) -> None:
    report.notes += (Note(kind="run", text=text),)


@contextmanager
def _errors_noted(report: ReportDraft, part: Extra, why: str) -> Iterator[None]:
    """Errors of a part of the work become a note: the verdict does not depend on it."""
    try:
        yield
    except (RepriseError, SandboxError) as error:
        _add_note(report, f"{why}: {error}")
    except Exception as error:
        _add_note(report, f"{why}: a bug in Reprise")
        details = "".join(traceback.format_exception(error))
        report.defects = {**report.defects, part: details}


# The repair beside a verdict: of the program whose training was diagnosed. No repair changes the
# verdict.


def add_repair(
    report: ReportDraft, program: TrainingProgram, recording: RecordedRun, session: IssueSession
) -> None:
    """Add the patch that was found for the program to the report, or a note on why there is
    none.
    """
    from bot.training.repair.repair import repair  # LibCST is slow to import

    options = session.job.training
    assert options is not None
    assert options.repair is not None
    run = report.diagnosis or diagnose_recording(recording)
    with _errors_noted(report, "repair", "the program could not be repaired"):
        try:
            with session.context.within(60 * options.repair_minutes) as context:
                limited_session = replace(session, context=context)
                report.repair = repair(
                    program, recording, limited_session, options.repair,
                    judge=lambda: run.diagnosis,
                )  # fmt: skip
                report.verdict = with_patch(report.verdict, report.signature, report.repair)
                decided_by_patch(report, report.repair)
        except Stopped as stopped:
            _add_note(report, f"the repair did not finish: {stopped}")


def with_patch(verdict: AnyVerdict, signature: AnySignature | None, repair: Repair) -> AnyVerdict:
    """The verdict with the proven patch of a training that learns too little as its control: the
    same program with the patch, over the same fresh seeds.
    """
    members = members_of(signature) if signature is not None else ()
    member = next((row for row in members if isinstance(row, TrainingSignature)), None)
    gain, metric = repair.improvement, repair.metric
    if not (isinstance(verdict, Reproduced) and member and gain and metric and repair.proven):
        return verdict
    is_same = metrics.plain_name(metric.name) == metrics.plain_name(member.metric)
    if member.bound is None or not is_same:
        return verdict
    before, after = (
        sum(learns_too_little(value, member) for value in side)
        for side in (gain.before, gain.after)
    )
    runs = len(gain.before)
    control = Control(
        type="patched",
        what="the patch",
        runs=runs,
        failures=after,
        paired_runs=runs,
        paired_failures=before,
        p=statistics.one_sided(before, runs, after, runs),
    )
    return verdict.model_copy(update={"control": control})


def decided_by_patch(report: ReportDraft, repair: Repair) -> None:
    """Let a proven patch decide on a report that complains of a training without a value that
    could be compared: the training fails where it ends nearer to what the program reached in the
    search than to what the patch reached there. This is recorded before the proof, whose fresh
    seeds are the confirming runs.
    """
    if not may_decide(report):
        return
    gain, metric, bound = repair.improvement, repair.metric, repair.bound
    if gain is None or metric is None or bound is None or not repair.proven:
        return
    signature = TrainingSignature(metric=metric.name, direction=metric.direction, bound=bound)
    failures = sum(learns_too_little(value, signature) for value in gain.before)
    runs = len(gain.before)
    verdict = Reproduced(
        runs=runs,
        failures=failures,
        interval=statistics.interval(failures, runs),
        reason=f"{metric.name} ended on the wrong side of {bound:.4g}, set before the proof",
        determinism="deterministic" if failures == runs else "seed-dependent",
    )
    decided_verdict = with_patch(verdict, signature, repair)
    p = decided_verdict.control.p if isinstance(decided_verdict, Reproduced) else None
    if p is not None and p < statistics.SequentialTest().alpha:
        report.verdict, report.signature = decided_verdict, signature


def decided_by_runs(
    report: ReportDraft, program: TrainingProgram, recording: RecordedRun, session: IssueSession
) -> None:
    """Let trainings decide on a report that complains of one without a value that could be
    compared: it fails where its loss, or its accuracy, ends about where the best constant
    prediction has it. That is recorded after one run; runs with fresh seeds decide. One that
    learned more refutes nothing.
    """
    end = None
    if may_decide(report):
        end = rules.constant_end(recording.trace)
    if end is None:
        return
    signature = TrainingSignature(
        metric=end.metric, direction=direction_of(end.metric), bound=end.limit, probed=True
    )
    test, failures, runs = statistics.SequentialTest(), 0, 0
    limits = session.job.limits
    while test.decide(failures, runs) == "undecided" and runs < limits.max_runs:
        runs += 1
        seed = limits.seed + runs
        with session.stage("confirm", f"training run {runs} with the probe"):
            _, trace = record(program, recording.environment, session, seed=seed)
        again = rules.constant_end(trace)
        if again is not None and again.metric == end.metric:
            failures += learns_too_little(again.value, signature)
    if test.decide(failures, runs) == "fails":
        report.signature = signature
        report.verdict = Reproduced(
            runs=runs,
            failures=failures,
            interval=statistics.interval(failures, runs),
            reason=f"the {end.metric} ended at {end.value:.4g}, no better than that of a constant "
            f"prediction (limit {end.limit:.4g}, set after one run)",
            determinism="deterministic" if failures == runs else "seed-dependent",
        )


def may_decide(report: ReportDraft) -> bool:
    """Whether the training of a report's own program may decide what nothing else did."""
    is_open = report.verdict.kind in {"needs_info", "inconclusive"} and _is_without_value(report)
    return is_open and report.bug is not None and trains_in(report.bug) is not None


def _is_without_value(report: ReportDraft) -> bool:
    """Whether a report says that a training does not do its work, and gives nothing to compare."""
    return report.bug is not None and only_trains(report.bug, report.signature)


def only_trains(bug: BugReport, signature: AnySignature | None) -> bool:
    """Whether all that a report says is that a training does not do its work."""
    members = members_of(signature) if signature is not None else ()
    is_bare = all(isinstance(row, TrainingSignature) and row.bound is None for row in members)
    return bug.complaint is not None and is_bare
