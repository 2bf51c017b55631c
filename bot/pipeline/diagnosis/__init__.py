"""A training program → its diagnosis: build its environment, run it once with the training probe,
and let the rules read the trace.
"""

from collections.abc import Callable
from typing import NamedTuple

from bot.models.diagnosis import DiagnosedRun, Diagnosis, TrainingProgram
from bot.models.environment import Environment, EnvironmentSpec, Requirement
from bot.models.training import TrainingTrace
from bot.pipeline.diagnosis import endings
from bot.pipeline.diagnosis.curves import curves
from bot.pipeline.diagnosis.record import OnLoss, record
from bot.pipeline.environment import asked, specify
from bot.pipeline.execution.session import Session
from bot.rules import diagnosis as rules, setup_failures
from sandbox.port import RunResult

_MOST_FIXES = 3


class RecordedRun(NamedTuple):
    """One run of a program with the probe: where, what it did, and what the probe saw."""

    environment: Environment
    result: RunResult
    trace: TrainingTrace


def record_run(
    program: TrainingProgram,
    spec: EnvironmentSpec,
    session: Session,
    on_loss: OnLoss | None = None,
) -> RecordedRun:
    """Run a program once in its environment. Where a package is missing, it is installed and the
    program runs again. `on_loss` hears steps and losses while it trains. Raises BuildError and
    Stopped.
    """
    spec = session.matched(spec)
    for _ in range(_MOST_FIXES):
        built = session.build(spec)
        with session.stage("diagnose", "running the program with the training probe"):
            result, trace = record(program, built, session, on_loss)
        lacking = None if trace.steps else _lacking(result, spec)
        if lacking is None:
            break
        spec = session.matched(specify.add(spec, lacking))
    return RecordedRun(built, result, trace)


def _lacking(result: RunResult, spec: EnvironmentSpec) -> Requirement | None:
    """What to install before the program can train."""
    raised = endings.failure(result)
    found = setup_failures.recognise(raised.exception, raised.message) if raised else None
    if found is None or not (found.module or found.requirement):
        return None
    return asked.missing(found.module, found.requirement, None, spec)


def diagnosed(
    run: RecordedRun, judge: Callable[[TrainingTrace], Diagnosis] = rules.diagnose
) -> DiagnosedRun:
    """What the rules say of a recorded run. What a stopped program did until then counts."""
    result, trace = run.result, run.trace
    undecided = endings.undecided(result, trace)
    return DiagnosedRun(
        diagnosis=Diagnosis() if undecided else judge(trace),
        undecided=undecided,
        ended=endings.ended(result),
        error=endings.error(result),
        framework=_framework(trace),
        steps=trace.taken,
        epochs=len(trace.epochs),
        seconds=result.seconds,
        curves=curves(trace),
    )


def _framework(trace: TrainingTrace) -> str:
    known = trace.start.frameworks if trace.start is not None else {}
    named = " and ".join(dict.fromkeys(model.framework for model in trace.models))
    return " ".join(filter(None, (named, known.get(named, "")))) or ", ".join(known)
