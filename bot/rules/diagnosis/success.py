"""Whether a run is known to have learned: a verdict of its curves that no opinion overrules."""

from bot.models.training import TrainingTrace
from bot.rules.diagnosis.style import over_fitting
from bot.rules.diagnosis.training import Training, trainings

_LOST = 0.5  # of the trivial loss, on data that was held out


def learned(trace: TrainingTrace) -> bool:
    """Whether every model is known to have learned what there was to learn, on data that was held
    out too where the program measures that.
    """
    runs = trainings(trace)
    return bool(runs) and all(run.learning.well and not _fails_elsewhere(run) for run in runs)


def _fails_elsewhere(run: Training) -> bool:
    last = run.epochs[-1].values if run.epochs else {}
    if last.get("val_accuracy") is not None:
        return any(over_fitting(run))
    other, trivial = last.get("val_loss"), run.learning.trivial
    return other is not None and trivial is not None and other > _LOST * trivial
