"""Whether a run is known to have learned: a verdict of its curves that no opinion overrules."""

from typing import Literal

from bot.models.training import TrainingTrace
from bot.rules.diagnosis.style import over_fitting
from bot.rules.diagnosis.training import Training, trainings

Success = Literal["", "trained", "held out"]
_LOST = 0.5  # of the trivial loss, on data that was held out
_ORDER: tuple[Success, ...] = ("", "trained", "held out")


def success(trace: TrainingTrace) -> Success:
    """Whether every model is known to have learned what there was to learn: on its training data,
    or also on data that was held out; "" when one is not.
    """
    found = [_success(run) for run in trainings(trace)]
    return min(found, key=_ORDER.index, default="")


def _success(run: Training) -> Success:
    if not run.learning.well:
        return ""
    last = run.epochs[-1].values if run.epochs else {}
    if last.get("accuracy") is not None and last.get("val_accuracy") is not None:
        return "" if any(over_fitting(run)) else "held out"
    other, trivial = last.get("val_loss"), run.learning.trivial
    if other is None or trivial is None:
        return "trained"
    return "" if other > _LOST * trivial else "held out"
