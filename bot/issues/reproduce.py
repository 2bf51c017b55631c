"""From an issue to an executed verdict: `run(job, ports) -> Report` is the whole product on one
screen.

Issue → BugReport → Signature (frozen) → candidate Scripts → Environment → search (run, judge, fix
setup failures) → confirm (sequential test on fresh runs) → Verdict → proofs (control, bisection,
smaller program) → Report. What the report leaves out, a model may write (`reconstruct`); its
program is confirmed like any other.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from bot.environment import imports, package_names, specify, tree_requirements
from bot.issues import build_report, confirm as issues_confirm, triage
from bot.issues.confirm import Decision, confirm
from bot.issues.missing_inputs import data_notes
from bot.issues.proof import proofs
from bot.issues.proof.outcome import Failing
from bot.issues.reading import issue as reading_issue
from bot.issues.runner import IssueSession, Runner, judging
from bot.issues.search import (
    console_scripts,
    quoted_calls,
    report_programs,
    reported_statement,
)
from bot.issues.search.commit_fit import fitting_commit, named_commit
from bot.issues.search.reconstruct import reconstruct
from bot.issues.search.writing import Reconstructed
from bot.issues.signature import freeze
from bot.kernel import commands as reading_commands, tree_programs, usage_errors
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import (
    AnySignature,
    BugReport,
    ObservationSignature,
    ShellCommand,
    trains,
)
from bot.kernel.dialogue import Refutation
from bot.kernel.environment import Environment, EnvironmentSpec, RepoSource
from bot.kernel.errors import BuildError, Stopped, TransientError, UserError
from bot.kernel.job import PROOFS, EnvironmentOptions, Proof, ReproduceIssue
from bot.kernel.ports import Ports, Stage
from bot.kernel.report import (
    AnyVerdict,
    Cancelled,
    IssueReport,
    NeedsInfo,
    ReportDraft,
    Reproduced,
    SetupFailed,
)
from bot.kernel.run import RunPlan
from bot.kernel.session import SearchResult, Session
from bot.kernel.source import symbols
from bot.kernel.trees import Tree, read_tree
from bot.model.budget import ModelBudget


@dataclass(frozen=True, slots=True)
class Extension:
    """What a job does beside the verdict of an issue: nothing, unless another product adds it."""

    plan: Callable[[RunPlan, ReproduceIssue], RunPlan] = lambda draft, _: draft
    work: Callable[[ReportDraft, IssueSession, ModelBudget], None] = lambda *_: None


def run(job: ReproduceIssue, ports: Ports, extension: Extension | None = None) -> IssueReport:
    """Reproduce one issue. Raises UserError, TransientError and SandboxError; everything else
    becomes a verdict.
    """
    session, started, extension = Session.begin(job, ports), ports.clock(), extension or Extension()
    budget = ModelBudget(ports, job.model, started)
    decision = _decide(session, budget, extension)
    draft_report = build_report.draft(session, decision, budget)
    result, bug, signature = decision.result, decision.bug, decision.signature
    if isinstance(decision.verdict, Reproduced) and result and bug and signature:
        proofs_to_run = proofs_for(job, bug, signature, result.script)
        failing = Failing(
            result.script, result.spec, result.environment, draft_report, decision.contrasts
        )
        proofs.prove(failing, judging(session, bug, signature), proofs_to_run)
    extension.work(draft_report, session, budget)
    return build_report.finish(draft_report, session, started)


def proofs_for(
    job: ReproduceIssue, bug: BugReport, signature: AnySignature, script: Script
) -> tuple[Proof, ...]:
    """The proofs that can say something. What makes a training learn too little is in the program:
    its control is a patch, unless the report says that another version learned. That of a
    repository's own program is the commit before the fault or after it, and a script without the
    repository is made of it.
    """
    useful: tuple[Proof, ...] = PROOFS
    if any(fix.why == reported_statement.ALONE for fix in script.fixes):
        useful = ("minimize",)  # at another commit its file would be that of this one
    elif script.command:
        useful = ("bisect", "minimize") if script.is_repositorys else ()
    elif trains(signature):
        useful = ("control",) if bug.works_in else ()
    return tuple(proof for proof in useful if proof not in job.without)


def plan(
    job: ReproduceIssue,
    stage: Callable[[Stage, str], AbstractContextManager[None]] = lambda *_: nullcontext(),
) -> RunPlan:
    """What will be run for a report, and what will count: read off the report alone.

    With a verdict nothing will be run.
    """
    issue, options = job.issue, job.environment
    with stage("intake", "reading the report"):
        bug = reading_issue.read_issue(issue)
    if (not_a_bug := triage.not_a_bug(bug)) is not None:
        return RunPlan(bug=bug, verdict=not_a_bug)
    with stage("signature", "recording the failure signature"):
        signature = freeze.freeze(bug)
    commands = tree_programs.commands(bug) if options.repo and signature is not None else ()
    if _is_library(job):  # a file that a report names is most often one of the library's modules
        commands = tuple(
            one
            for one in commands
            if one.source != "named" or one.argv[:2] == reading_commands.PYTEST
        )
    draft = partial(RunPlan, bug=bug, signature=signature, commands=commands)
    if signature is not None and (command := _given_command(options)) is not None:
        reason = "the command that was given needs the clone of the repository"
        draft = partial(draft, bug=bug.model_copy(update={"commands": (command, *bug.commands)}))
        return draft(verdict=triage.needs_reader(reason), commands=(command,))
    if signature is None:
        return draft(verdict=triage.unanswerable(issue, bug, signature, options))
    with stage("candidates", "choosing the program"):
        scripts, own_line = report_programs.genuine_ones(
            report_programs.propose(bug, signature, options.weights), signature
        )
    if own_line:
        verdict = triage.self_made(own_line, bug)
        return draft(verdict=verdict, self_made=isinstance(verdict, NeedsInfo))
    early = triage.unanswerable(issue, bug, signature, options)
    if early is None and not scripts:
        early = triage.needs_reader("the rules found no program to run in the bug report")
    if early is not None:
        return draft(verdict=early)
    spec = specify.specify(bug, issue, options, "\n\n".join(script.source for script in scripts))
    variants = report_programs.contrasts(bug)
    # A report with a program of its own names files in passing.
    commands = tuple(command for command in commands if command.source != "named")
    draft = partial(draft, commands=commands)
    return draft(script=scripts[0], others=scripts[1:], contrasts=variants, spec=spec)


def _given_command(options: EnvironmentOptions) -> ShellCommand | None:
    return reading_commands.read_command(options.command) if options.command else None


def _decide(session: IssueSession, budget: ModelBudget, extension: Extension) -> Decision:
    """Rules first; a model is asked only for what they leave open."""
    decision = Decision(Cancelled(reason=""))
    try:
        draft = extension.plan(plan(session.job, session.stage), session.job)
        for sentence in draft.bug.unread:
            session.note(sentence)
        draft = _in_tree(session, draft)
        if draft.spec is not None:
            draft = draft.model_copy(update={"spec": session.matched(draft.spec)})
        decision = replace(decision, bug=draft.bug, signature=draft.signature)
        decision = _by_rules(session, draft, decision)
        mute = session.ports.model is None or "model" in session.job.without
        if mute or not triage.leaves_open(draft, decision.verdict):
            return decision
        reconstruction = reconstruct(session, draft, budget, decision.verdict)
        return _with_model(session, draft, decision, reconstruction)
    except Stopped:
        return _cancelled(session, decision)


def _by_rules(session: IssueSession, draft: RunPlan, decision: Decision) -> Decision:
    if draft.verdict is not None:
        return replace(decision, verdict=draft.verdict)
    assert draft.signature is not None
    assert draft.spec is not None
    try:
        runner = judging(session, draft.bug, draft.signature)
        if draft.scripts[0].command:
            commit = runner.build(draft.spec).commit[:12]
            runner.note(f"run in the repository at commit {commit}")
        return report_programs.decide(runner, draft.spec, draft.scripts)
    except BuildError as error:
        verdict = SetupFailed(reason=str(error), tried=issues_confirm.describe_steps(error.steps))
        return replace(decision, verdict=verdict, result=session.reached())


def _in_tree(session: IssueSession, draft: RunPlan) -> RunPlan:
    """The plan in the tree of the repository, where its clone is at hand: the plan's commands go
    before a snippet where the report's traceback starts in them. A repository that is no published
    library is worked in, also where only a model can find a program.
    """
    job, bug = session.job, draft.bug
    options, is_library = job.environment, _is_library(job)
    is_open = draft.verdict is None or triage.may_be_read(draft.verdict)
    no_use = draft.self_made or not is_open or (is_library and not draft.commands)
    if not options.repo or no_use or draft.training is not None:
        return draft
    if options.for_commands and not _may_be_in_clone(session, draft):
        return draft
    specified = specify.in_place(specify.specify(bug, job.issue, options, ""), options)
    specified = specified.model_copy(update={"requirements": (), "constraints": ()})
    try:
        environment = session.build(session.matched(specified))
    except (BuildError, UserError, TransientError) as error:
        if not (isinstance(error, BuildError) or options.for_commands):
            raise
        session.note(f"the repository could not be looked into: {error}")
        return draft
    tree: Tree = read_tree(environment.tree)
    if not options.ref and specified.repo is not None:
        options, tree = _at_quoted_commit(session, bug, specified, environment, options, tree)
    draft = _without_quotations(draft, tree)
    scripts = _programs_of_tree(session, draft, tree)
    snippet = draft.script
    if snippet is not None and not tree_programs.starts_in(bug, scripts, snippet, tree):
        return _with_modules(draft, options, tree)
    if not scripts and is_library:
        return draft
    scripts = tuple(quoted_calls.call_as_quoted(script, bug) for script in scripts)
    program = scripts[0] if scripts else tree_programs.beside("", "")
    declared = tree_requirements.for_program(tree, program, job.issue.body)
    source = tree_programs.imports(scripts, tree, optional=not declared.requirements)
    for sentence in declared.notes:
        session.note(sentence)
    spec = specify.in_place(specify.specify(bug, job.issue, options, source, declared), options)
    for sentence in data_notes(environment, tree):
        session.note(sentence)
    verdict = None if scripts else draft.verdict
    changes = {"script": next(iter(scripts), None), "others": scripts[1:], "contrasts": ()}
    return draft.model_copy(update={**changes, "spec": spec, "verdict": verdict})


def _programs_of_tree(session: IssueSession, draft: RunPlan, tree: Tree) -> tuple[Script, ...]:
    """The programs of a plan's commands; for want of any, the statement that the report shows."""
    if draft.signature is None:
        return ()
    console = console_scripts.started_scripts(draft.bug, session.job.issue, tree)
    scripts = (*console, *tree_programs.propose(draft.commands, tree, draft.bug.tracebacks))
    if scripts or draft.script is not None or _is_library(session.job):
        return scripts
    issue = session.job.issue
    alone = reported_statement.run_alone(draft.bug, issue, draft.signature, tree, None)
    return (alone,) if alone is not None else ()


def _without_quotations(draft: RunPlan, tree: Tree) -> RunPlan:
    """The plan without snippets that cannot stand alone and only show lines of a file of the
    repository: the program is the repository's own, found by what the report names.
    """
    quotations = [
        script
        for script in (draft.scripts if draft.script is not None else ())
        if tree_programs.is_quotation(script, tree) and imports.undefined(script.source)
    ]
    if not quotations:
        return draft
    left = tuple(script for script in draft.scripts if script not in quotations)
    changes: dict[str, object] = {"script": next(iter(left), None), "others": left[1:]}
    if not left:
        reason = "the code in the bug report is the repository's own"
        commands = tree_programs.commands(draft.bug)
        changes |= {"verdict": triage.needs_reader(reason), "commands": commands, "spec": None}
    return draft.model_copy(update=changes)


def _at_quoted_commit(
    session: IssueSession,
    bug: BugReport,
    spec: EnvironmentSpec,
    environment: Environment,
    options: EnvironmentOptions,
    tree: Tree,
) -> tuple[EnvironmentOptions, Tree]:
    """The options and the tree at the commit that the report names, or that has the lines which it
    quotes, where that of the day has fewer.
    """
    assert spec.repo is not None
    try:
        reported = named_commit(session, spec.repo)
        commit = reported or fitting_commit(session, bug, spec.repo, environment.commit, tree)
        if commit is None or commit.id == environment.commit:
            return options, tree
        moved_spec = spec.model_copy(
            update={"repo": spec.repo.model_copy(update={"ref": commit.id})}
        )
        moved_tree = read_tree(session.build(moved_spec).tree)
    except (BuildError, UserError, TransientError):
        return options, tree
    says = "the bug report names" if reported is not None else "the quoted traceback fits"
    session.note(
        f"{says} commit {commit.id[:12]} of {commit.date:%Y-%m-%d}, not {environment.commit[:12]}"
    )
    return options.model_copy(update={"ref": commit.id}), moved_tree


def _may_be_in_clone(session: IssueSession, draft: RunPlan) -> bool:
    """Whether a clone can have the program of a report."""
    points = draft.signature is not None and reported_statement.points_at_names(
        draft.bug, session.job.issue, draft.signature
    )
    is_refused = any(row.exception == usage_errors.EXCEPTION for row in draft.bug.tracebacks)
    starts = (frame.path for row in draft.bug.tracebacks for frame in row.frames[:1])
    is_console = is_refused or any("/bin/" in path for path in starts)
    return bool(draft.commands) or points or is_console or _lacks_modules(session, draft)


def _lacks_modules(session: IssueSession, draft: RunPlan) -> bool:
    """Whether only a clone can have what a snippet imports, or a model may look for a program."""
    if draft.script is None or draft.spec is None:
        return session.ports.model is not None and "model" not in session.job.without
    names = {row.name for row in session.matched(draft.spec).requirements}
    modules = symbols.imported_modules(draft.script.source)
    tops = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    is_part = bool(imports.undefined(draft.script.source))
    return is_part or any(
        imports.installed_as(imports.distribution(top)) not in names for top in tops
    )


def _is_library(job: ReproduceIssue) -> bool:
    """Whether the repository is known to publish what people install."""
    name, is_known = package_names.distribution_of(job.issue.repository)
    return is_known or imports.well_known(name)


def _with_modules(draft: RunPlan, options: EnvironmentOptions, tree: Tree) -> RunPlan:
    """The plan with the clone in place of what the repository would publish, where the snippet
    imports the repository's own modules.
    """
    names = symbols.imported_modules(draft.script.source) if draft.script is not None else ()
    own = any(tree_programs.provides(name.partition(".")[0], tree) for name in names)
    if draft.spec is None or draft.spec.repo is not None or not own:
        return draft
    repo = RepoSource.of(options.repo or "", options.ref or "")
    return draft.model_copy(update={"spec": draft.spec.model_copy(update={"repo": repo})})


def _with_model(
    session: IssueSession, draft: RunPlan, decision: Decision, reconstruction: Reconstructed
) -> Decision:
    """The decision after a model's work: on its program, or what the rules decided."""
    claims, signature = (
        (*decision.claims, *reconstruction.claims),
        reconstruction.signature or draft.signature,
    )
    decision = replace(decision, reconstruction=reconstruction.record, claims=claims)
    try:
        verdict = None
        if reconstruction.result is not None and signature is not None:
            refutation = reconstruction.record.refutation if reconstruction.record else None
            runner = judging(session, draft.bug, signature)
            verdict = _confirmed(runner, reconstruction.result, refutation)
            verdict = issues_confirm.if_contradicted(verdict, decision.verdict)
    except Stopped:
        return _cancelled(session, replace(decision, signature=signature))
    if reconstruction.stopped:
        return _cancelled(session, replace(decision, signature=signature))
    if verdict is not None:
        return replace(decision, verdict=verdict, signature=signature, result=reconstruction.result)
    verdict = triage.after_model(decision.verdict, reconstruction.record, reconstruction.exceeded)
    if (
        draft.signature is not None
        and reconstruction.record is not None
        and reconstruction.record.refined
    ):
        verdict = issues_confirm.if_read_alike(
            verdict, draft.signature, reconstruction.record.refined.signature
        )
    return replace(decision, verdict=verdict)


def _cancelled(session: IssueSession, decision: Decision) -> Decision:
    runs = len(session.attempts)
    reason = f"stopped on request after {runs} run{'' if runs == 1 else 's'}"
    return replace(decision, verdict=Cancelled(reason=reason), result=session.reached())


def _confirmed(
    runner: Runner, result: SearchResult, refutation: Refutation | None
) -> AnyVerdict | None:
    """The verdict on a model's program, from fresh runs; None when it shows nothing either way."""
    match = result.judgement.match
    passed = match is Match.PASSED and isinstance(runner.signature, ObservationSignature)
    if match is not Match.MATCHED and not passed:
        return None
    verdict, match = confirm(runner, result)
    if match is Match.MATCHED:
        report_programs.note_place(runner)
    return issues_confirm.as_written(verdict, result.script, refutation)
