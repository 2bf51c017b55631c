"""Whether what a report is about can be imported in the environment built for it, before a model
is asked; what rules know of such failures is mended.
"""

from collections.abc import Sequence

from bot.errors import BuildError
from bot.models.bug import BugReport
from bot.models.environment import Environment, EnvironmentSpec
from bot.pipeline.environment import asked, specify
from bot.pipeline.execution import launch
from bot.pipeline.execution.session import Session
from bot.pipeline.search import recovery
from bot.rules import setup_failures
from bot.rules.code import module_names

_MOST_LINES = 8
_MOST_TEXT = 1_200


def mended(
    session: Session,
    bug: BugReport,
    spec: EnvironmentSpec,
    built: Environment,
    names: Sequence[str],
) -> tuple[EnvironmentSpec, Environment, str]:
    """The environment in which the distributions can be imported, else the last one, with the end
    of the traceback.
    """
    problem = _problem(session, bug, built, names)
    for _ in range(recovery.MOST_FIXES):
        wider = _wider(session, bug, spec, problem) if problem else None
        if wider is None:
            break
        try:
            built = session.build(wider)
        except BuildError as error:
            session.note(f"a package that an import needs could not be installed: {error}")
            break
        spec, problem = wider, _problem(session, bug, built, names)
    if problem:
        session.note(f"{', '.join(names)} cannot be imported: {_last(problem)}")
    return spec, built, problem


def _problem(session: Session, bug: BugReport, built: Environment, names: Sequence[str]) -> str:
    """The end of the traceback of an import, "" where nothing is wrong with it."""
    used = module_names.top_level("\n".join(fence.text for fence in bug.programs))
    run = launch.import_spec(built, session.job, tuple(names), used)
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
    wanted = asked.missing(failure.module, failure.requirement, bug, spec)
    wider = session.matched(specify.add(spec, wanted)) if wanted is not None else spec
    return wider if wider != spec else None


def _last(problem: str) -> str:
    return problem.rpartition("\n")[2]
