"""The curves of the faulty and of the patched program side by side."""

from collections.abc import Iterator, Sequence

from bot.models.diagnosis import Curve
from bot.models.training import TrainingTrace
from bot.pipeline.diagnosis import trace as traces
from bot.pipeline.diagnosis.curves import curves
from bot.pipeline.execution.session import Session
from bot.pipeline.repair.trial_runs import TrialRun, TrialRuns

_PANELS = ("loss", "gradients", "updates", "dead")


def compared_curves(
    before: TrainingTrace, patched: TrialRun, runs: TrialRuns, session: Session
) -> tuple[Curve, ...]:
    """One curve of each kind of either program: the faulty one as it was recorded, the patched one
    in a training more, with the probe. Raises Stopped.
    """
    (after,) = probed((patched,), runs, session)
    return (*_named("faulty", before), *_named("patched", after))


def probed(
    shown: Sequence[TrialRun], runs: TrialRuns, session: Session
) -> tuple[TrainingTrace, ...]:
    """The traces of trainings, in their order. Raises Stopped."""
    watched = TrialRuns(session, runs.environment, runs.limit_s, probed=True)
    found = dict(watched.run(shown))
    return tuple(traces.read(found[place].artifacts) for place in range(len(shown)))


def _named(name: str, trace: TrainingTrace) -> Iterator[Curve]:
    found = curves(trace)
    for panel in _PANELS:
        first = next((curve for curve in found if curve.panel == panel), None)
        if first is not None:
            whole = name if panel == "loss" else f"{name}: {first.name}"
            yield first.model_copy(update={"name": whole})
