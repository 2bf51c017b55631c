"""A training program → its diagnosis: build its environment, run it once with the recorder, and
let the rules judge the trace.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from typing import NamedTuple, TypedDict

from bot.environment import missing, provided, specify
from bot.kernel import endings, launch, training_trace as trace
from bot.kernel.dialogue import Usage
from bot.kernel.environment import Environment, EnvironmentSpec
from bot.kernel.errors import BuildError
from bot.kernel.job import DiagnoseProgram, Note, ProgramJob
from bot.kernel.ports import Ports
from bot.kernel.report import DiagnosisReport
from bot.kernel.session import Session
from bot.kernel.training_trace import curves
from bot.kernel.training_types import DiagnosedRun, Diagnosis, TrainingProgram, TrainingTrace
from bot.model.budget import ModelBudget
from bot.training.diagnosis import rules
from bot.training.opinion import second_opinion
from sandbox.port import RunResult

# Runs a program once in the sandbox with the training probe.

OnLoss = Callable[[int, float], None]
"""Called with a step and its loss, about twice a second while the program trains."""


def record(
    program: TrainingProgram,
    environment: Environment,
    session: Session,
    on_loss: OnLoss | None = None,
    seed: int | None = None,
) -> tuple[RunResult, TrainingTrace]:
    """What the run did, and what the probe saw of it; the seed is the job's where none is given.
    Raises Stopped.
    """
    usual_seed = session.job.limits.seed
    spec = launch.training_spec(
        program, environment, session.job, usual_seed if seed is None else seed
    )
    if on_loss is None:
        result = session.execute(spec)
    else:
        spec = replace(spec, env={**spec.env, "REPRISE_LIVE": "1"})
        result = trace.without_marks(session.execute(spec, trace.listener(on_loss)))
    return result, trace.read_trace(result.artifacts)


# Why a training run may tell nothing.

_UNSEEN = "no training was observed: the probe saw no step of a PyTorch, Keras or optax optimizer"


def no_training(result: RunResult, trace: TrainingTrace) -> str:
    """Why the run tells nothing about training; "" when it trained, or meant to: a loop whose
    optimizer takes no step is a fault.
    """
    if trace.steps or trace.epochs or rules.is_without_step(trace):
        return ""
    match endings.ending_of(result):
        case "timed out":
            return f"the program was stopped after {result.seconds:.0f} s, before it trained"
        case "killed":
            why = "it ran out of memory" if result.oom else f"signal {result.signal}"
            return f"the program was killed before it trained ({why})"
        case "failed":
            reason = endings.error(result) or f"exit code {result.exit_code}"
            return f"the program failed before it trained ({reason})"
    reasons = trace.end.unseen if trace.end is not None else ()
    return "; ".join((_UNSEEN, *reasons[:2]))


# A training program → its diagnosis: build its environment, run it once with the training probe,
# and let the rules read the trace.

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
        environment = session.build(spec)
        with session.stage("diagnose", "running the program with the training probe"):
            result, trace = record(program, environment, session, on_loss)
        lacking = None if trace.steps else missing.requirement_of(result, spec)
        if lacking is None:
            break
        spec = session.matched(specify.add(spec, lacking))
    return RecordedRun(environment, result, trace)


def diagnose_recording(
    run: RecordedRun, judge: Callable[[TrainingTrace], Diagnosis] = rules.diagnose
) -> DiagnosedRun:
    """What the rules say of a recorded run. What a stopped program did until then counts."""
    result, trace = run.result, run.trace
    undecided = no_training(result, trace)
    return DiagnosedRun(
        diagnosis=Diagnosis() if undecided else judge(trace),
        undecided=undecided,
        ended=endings.ending_of(result),
        error=endings.error(result),
        framework=_framework(trace),
        steps=trace.taken,
        epochs=len(trace.epochs),
        seconds=result.seconds,
        curves=curves(trace),
    )


def _framework(trace: TrainingTrace) -> str:
    versions_by_name = trace.start.frameworks if trace.start is not None else {}
    frameworks = " and ".join(dict.fromkeys(model.framework for model in trace.models))
    return " ".join(filter(None, (frameworks, versions_by_name.get(frameworks, "")))) or ", ".join(
        versions_by_name
    )


# A training program by itself → its diagnosis: recorded once, judged by rules and, where one is
# configured, by a model.


Confirm = Callable[[RecordedRun, DiagnosedRun, Session], DiagnosedRun]
"""What trainings make of a diagnosis."""


def diagnose(job: DiagnoseProgram, ports: Ports, confirm: Confirm | None = None) -> DiagnosisReport:
    """The diagnosis of a program. Raises UserError, Stopped and SandboxError."""
    session, started, environment = Session.begin(job, ports), ports.clock(), None
    budget = ModelBudget(ports, job.model, started)
    try:
        recorded = record_program(job.program, session)
        environment, result = recorded.environment, judge(recorded, session, budget)
        if confirm is not None:
            result = confirm(recorded, result, session)
    except BuildError as error:
        result = DiagnosedRun(undecided=str(error))
    return DiagnosisReport(
        job=job, result=result, environment=environment, **run_facts(session, started, budget)
    )


def record_program(program: TrainingProgram, session: Session) -> RecordedRun:
    """Run the program with the probe. Raises BuildError and Stopped."""
    watch = session.ports.training
    spec = provided.spec(program, session.job.environment)
    recorded = record_run(program, spec, session, watch.loss)
    watch.recorded(recorded.result)
    return recorded


def judge(recorded: RecordedRun, session: Session[ProgramJob], budget: ModelBudget) -> DiagnosedRun:
    """What the rules say of a run, and a model where one is configured."""
    run = diagnose_recording(recorded)
    output = recorded.result.stdout
    program = session.job.program
    return second_opinion(run, recorded.trace, program, session, budget, output=output)


class RunFacts(TypedDict):
    """What the report of a program says of its run, whatever was asked for."""

    notes: tuple[Note, ...]
    seconds: dict[str, float]
    sandbox: str
    version: str
    prompts: dict[str, str]
    cost: Usage
    models: tuple[str, ...]


def run_facts(session: Session, started: float, budget: ModelBudget) -> RunFacts:
    """The facts of a run that ends now; `started` is the clock's reading at its start."""
    return RunFacts(
        notes=tuple(session.notes),
        seconds=session.timings(started),
        sandbox=session.ports.sandbox.name,
        version=metadata.version("reprise"),
        prompts=dict(budget.prompts),
        cost=budget.usage,
        models=budget.models,
    )
