"""What the report leaves out, supplied by a model: read the sources → interpret → a bounded loop of
write, check, run (`writing`).

The model proposes. A program counts only when a run of it matches the signature that was frozen
before, and the confirming runs are made elsewhere. See RepGen (arXiv 2512.14990) for the stages;
here every generated program is executed.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import PurePosixPath

from packaging.utils import canonicalize_name

from bot.environment import evidence, imports, releases, setup_failures, specify, versions
from bot.issues import confirm
from bot.issues.gates import refuse
from bot.issues.runner import IssueSession, Runner, judging
from bot.issues.search import (
    contexts,
    interpretation,
    program_files,
    prompt_text,
    recovery,
    report_programs,
)
from bot.issues.search.report_text import report_text
from bot.issues.search.writing import Material, Reconstructed, reading, write_program
from bot.issues.signature import freeze
from bot.kernel import launch, tree_programs
from bot.kernel.attempt import Attempt, Match
from bot.kernel.bug import BugReport, CrashSignature, ObservationSignature
from bot.kernel.dialogue import Interpretation, Reading
from bot.kernel.environment import Context, Environment, EnvironmentSpec, PinSource, Requirement
from bot.kernel.errors import (
    BuildError,
    ModelUnavailable,
    Stopped,
    TransientError,
    UserError,
)
from bot.kernel.outside_text import one_line
from bot.kernel.ports import SourceIndex
from bot.kernel.report import AnyVerdict, NotReproduced, SetupFailed
from bot.kernel.run import RunPlan
from bot.kernel.session import SearchResult, Session
from bot.kernel.source import symbols
from bot.kernel.source.outline import size
from bot.kernel.trees import Tree, read_tree
from bot.model.budget import BudgetExceeded, ModelBudget
from prompts import load
from prompts.catalog import fence

# Whether what a report is about can be imported in the environment built for it, before a model
# is asked; what rules know of such failures is mended.

_MOST_LINES = 8
_MOST_TEXT = 1_200


def with_imports(
    session: Session,
    bug: BugReport,
    spec: EnvironmentSpec,
    environment: Environment,
    names: Sequence[str],
) -> tuple[EnvironmentSpec, Environment, str]:
    """The environment in which the distributions can be imported, else the last one, with the end
    of the traceback.
    """
    problem = _problem(session, bug, environment, names)
    for _ in range(recovery.MOST_FIXES):
        wider = _wider(session, bug, spec, problem) if problem else None
        if wider is None:
            break
        try:
            environment = session.build(wider)
        except BuildError as error:
            session.note(f"a package that an import needs could not be installed: {error}")
            break
        spec, problem = wider, _problem(session, bug, environment, names)
    if problem:
        session.note(f"{', '.join(names)} cannot be imported: {_last(problem)}")
    return spec, environment, problem


def _problem(
    session: Session, bug: BugReport, environment: Environment, names: Sequence[str]
) -> str:
    """The end of the traceback of an import, "" where nothing is wrong with it."""
    modules = symbols.top_level("\n".join(fence.text for fence in bug.programs))
    run = launch.import_spec(environment, session.job, tuple(names), modules)
    with session.stage("environment", f"importing {', '.join(names[:3])}"):
        result = session.execute(run)
    if result.timed_out or not result.exit_code:
        return ""
    return "\n".join(result.stderr.strip().splitlines()[-_MOST_LINES:])[-_MOST_TEXT:]


def _wider(
    session: Session, bug: BugReport, spec: EnvironmentSpec, problem: str
) -> EnvironmentSpec | None:
    exception, _, message = _last(problem).partition(":")
    failure = setup_failures.recognise(exception, message.strip())
    if failure is None:
        return None
    requirement = specify.missing(failure.module, failure.requirement, bug, spec)
    wider = session.matched(specify.add(spec, requirement)) if requirement is not None else spec
    return wider if wider != spec else None


def _last(problem: str) -> str:
    return problem.rpartition("\n")[2]


def reconstruct(
    session: IssueSession, draft: RunPlan, budget: ModelBudget, verdict: AnyVerdict
) -> Reconstructed:
    """A program for a report whose own programs led to this verdict, or that has none."""
    reconstruction = Reconstructed()
    try:
        reconstruction.result = _program(session, draft, budget, verdict, reconstruction)
    except BudgetExceeded as error:
        reconstruction.exceeded = str(error)
    except ModelUnavailable as error:
        session.note(f"no model could be asked: {error}")
    except BuildError as error:
        session.note(f"the environment for a written program could not be built: {error}")
    except Stopped:
        reconstruction.stopped = True
    return reconstruction


def _program(
    session: IssueSession,
    draft: RunPlan,
    budget: ModelBudget,
    verdict: AnyVerdict,
    reconstruction: Reconstructed,
) -> SearchResult | None:
    basis = _basis(session, draft)
    refined = _interpreted(session, draft, budget, basis)
    reconstruction.update(refined=refined, readings=_readings(draft, refined, verdict))
    reconstruction.refuse(refined.refusals)
    if refined.signature is None:
        return None
    material = _material(session, draft, refined, basis)
    refined = _with_absent_names(_with_locations(refined, material), material)
    assert refined.signature is not None
    reconstruction.update(refined=refined)
    reconstruction.refuse(refined.refusals)
    reconstruction.signature = refined.signature
    runner = judging(session, draft.bug, refined.signature)
    by_rules = draft.signature if draft.script is not None else None
    alike = by_rules is not None and freeze.same(by_rules, refined.signature)
    if alike and isinstance(verdict, NotReproduced):
        return None  # read alike, and it did not happen
    is_new = not alike or material.spec != basis.spec or isinstance(verdict, SetupFailed)
    if is_new and (by_rules is not None or material.tree):
        own = _own_program(runner, material)
        if own is not None:
            return own
    if all(_is_false_start(session, attempt) for attempt in session.attempts):
        reconstruction.amendable = "rules" if draft.signature == refined.signature else "model"
    return write_program(runner, budget, refined, material, reconstruction)


def _is_false_start(session: IssueSession, attempt: Attempt) -> bool:
    """Whether a command of the repository ended before it did anything: such a run is no reason to
    hold to a reading.
    """
    script = session.attempts.programs[attempt.script]
    return script.is_repositorys and attempt.judgement.is_false_start


def _readings(draft: RunPlan, refined: Interpretation, verdict: AnyVerdict) -> tuple[Reading, ...]:
    """Both readings, where they differ; what the rules' runs gave is known already."""
    if draft.signature is None or draft.signature == refined.signature:
        return ()
    ran = draft.script is not None and draft.verdict is None
    rules = reading("rules", draft.signature, verdict.reason if ran else "nothing was run")
    if refined.signature is None:
        return (rules, Reading(by="model", says="nothing that a run could show", hash=""))
    return (rules, reading("model", refined.signature))


def _own_program(runner: Runner, material: Material) -> SearchResult | None:
    """The first of the report's own programs that fails as a model reads the report. None of them
    prints the value that a model chose to observe.
    """
    if isinstance(runner.signature, ObservationSignature):
        return None
    runner.note(f"a model reads the bug report as {confirm.describe(runner.signature)}")
    if material.tree:
        scripts = tree_programs.propose(
            tree_programs.commands(runner.bug), material.tree, runner.bug.tracebacks
        )
    else:
        weights = runner.job.environment.weights
        proposed = report_programs.propose(runner.bug, runner.signature, weights)
        scripts, _ = report_programs.genuine_ones(proposed, runner.signature)
    search_result = report_programs.search(runner, material.spec, scripts) if scripts else None
    return (
        search_result
        if search_result is not None and search_result.judgement.match is Match.MATCHED
        else None
    )


def _with_locations(refined: Interpretation, material: Material) -> Interpretation:
    """Without the place of a failure whose words are known, where its file is not installed: an
    example script, a module of a repository that is no package.
    """
    signature, sources = refined.signature, material.sources
    if not isinstance(signature, CrashSignature) or not (signature.frame and signature.message):
        return refined
    top = signature.frame.partition("/")[0]
    if sources is None or sources.read(signature.frame, 1, 1) or sources.symbol(top, 1):
        return refined
    elsewhere = signature.model_copy(update={"frame": "", "function": "", "places": ()})
    refusals = (*refined.refusals, refuse("file_absent", file=signature.frame))
    return refined.model_copy(update={"signature": elsewhere, "refusals": refusals})


def _with_absent_names(refined: Interpretation, material: Material) -> Interpretation:
    """The reading with a word on each name in question that the sources of its package lack."""
    sources = material.sources
    if sources is None:
        return refined
    packages = {path.partition("/")[0].removesuffix(".py") for path in sources.files()}
    refusals = [*refined.refusals]
    for name in refined.api:
        package, last = name.partition(".")[0], name.rpartition(".")[2]
        if package in packages and not (sources.symbol(last, 1) or sources.literal(last, 1)):
            refusals.append(refuse("api_absent", name=name, package=package))
    return refined.model_copy(update={"refusals": tuple(refusals)})


@dataclass(frozen=True, slots=True)
class _Basis:
    """What is at hand before anything is asked, so that what counts is fixed with the code in
    sight: the environment that rules derive, with its sources; or why it could not be built.
    """

    spec: EnvironmentSpec
    environment: Environment | None = None
    sources: SourceIndex | None = None
    contexts: tuple[Context, ...] = ()
    failure: str = ""
    problem: str = ""
    tree: Tree = field(default_factory=dict)
    files: str = ""

    @property
    def told(self) -> str:
        """What a model is told of the environment."""
        if self.environment is None:
            why = fence("the builder", self.failure[:400])
            return load("refine").fragment("no_environment", reason=why)
        return prompt_text.describe_environment(self.spec, self.environment, self.problem)


def _basis(session: IssueSession, draft: RunPlan) -> _Basis:
    issue, options = session.job.issue, session.job.environment
    programs = "\n\n".join(fence.text for fence in draft.bug.programs)
    spec = draft.spec or session.matched(specify.specify(draft.bug, issue, options, programs))
    try:
        environment = session.build(spec)
    except BuildError as error:
        session.note(f"the environment that the bug report describes could not be built: {error}")
        sources, clone_contexts = _sources_of_clone(session, draft)
        return _Basis(spec, sources=sources, contexts=clone_contexts, failure=str(error))
    names, problem = _focus(session, draft, spec), ""
    if is_in_tree := bool(environment.tree) and not environment.cloned:
        names = [issue.repository.rpartition("/")[2] or "the repository"]
    elif names:
        spec, environment, problem = with_imports(session, draft.bug, spec, environment, names)
    sources_and_contexts = _sources(session, draft, environment, names)
    if not (sources_and_contexts[1] or is_in_tree):
        sources_and_contexts = _sources_of_clone(session, draft)
    basis = _Basis(spec, environment, *sources_and_contexts, problem=problem)
    if not is_in_tree:
        return basis
    tree = read_tree(environment.tree)
    files = tree_programs.list_files(issue, tree, launch.data_for(environment, tree))
    return replace(
        basis,
        tree=tree,
        files=fence(f"files at commit {environment.commit[:12]}, lines in brackets", files),
    )


def _focus(session: IssueSession, draft: RunPlan, spec: EnvironmentSpec) -> list[str]:
    """The package under test, or all that the report's program imports where there is none."""
    target = specify.under_test(spec, draft.bug, session.job.issue)
    if target is not None:
        return [target.name]
    return [row.name for row in spec.requirements if row.rung is not PinSource.REPAIR]


def _interpreted(
    session: IssueSession, draft: RunPlan, budget: ModelBudget, basis: _Basis
) -> Interpretation:
    issue = session.job.issue
    if "refine" in session.job.without:
        return Interpretation(claim=issue.title, signature=draft.signature, inferred=("claim",))
    with session.stage("intake", "asking a model how it reads the report"):
        question = interpretation.build(issue, draft.bug, basis.told, basis.contexts, basis.files)
        answer = budget.ask(question)
    works_in = draft.bug.works_in
    more = (basis.tree, works_in, session.ports.builder.history)
    refined = interpretation.parse(answer.data, issue, draft.signature, *more)
    if not interpretation.is_void(refined):
        return refined
    with session.stage("intake", f"asking once more: {refined.refusals[-1].says}"):
        try:
            answer = budget.ask(interpretation.ask_again(question, answer.text, refined))
        except (BudgetExceeded, ModelUnavailable) as error:
            session.note(f"the model could not be asked once more: {error}")
            return refined
    second = interpretation.parse(answer.data, issue, draft.signature, *more)
    return second.model_copy(update={"refusals": (*refined.refusals, *second.refusals)})


def _material(
    session: IssueSession, draft: RunPlan, refined: Interpretation, basis: _Basis
) -> Material:
    """Adds what the model says is needed to what the rules found. Where that could not be
    installed, what neither the model nor the report's words name is left out, then all but what
    the model names.
    """
    requirements = [
        row
        for row in _requirements_of(refined, basis.spec, draft.bug)
        if not tree_programs.provides(row.name, basis.tree)
    ]
    bare_spec = _with_python(session, draft.bug, refined, basis.spec)
    is_same = bare_spec is basis.spec and not requirements
    spec = bare_spec if is_same else session.matched(reduce(specify.add, requirements, bare_spec))
    tops = dict.fromkeys(name.split(".")[0] for name in refined.api)
    own = {PurePosixPath(path).parts[0].removesuffix(".py") for path in basis.tree}
    names = [
        imports.distribution(top) or top
        for top in tops
        if top not in own and top not in sys.stdlib_module_names
    ]
    if basis.tree:
        names = [session.job.issue.repository.rpartition("/")[2] or "the repository", *names]
    report = report_text(session.job.issue, draft.bug)
    again = report_text(session.job.issue, draft.bug, again=True)
    find_sources = partial(_sources, session, draft, refined=refined)
    names_in_report: set[str] = {canonicalize_name(name) for name in refined.packages}
    if basis.environment is not None and is_same:
        environment, open_sources = basis.environment, basis.sources
    else:
        environment, spec = _build_environment(session, spec, names_in_report, basis)
        open_sources = None
    sources_and_contexts = _sources(
        session, draft, environment, names or sorted(names_in_report), refined, open_sources
    )
    if not sources_and_contexts[1]:
        sources_and_contexts = basis.sources, basis.contexts
    named_here = tuple(names or sorted(names_in_report))
    # Known of the environment that rules derived; of another one nobody has tried it.
    is_tried = basis.environment is not None and basis.environment.id == environment.id
    return Material(
        report,
        again,
        spec,
        environment,
        *sources_and_contexts,
        named_here,
        find_sources,
        basis.problem if is_tried else "",
        basis.tree,
        basis.files,
    )


def _with_python(
    session: IssueSession, bug: BugReport, refined: Interpretation, spec: EnvironmentSpec
) -> EnvironmentSpec:
    """The spec with the Python that a model reads in the report, where rules read none; the very
    spec where the host or the report says it, or it is that.
    """
    pins = (pin for pin in refined.pins if pin.quoted and pin.name == "python")
    minor = next((versions.python_minor(pin.version) for pin in pins), None)
    is_stated = session.job.environment.python or "python" in evidence.gather_claims(bug)
    if not minor or is_stated or minor == spec.python:
        return spec
    why = f"the report says {minor} (read by a model)"
    return spec.model_copy(update={"python": minor, "python_why": why})


def _build_environment(
    session: IssueSession,
    spec: EnvironmentSpec,
    names_in_report: set[str],
    basis: _Basis,
) -> tuple[Environment, EnvironmentSpec]:
    """The first of the environments that can be built. Raises BuildError when none can."""
    stated_sources = {PinSource.OPTION, PinSource.ISSUE}
    rows = spec.requirements
    attempts = (
        rows,
        tuple(row for row in rows if row.name in names_in_report or row.rung in stated_sources),
        tuple(
            row.model_copy(update={"specifier": ""}) for row in rows if row.name in names_in_report
        ),
    )
    problem = BuildError("nothing could be installed")
    for subset in dict.fromkeys(attempts):
        smaller = spec.model_copy(update={"requirements": subset})
        try:
            environment = session.build(smaller)
        except BuildError as error:
            problem = error
            continue
        if omissions := sorted({row.name for row in rows} - {row.name for row in subset}):
            session.note(f"not available, so not installed: {', '.join(omissions)}")
        return environment, smaller
    if basis.environment is not None:  # what the model adds cannot be had
        session.note(f"what a model asked for could not be installed: {problem}")
        return basis.environment, basis.spec
    raise problem


# Lines of source in all: whoever writes the program needs more of them than who says what counts,
# and fewer where a quoted traceback shows the way to the failure.
_LINES_FOR_READER, _LINES_FOR_WRITER, _LINES_WITH_FRAMES = 80, 112, 72


def _sources(
    session: IssueSession,
    draft: RunPlan,
    environment: Environment,
    names: list[str],
    refined: Interpretation | None = None,
    open_sources: SourceIndex | None = None,
) -> tuple[SourceIndex | None, tuple[Context, ...]]:
    """The index of the packages' sources, and what of it bears on the report. An error here costs
    the sources, never the run.
    """
    ports = session.ports
    if ports.indexer is None or "context" in session.job.without or not names:
        return None, ()
    with session.stage("candidates", "reading the sources of " + ", ".join(names[:3])):
        try:
            sources = open_sources or ports.indexer.open(
                environment, tuple(dict.fromkeys(names)), cancel=ports.cancel
            )
            issue = session.job.issue
            has_frames = any(row.frames for row in draft.bug.tracebacks)
            writer_lines = _LINES_WITH_FRAMES if has_frames else _LINES_FOR_WRITER
            lines = writer_lines if refined is not None else _LINES_FOR_READER
            tree = read_tree(environment.tree) if environment.tree else {}
            own = program_files.program_pieces(issue, draft.bug, tree) if refined else ()
            lines -= size(own)
            pieces = contexts.contexts(draft.bug, issue, sources, lines, refined=refined)
            pieces = contexts.with_notebooks(pieces, issue, draft.bug, tree)
            return sources, program_files.with_program(pieces, own)
        except Stopped:
            raise
        except Exception as error:
            kind = type(error).__name__
            session.note(f"the sources could not be read ({kind}: {str(error)[:200]})")
            return None, ()


def _sources_of_clone(
    session: IssueSession, draft: RunPlan
) -> tuple[SourceIndex | None, tuple[Context, ...]]:
    """What the repository's own files say, where nothing that bears on the report is installed:
    whoever says what counts has seen the code.
    """
    issue, options = session.job.issue, session.job.environment
    if not options.repo or session.ports.indexer is None:
        return None, ()
    spec = specify.in_place(specify.specify(draft.bug, issue, options, ""), options)
    bare_spec = spec.model_copy(update={"requirements": (), "constraints": ()})
    try:
        environment = session.build(session.matched(bare_spec))
    except (BuildError, UserError, TransientError) as error:
        session.note(f"the repository could not be looked into: {error}")
        return None, ()
    name = issue.repository.rpartition("/")[2] or "the repository"
    return _sources(session, draft, environment, [name])


def _requirements_of(
    refined: Interpretation, spec: EnvironmentSpec, bug: BugReport
) -> list[Requirement]:
    """What the model says is needed in addition to what rules found; a version only where the
    report's own words say so, then also in place of the rules'. What it only names has the version
    that the report states elsewhere.
    """
    claims = evidence.gather_claims(bug)
    requirements_by_name = {row.name: row for row in spec.requirements}
    pins = {pin.name: pin for pin in refined.pins if pin.quoted}
    requirements = []
    for name in refined.packages:
        plain = canonicalize_name(name)
        pin = pins.get(name.lower())
        version, reason = pin.version if pin else "", "a model says that the program needs it"
        specifier = versions.specifier(version, "text") or ""  # "3" means any 3, as in prose
        old = requirements_by_name.get(plain)
        fixed = old is not None and (old.rung is PinSource.OPTION or not version)
        is_alike = old is not None and (
            old.specifier == specifier
            or releases.same(versions.exact_version(old.specifier), version)
        )
        if plain == "python" or fixed or is_alike:
            continue
        new = specify.pin_versions(plain, reason, PinSource.IMPORT, claims, None)
        if pin is not None:
            reason = f"the report says {version} (read by a model)"
            if version.rstrip(".*") not in pin.quote:  # a slip, or written otherwise
                reason = f"a model reads {version} in {one_line(pin.quote)[:60]!r}"
            changes = {"specifier": specifier, "rung": PinSource.ISSUE, "reason": reason}
            new = new.model_copy(update=changes)
        fields = {"modules": specify.modules(plain, refined.api), "named": True}
        requirements.append(new.model_copy(update=fields))
    return requirements
