"""What the report leaves out, supplied by a model: interpret → read sources → plan → a bounded loop
of write, check, run, analyse (`writing`).

The model proposes. A program counts only when a run of it matches the signature that was frozen
before, and the confirming runs are made elsewhere. See RepGen (arXiv 2512.14990) for the stages;
here every generated program is executed.
"""

from dataclasses import replace

from packaging.utils import canonicalize_name

from bot.errors import BuildError, ModelUnavailable, Stopped
from bot.models.attempt import Match
from bot.models.environment import EnvironmentSpec, PinSource, Requirement
from bot.models.plan import Interpretation
from bot.models.report import AnyVerdict, NotReproduced
from bot.models.run_plan import RunPlan
from bot.pipeline.confirm import verdicts
from bot.pipeline.environment import specify
from bot.pipeline.execution.runner import Runner, SearchResult, Session
from bot.pipeline.reading import report_excerpt
from bot.pipeline.search import candidates, contexts as contexting, interpretation, report_programs
from bot.pipeline.search.model_budget import BudgetExceeded, ModelBudget
from bot.pipeline.search.writing import Material, Reconstructed, write_program
from bot.rules.packages import imports
from bot.rules.signatures import readings


def reconstruct(
    session: Session, draft: RunPlan, budget: ModelBudget, verdict: AnyVerdict
) -> Reconstructed:
    """A program for a report whose own programs led to this `verdict` or that has none. When there
    is none, the notes of the session say why.
    """
    written = Reconstructed()
    try:
        written.result = _program(session, draft, budget, verdict, written)
    except BudgetExceeded as error:
        written.exceeded = str(error)
    except ModelUnavailable as error:
        session.note(f"no model could be asked: {error}")
    except BuildError as error:
        session.note(f"the environment for a written program could not be built: {error}")
    except Stopped:
        written.stopped = True
    return written


def _program(
    session: Session,
    draft: RunPlan,
    budget: ModelBudget,
    verdict: AnyVerdict,
    written: Reconstructed,
) -> SearchResult | None:
    material = _material(session, draft)
    refined = _interpreted(session, draft, budget, material)
    written.update(refined=refined)
    if refined.signature is None:
        return None
    written.signature = refined.signature
    material = _completed(session, draft, refined, material)
    runner = session.judging(draft.bug, refined.signature)
    if draft.script is not None and draft.signature is not None:
        if not readings.same(draft.signature, refined.signature):
            own = _own_program(runner, material)
            if own is not None:
                return own
        elif isinstance(verdict, NotReproduced):
            return None  # read alike, and it did not happen
    return write_program(runner, budget, refined, material, written)


def _own_program(runner: Runner, material: Material) -> SearchResult | None:
    """The first of the report's own programs that fails as a model reads the report."""
    runner.note(f"a model reads the report as {verdicts.describe(runner.signature)}")
    proposed = candidates.propose(runner.bug, runner.signature)
    scripts, _ = candidates.genuine_ones(proposed, runner.signature)
    found = report_programs.search(runner, material.spec, scripts) if scripts else None
    return found if found is not None and found.judgement.match is Match.MATCHED else None


def _material(session: Session, draft: RunPlan) -> Material:
    """The environment and its sources, before anything is asked: what counts is fixed with the
    code in sight.
    """
    issue, options = session.job.issue, session.job.options
    spec = draft.spec or specify.specify(draft.bug, issue, options, "")
    material = Material(report_excerpt.report(issue, draft.bug), spec, session.build(spec))
    names = [row.name for row in spec.requirements if row.rung is not PinSource.REPAIR]
    return _with_sources(session, draft, material, names)


def _interpreted(
    session: Session, draft: RunPlan, budget: ModelBudget, material: Material
) -> Interpretation:
    issue = session.job.issue
    # Where the report's own programs were run, the report is read again without the rules' word.
    known = draft.signature if draft.script is None else None
    if "refine" in session.job.options.without:
        return Interpretation(claim=issue.title, signature=draft.signature, inferred=("claim",))
    with session.stage("intake", "asking a model what the report leaves open"):
        question = interpretation.build(
            issue, draft.bug, known, material.environment, material.contexts
        )
        answer = budget.ask(question)
    return interpretation.parse(answer.data, issue, known)


def _completed(
    session: Session, draft: RunPlan, refined: Interpretation, material: Material
) -> Material:
    """Adds what the model says is needed to what the rules found."""
    wanted, spec = _wanted(refined, material.spec), material.spec
    if not wanted:
        return material
    for requirement in wanted:
        spec = specify.add(spec, requirement)
    material = replace(material, spec=spec, environment=session.build(spec))
    tops = dict.fromkeys(name.split(".")[0] for name in refined.api)
    names = [imports.distribution(top) or top for top in tops]
    return _with_sources(session, draft, material, names)


def _with_sources(
    session: Session, draft: RunPlan, material: Material, names: list[str]
) -> Material:
    ports = session.ports
    if ports.indexer is None or "context" in session.job.options.without or not names:
        return material
    with session.stage("candidates", "reading the sources of " + ", ".join(names[:3])):
        sources = ports.indexer.open(
            material.environment, tuple(dict.fromkeys(names)), cancel=ports.cancel
        )
        ranked = contexting.contexts(draft.bug, session.job.issue, sources)
    return replace(material, sources=sources, contexts=ranked)


def _wanted(refined: Interpretation, spec: EnvironmentSpec) -> list[Requirement]:
    """What the model says is needed in addition to what rules found; a version only where the
    report's own words say so.
    """
    known = {requirement.name for requirement in spec.requirements}
    quoted = {pin.name: pin.version for pin in refined.pins if pin.quoted}
    wanted = []
    for name in refined.packages:
        plain = canonicalize_name(name)
        if plain in known or plain == "python":
            continue
        version, reason = quoted.get(name.lower(), ""), "a model says that the program needs it"
        wanted.append(
            Requirement(
                name=plain,
                specifier=f"=={version}" if version else "",
                rung=PinSource.ISSUE if version else PinSource.IMPORT,
                reason=f"the report says {version} (read by a model)" if version else reason,
            )
        )
    return wanted
