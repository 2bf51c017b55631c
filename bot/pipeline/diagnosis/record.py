"""Runs a program once in the sandbox with the training probe."""

from collections.abc import Callable
from dataclasses import replace

from bot.models.diagnosis import TrainingProgram
from bot.models.environment import Environment
from bot.models.training import TrainingTrace
from bot.pipeline.diagnosis import live, trace
from bot.pipeline.execution import launch
from bot.pipeline.execution.session import Session
from sandbox.port import RunResult

OnLoss = Callable[[int, float], None]
"""Called with a step and its loss, about twice a second while the program trains."""


def record(
    program: TrainingProgram,
    environment: Environment,
    session: Session,
    on_loss: OnLoss | None = None,
) -> tuple[RunResult, TrainingTrace]:
    """What the run did, and what the probe saw of it. Raises Stopped."""
    spec = launch.training_spec(program, environment, session.job, session.job.limits.seed)
    if on_loss is None:
        result = session.execute(spec)
    else:
        spec = replace(spec, env={**spec.env, "REPRISE_LIVE": "1"})
        result = live.without_marks(session.execute(spec, live.listener(on_loss)))
    return result, trace.read(result.artifacts)
