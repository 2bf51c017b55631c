"""From a paper to a verdict on one of its numbers: `reproduce(job, ports) -> PaperReport` is the
whole product on one screen.

Source → Paper → claims (one is chosen) → criteria → the repository's command → runs → comparison →
verdict; each criterion against the code and the run; what a contradiction costs. Only numbers of
runs decide a verdict: what a criterion says explains it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import NamedTuple

from bot.environment import specify
from bot.environment.written_trees import commit_files
from bot.kernel.attempt import Script
from bot.kernel.environment import Environment, EnvironmentSpec, RepoSource
from bot.kernel.errors import BuildError, RepriseError, Stopped, UserError
from bot.kernel.job import ReproducePaper
from bot.kernel.outside_text import one_line
from bot.kernel.paper import (
    Criterion,
    NumberClaim,
    NumberComparison,
    Paper,
    PaperFiles,
    PaperNeed,
    PaperResult,
    PaperVerdict,
    WrittenCode,
)
from bot.kernel.ports import Ports
from bot.kernel.report import PaperReport
from bot.kernel.session import Session
from bot.kernel.trees import Tree, read_tree
from bot.model.agent import AgentEnd
from bot.model.budget import ModelBudget
from bot.papers import comparison, staging
from bot.papers.claims import choose_claim, claim_of_issue, method_names, read_claims
from bot.papers.code_reading import read_code
from bot.papers.criteria import read_criteria
from bot.papers.develop import MOST_REVISIONS, Developer, complaints_of
from bot.papers.evidence import judge, judge_seeds
from bot.papers.fingerprint import add_readings
from bot.papers.lineage import add_lineage
from bot.papers.located import Site, locate
from bot.papers.origin import is_of_paper, named_paper, paper_of_tree
from bot.papers.reading.read import read_paper
from bot.papers.repository import choose_program, command_line, declared_by, specified
from bot.papers.runs import (
    PaperMeasurement,
    PaperRunner,
    PaperSession,
    PreparedProgram,
    measure_effects,
)
from bot.papers.workbench import ENTRY
from sandbox.cache import Cache

_ARXIV_ID = "the paper's arXiv id, in the issue, in the README or in CITATION.cff"


@dataclass
class _Draft:
    """A result in the making: what is known when work ends is what the report says."""

    paper: Paper | None = None
    source: str = ""
    files: PaperFiles | None = None
    claims: tuple[NumberClaim, ...] = ()
    claim: NumberClaim | None = None
    criteria: tuple[Criterion, ...] = ()
    script: Script | None = None
    environment: Environment | None = None
    code: WrittenCode | None = None
    measurements: list[PaperMeasurement] = field(default_factory=list)

    def result(self, verdict: PaperVerdict) -> PaperResult:
        runs = tuple(row.run for row in self.measurements)
        compared = comparison.compare(self.claim, runs) if self.claim else NumberComparison()
        curves = (row.curves for row in self.measurements if row.curves)
        paper = self.paper
        return PaperResult(
            title=paper.title if paper is not None else "",
            format=paper.format if paper is not None else None,
            verdict=verdict,
            claim=self.claim,
            claims=self.claims[:40],
            comparison=compared,
            criteria=self.criteria,
            command=command_line(self.script) if self.script is not None else "",
            commit=self.environment.commit if self.environment and self.code is None else "",
            code=self.code,
            runs=runs,
            repositories=paper.repositories if paper is not None else (),
            problems=paper.problems if paper is not None else (),
            curves=next(curves, ()),
        )


def reproduce(job: ReproducePaper, ports: Ports) -> PaperReport:
    """Reproduce a number of a paper. Raises UserError, TransientError and SandboxError; everything
    else becomes a verdict.
    """
    session, started = Session.begin(job, ports), ports.clock()
    draft, budget = _Draft(), ModelBudget(ports, job.model, started)
    try:
        verdict = _find_paper(session, draft) or _decide(session, draft, budget)
    except UserError as error:
        if job.issue is None:
            raise
        # Nobody stands at a command line: the issue is answered.
        verdict = PaperVerdict(kind="needs_info", reason=str(error), items=(error.fix,))
    except Stopped:
        if draft.paper is None and job.issue is None:
            raise
        runs = len(draft.measurements)
        reason = f"stopped on request after {runs} run{'' if runs == 1 else 's'}"
        verdict = PaperVerdict(kind="cancelled", reason=reason)
    return PaperReport(
        job=job,
        result=draft.result(verdict),
        environment=draft.environment,
        attempts=tuple(session.attempts),
        notes=tuple(session.notes),
        seconds=session.timings(started),
        sandbox=ports.sandbox.name,
        version=metadata.version("reprise"),
        prompts=dict(budget.prompts),
        cost=budget.usage,
        models=budget.models,
    )


def _find_paper(session: PaperSession, draft: _Draft) -> PaperVerdict | None:
    """Note where the paper is, as far as it has to be looked for; the verdict where nothing names
    one. Of an issue only arXiv ids count: no text from outside names a file of this machine.
    """
    job = session.job
    draft.source = job.source or named_paper(job.issue)
    if draft.source:
        return None
    if not job.environment.repo:
        reason = "the issue names no paper, and there is no repository to look into"
        return _needs("paper", reason, _ARXIV_ID)
    try:
        with session.stage("source", "looking for the paper in the repository"):
            origin = paper_of_tree(_read_repository(session, draft))
    except BuildError as error:
        return _not_built(error)
    if origin is None:
        reason = "neither the issue nor the README or a citation file names a paper"
        return _needs("paper", reason, _ARXIV_ID)
    session.note(f"the paper is {origin.source}, which {origin.where} names")
    draft.source = origin.source
    return None


def _needs(what: PaperNeed, reason: str, *items: str) -> PaperVerdict:
    return PaperVerdict(kind="needs_info", reason=reason, items=items, needs=what)


def _read_paper(session: PaperSession, draft: _Draft) -> Paper:
    """The paper, its claims and what it states. Raises UserError for a claim that is not in it."""
    job, ports = session.job, session.ports
    if ports.papers is None:
        raise UserError("There is no source of papers.", "Pass a file or a folder.")
    with session.stage("source", "reading the paper"):
        draft.files = ports.papers.fetch(draft.source, cancel=ports.cancel)
        paper = draft.paper = read_paper(draft.files, ports.cancel)
    with session.stage("claims", "collecting its numbers"):
        draft.claims = read_claims(paper)
        if job.issue is not None and not job.claim:
            draft.claim = claim_of_issue(draft.claims, job.issue)
        draft.claim = draft.claim or choose_claim(draft.claims, job.claim)
    with session.stage("fingerprint", "collecting its hyperparameters"):
        draft.criteria = read_criteria(paper, draft.claims, draft.claim)
    return paper


def _decide(session: PaperSession, draft: _Draft, budget: ModelBudget) -> PaperVerdict:
    paper = _read_paper(session, draft)
    draft.criteria = add_readings(paper, draft.claim, draft.criteria, session, budget)
    draft.criteria = add_lineage(paper, draft.claim, draft.criteria, session)
    claim, options = draft.claim, session.job.environment
    if claim is None:
        reason = "the rules found no number of a known metric in the paper"
        return _needs("number", reason)
    if session.job.no_repo:
        return _develop(session, draft, budget, paper, claim)
    if not options.repo:
        names = tuple(f"the repository, such as {url}" for url in paper.repositories[:2])
        reason = "no repository was given"
        return _needs("repository", reason, *(names or ("the repository",)))
    try:
        with session.stage("code", "looking into the repository"):
            tree = _read_repository(session, draft)
        if verdict := _unrelated(session, draft, paper, tree):
            return verdict
        prepared = _build(session, draft)
    except BuildError as error:
        return _not_built(error)
    if prepared is None:
        reason = "the README gives no command that starts a program of the repository"
        return _needs("command", reason, "the command")
    return _measure(session, draft, budget, claim, prepared)


# The repository: its program and the environment for it.


def _not_built(error: BuildError) -> PaperVerdict:
    steps = tuple(f"{step.what}: {step.error}" for step in error.steps if step.error)
    return PaperVerdict(kind="setup_failed", reason=str(error), items=steps[:4])


def _read_repository(session: PaperSession, draft: _Draft) -> Tree:
    """The files of the repository, for which nothing is installed. Raises BuildError."""
    if draft.environment is None:
        options = session.job.environment
        bare = specify.in_place(specify.for_program(options, ""), options)
        bare = bare.model_copy(update={"requirements": (), "constraints": ()})
        draft.environment = session.build(session.matched(bare))
    return read_tree(draft.environment.tree)


def _unrelated(
    session: PaperSession, draft: _Draft, paper: Paper, tree: Tree
) -> PaperVerdict | None:
    """The verdict on a repository of which nothing says that it is the paper's. A command that a
    person gave runs all the same.
    """
    options = session.job.environment
    repo, methods = options.repo or "", method_names(paper)
    if is_of_paper(tree, paper, draft.source, repo, draft.claim, methods):
        return None
    reason = "nothing in the repository names this paper, its title or its method"
    if options.command:
        session.note(reason)
        return None
    names = tuple(f"the paper's repository, such as {url}" for url in paper.repositories[:2])
    items = (*(names or ("the paper's repository",)), "or the command, to run it all the same")
    return _needs("repository", reason, *items)


def _build(session: PaperSession, draft: _Draft) -> PreparedProgram | None:
    options = session.job.environment
    where = "the repository" if draft.code is None else "the code"
    with session.stage("code", f"looking into {where}"):
        tree = _read_repository(session, draft)
        script = choose_program(tree, draft.claim, options.command)
    if script is None:
        return None
    draft.script = script
    draft.criteria = judge(draft.criteria, locate(script, tree), {})
    spec = session.matched(_specified(session, script, tree))
    draft.environment = session.build(spec)
    if draft.code is None:
        session.note(f"run in the repository at commit {draft.environment.commit[:12]}")
    return PreparedProgram(script, spec, draft.environment)


def _specified(session: PaperSession, script: Script, tree: Tree) -> EnvironmentSpec:
    """What the repository's files ask for, and what the program imports, as of its commit; code
    that was written here is of no day.
    """
    options = session.job.environment
    declared = declared_by(tree, script)
    for sentence in declared.notes:
        session.note(sentence)
    at = None
    if session.ports.commits is not None and not session.job.no_repo:
        try:
            commit = RepoSource.of(options.repo or "", options.ref or "")
            at = session.ports.commits.commit(commit, options.ref or "").date
        except RepriseError as error:
            session.note(f"the day of the commit is not known: {error}")
    return specified(script, tree, options, declared, at)


# The code that a model writes where there is no repository.


class _Round(NamedTuple):
    """A program that was written or revised, with its run and what of it is not the paper's."""

    runner: PaperRunner
    first: PaperMeasurement
    sites: tuple[Site, ...]
    criteria: tuple[Criterion, ...]
    complaints: tuple[str, ...]
    code: WrittenCode


def _develop(
    session: PaperSession, draft: _Draft, budget: ModelBudget, paper: Paper, claim: NumberClaim
) -> PaperVerdict:
    """The verdict on a program that a model writes from the paper: written, run, checked against
    the paper and revised, then measured like any other.
    """
    if session.ports.model is None or draft.files is None:
        reason = "no repository was given, and there is no model to write the code"
        return _needs("repository", reason, "the repository, or a model")
    with Developer.begin(session, budget) as developer:
        with session.stage("code", "writing the code from the paper"):
            end = developer.write(draft.files, paper, claim, draft.criteria)
        draft.code = developer.code(end)
        if verdict := _unwritten(developer, end):
            return verdict
        try:
            best = _revised(session, draft, budget, developer, claim, end)
        except BuildError as error:
            return _not_built(error)
    draft.criteria, draft.code, draft.measurements = best.criteria, best.code, [best.first]
    draft.script, draft.environment = best.runner.prepared.script, best.runner.prepared.environment
    return _settle(draft, claim, best.runner, best.first, best.sites)


def _unwritten(developer: Developer, end: AgentEnd) -> PaperVerdict | None:
    """The verdict where there is no program to run."""
    if end.kind == "gave_up":
        reason = one_line(f"the model that writes the code gave up: {end.text}")
        return _needs("data" if end.missing else "repository", reason, *end.missing)
    if not developer.has_program:
        reason = f"there is no program yet: {end.text}"
        return PaperVerdict(kind="budget_reached", reason=reason)
    return None


def _revised(
    session: PaperSession,
    draft: _Draft,
    budget: ModelBudget,
    developer: Developer,
    claim: NumberClaim,
    end: AgentEnd,
) -> _Round:
    """The round that fits the paper best. The number that it prints is no measure."""
    deadline = session.ports.clock() + 60 * session.job.minutes
    stated, rounds = draft.criteria, list[_Round]()
    for number in range(1, MOST_REVISIONS + 2):
        draft.criteria, draft.code = stated, developer.code(end, revisions=number - 1)
        rounds.append(_round(session, draft, budget, developer, claim, deadline))
        complaints, runner = rounds[-1].complaints, rounds[-1].runner
        if not complaints or number > MOST_REVISIONS or not runner.has_time or end.kind == "limit":
            break
        before = developer.agent.files
        with session.stage("code", f"revising the code, round {number}"):
            end = developer.revise(number, complaints)
        if end.kind == "gave_up" or developer.agent.files == before:
            break
    return min(rounds, key=lambda row: (bool(row.first.run.problem), len(row.complaints)))


def _round(
    session: PaperSession,
    draft: _Draft,
    budget: ModelBudget,
    developer: Developer,
    claim: NumberClaim,
    deadline: float,
) -> _Round:
    assert draft.code is not None
    draft.environment = None
    assert session.ports.cache is not None
    cache = Cache(session.ports.cache)  # the code stays until it is cloned from there
    own = _with_code(session, developer.agent.files, cache)
    prepared = _build(own, draft)
    assert prepared is not None
    runner = PaperRunner(own, claim, prepared, deadline)
    first, sites = _first(own, draft, budget, runner)
    complaints = complaints_of(first, draft.criteria)
    return _Round(runner, first, sites, draft.criteria, complaints, draft.code)


def _with_code(session: PaperSession, files: Mapping[str, str], cache: Cache) -> PaperSession:
    """The session with code that was written here as its repository."""
    update = {"repo": str(commit_files(files, cache)), "ref": None, "command": f"python {ENTRY}"}
    options = session.job.environment.model_copy(update=update)
    job = session.job.model_copy(update={"environment": options})
    return replace(session, context=replace(session.context, job=job))


# The runs.


def _measure(
    session: PaperSession,
    draft: _Draft,
    budget: ModelBudget,
    claim: NumberClaim,
    prepared: PreparedProgram,
) -> PaperVerdict:
    deadline = session.ports.clock() + 60 * session.job.minutes
    runner = PaperRunner(session, claim, prepared, deadline)
    first, sites = _first(session, draft, budget, runner)
    return _settle(draft, claim, runner, first, sites)


def _first(
    session: PaperSession, draft: _Draft, budget: ModelBudget, runner: PaperRunner
) -> tuple[PaperMeasurement, tuple[Site, ...]]:
    """The first run, and the criteria held against it; what of them has to be read, where it prints
    the number.
    """
    with session.stage("run", "run 1"):
        first = runner.first()
    draft.environment = runner.prepared.environment
    draft.measurements = [first]
    tree, script = read_tree(draft.environment.tree), runner.prepared.script
    sites = _judge(draft, script, tree, first.observed)
    if draft.paper is not None and not first.run.problem and first.run.value is not None:
        draft.criteria = read_code(
            draft.criteria, draft.paper, runner.claim, script, tree, session, budget
        )
    return first, sites


def _settle(
    draft: _Draft,
    claim: NumberClaim,
    runner: PaperRunner,
    first: PaperMeasurement,
    sites: tuple[Site, ...],
) -> PaperVerdict:
    """The verdict after the first run: further runs, where they would tell more."""
    session = runner.session
    if verdict := _unable(first, session):
        return verdict
    tree = read_tree(runner.prepared.environment.tree)
    if verdict := _staged(runner, draft, claim, tree):
        return verdict
    _repeat(runner, draft)
    values = [row.run.value for row in draft.measurements if not row.run.partial]
    draft.criteria = judge_seeds(draft.criteria, values)
    verdict = comparison.decide(claim, [row.run for row in draft.measurements])
    if verdict.kind == "not_reproduced":
        with session.stage("effect", "measuring what the contradictions cost"):
            draft.criteria = measure_effects(runner, draft.criteria, sites, draft.measurements)
    return verdict


def _judge(
    draft: _Draft, script: Script, tree: Tree, observed: Mapping[str, str]
) -> tuple[Site, ...]:
    sites = locate(script, tree)
    draft.criteria = judge(draft.criteria, sites, observed)
    return sites


def _unable(first: PaperMeasurement, session: PaperSession) -> PaperVerdict | None:
    """The verdict where the first run shows that no other would do better."""
    run = first.run
    if first.hardware and session.job.environment.device == "cpu":
        reason = f"the program needs {first.hardware}"
        return PaperVerdict(kind="needs_hardware", reason=reason, items=(first.hardware,))
    if first.lacks:
        reason = f"the program lacks {first.lacks}: {run.problem}"
        return _needs("data", one_line(reason), first.lacks)
    if run.partial and run.value is None:
        reason = f"the program was stopped after {run.seconds:.0f} s, before it printed the number"
        return PaperVerdict(kind="budget_reached", reason=reason)
    if run.problem:
        reason = f"the program ran, but {run.problem}"
        return PaperVerdict(kind="inconclusive", reason=reason)
    return None


def _staged(
    runner: PaperRunner, draft: _Draft, claim: NumberClaim, tree: Tree
) -> PaperVerdict | None:
    """The verdict on a program that prints a number which is spelled in its repository."""
    first = draft.measurements[0].run
    if first.value is None or first.partial:
        return None
    places = staging.written_numbers(tree, claim, [first.value])
    if not places:
        return None
    if not runner.has_time:
        at = f"`{places[0].file}` in line {places[0].line}"
        reason = f"{at} spells the number; no time is left to see whether it is computed"
        return PaperVerdict(kind="inconclusive", reason=reason)

    def run(script: Script) -> float | None:
        measurement = runner.variant(script, 0, script.fixes[-1].what).run
        return None if measurement.problem else measurement.value

    with runner.session.stage("run", "is the number computed?"):
        place = staging.follows(runner.prepared.script, tree, places, claim, first.value, run)
    if place is None:
        return None
    where = f"`{place.file}` in line {place.line}"
    reason = f"the program prints the number that {where} spells, instead of computing it"
    return PaperVerdict(kind="inconclusive", reason=reason)


def _repeat(runner: PaperRunner, draft: _Draft) -> None:
    """Run the command with other seeds while there is time. Two runs that are alike are enough."""
    for number in range(1, runner.session.job.runs):
        values = [row.run.value for row in draft.measurements]
        is_fixed = len(values) > 1 and len({*values}) == 1
        if is_fixed or not runner.has_time or draft.measurements[-1].run.partial:
            break
        with runner.session.stage("run", f"run {number + 1}"):
            draft.measurements.append(runner.measure(runner.prepared.script, number))
