"""How well a training went by its own curves: against the trivial predictor, and its trend.

A healthy run is one whose loss ends far below that of the best constant prediction, or whose
accuracy ends far above the share of the most frequent class. Comparisons are relative and between
means of parts of the run: equality and single steps say nothing under noise.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, pvariance
from typing import Literal

from bot.kernel.training_types import Data, Epoch, Loss, Summary, TrainingStep
from sandbox.probe.training import vocabulary

Health = Literal["well", "fairly", "partly", "badly", "unknown"]

# Of the way from the trivial predictor to no loss, or to all right:
_WELL = 0.9
_FAIRLY = 0.75
_BADLY = 0.15
_PARTS = 20
_TINY = 1e-6
_SLACK = 1e-3
_LITTLE = 0.02
_UNTRAINED = 0.15
_ANOTHER_SCALE = 4.0
_ENOUGH = 16  # targets from which the trivial loss of a batch is taken
_FEWEST, _ALL_STEPS = 10, 2000
ENTROPIES = frozenset(
    (*vocabulary.OF_CLASSES, "categorical_crossentropy", "sparse_categorical_crossentropy")
)
BINARY = frozenset(vocabulary.BINARY)
SIGNED_LOSSES = frozenset(("hinge", "squared_hinge", "soft_margin"))
"""Losses of the product of a prediction and a label of -1 or 1."""
_NEVER_NEGATIVE = (ENTROPIES | BINARY | {"kld", "mse", "mae", "huber", "smooth_l1"}) - {"nll"}


@dataclass(frozen=True)
class Learning:
    """What curves say. `points` are mean losses of equal parts of the run, without penalties.

    `skill` is the share of the trivial loss that is gone, of what can go (None when unknown),
    `progress` the better of it and the accuracy's. A loss that is fed, or compared with, what it
    does not take is `meaningless`: its values say nothing. `pace` is the relative fall over the
    last fifth of the run, `certain` when it stands out from the noise; `rises` are parts that end a
    fifth higher. `limit` is the loss below which a run is better than a constant prediction.
    """

    points: tuple[float, ...] = ()
    start: float | None = None
    end: float | None = None
    trivial: float | None = None
    limit: float | None = None
    skill: float | None = None
    progress: float | None = None
    pace: float = 0.0
    certain: bool = False
    broken: bool = False
    meaningless: bool = False
    rises: int = 0
    health: Health = "unknown"

    @property
    def well(self) -> bool:
        """Whether the run learned what there was to learn."""
        return self.health == "well"

    @property
    def doubtful(self) -> bool:
        """Whether a strong cause may still have cost something."""
        return self.health in ("fairly", "partly", "badly")

    @property
    def poor(self) -> bool:
        """Whether it is known that the run learned little."""
        return self.health in ("partly", "badly")

    @property
    def badly(self) -> bool:
        """Whether the run is about as good as a constant prediction, or worse."""
        return self.health == "badly"

    def below(self, progress: float) -> bool:
        """Whether it is known that the run got less far than this."""
        return self.badly or (self.progress is not None and self.progress < progress)

    @property
    def falling(self) -> bool:
        """Whether the loss still fell at the end, more than noise does."""
        return self.certain and self.pace >= 0.02 and not self.meaningless


def learning(
    losses: tuple[Loss, ...],
    steps: tuple[TrainingStep, ...],
    epochs: tuple[Epoch, ...],
    data: Data | None,
) -> Learning:
    """Reads the curves of one training. The sum of several losses has no trivial predictor, unless
    it is known how they are weighed.
    """
    loss = losses[0] if len(losses) == 1 else None
    series = _series(steps, epochs)
    finite = [x for x in series if math.isfinite(x)]
    if not finite:
        return Learning(broken=bool(series), health="badly" if series else "unknown")
    points = _parts(finite)
    start = fmean(finite[: max(1, min(5, len(finite) // 20))])
    trivial, floor = _limits(losses, data)
    if loss is not None and _matches_rows(loss):
        trivial = None  # how well rows can be told from each other is not known
    if trivial is not None and start - floor < _UNTRAINED * (trivial - floor):
        trivial = None  # the steps' losses are on another scale
    if trivial is not None and loss is not None and _is_summed_otherwise(loss, start, trivial):
        trivial = None
    skill = None if trivial is None else _skill(points[-1], trivial, floor)
    pace, certain = _pace(finite)
    facts = Learning(
        points=points,
        start=start,
        end=points[-1],
        trivial=trivial,
        limit=None if trivial is None else trivial - _BADLY * (trivial - floor),
        skill=skill,
        progress=_progress(_right(skill, loss), _above_majority(_accuracy(epochs), loss)),
        pace=pace,
        certain=certain,
        broken=not math.isfinite(series[-1]) or _impossible(loss, points[-1]),
        meaningless=any(_meaningless(one, data if loss else None) for one in losses),
        rises=sum(b > a + 0.2 * abs(a) for a, b in pairwise(points[len(points) // 4 :])),
    )
    return replace(facts, health=_health(facts))


def _is_summed_otherwise(loss: Loss, start: float, trivial: float) -> bool:
    """Whether a program adds up the errors of single entries in a way of its own, so that its loss
    is on a far larger scale than their mean.
    """
    return loss.settings.get("reduction") == "none" and start > _ANOTHER_SCALE * trivial


def _meaningless(loss: Loss, data: Data | None) -> bool:
    if loss.name == "nll":
        return (loss.predictions.maximum or 0.0) > _SLACK
    if loss.name in SIGNED_LOSSES:  # without a negative label, whatever is large is right
        return (targets_of(loss, data).minimum or 0.0) > 0
    return loss.name in BINARY and no_shares(targets_of(loss, data))


def _matches_rows(loss: Loss) -> bool:
    """Whether each row is to find its own partner among those of the batch, as contrastive losses
    have it: as many classes as rows, and each the target of one.
    """
    rows = loss.predictions.shape[0] if loss.predictions.shape else 0
    square = loss.predictions.shape == (rows, rows) and loss.targets.shape == (rows,)
    return loss.name in ENTROPIES and square and rows >= _ENOUGH and loss.targets.distinct == rows


def targets_of(loss: Loss, data: Data | None) -> Summary:
    """All targets that were seen, those of the first batches where there is no more; of several
    outputs, those that the loss compares.
    """
    targets = data.targets if data and loss.layer is None else None
    return targets or loss.targets


def no_shares(values: Summary) -> bool:
    """Whether values are known that lie outside 0 to 1."""
    low, high = values.minimum, values.maximum
    return low is not None and high is not None and (low < -_TINY or high > 1 + _TINY)


def _limits(losses: tuple[Loss, ...], data: Data | None) -> tuple[float | None, float]:
    """The loss of the best constant and of the perfect prediction. The latter is above zero where
    targets are shares.
    """
    if len(losses) == 1:
        return _trivial(losses[0], data), _floor(losses[0]) * _terms(losses[0])
    trivial = floor = 0.0
    for one in losses:
        weight = one.settings.get("weight")
        if not isinstance(weight, float) or one.trivial is None:
            return None, 0.0
        trivial += weight * one.trivial
        floor += weight * one.floor
    return trivial or None, floor


def _skill(end: float, trivial: float, floor: float) -> float | None:
    """The share of the way from the best constant to the perfect prediction."""
    way = trivial - floor
    return 1 - (end - floor) / way if way > _LITTLE * abs(trivial) else None


def _floor(loss: Loss) -> float:
    """The loss of the perfect prediction, also where the loss smooths labels itself."""
    smoothing, shape = loss.settings.get("label_smoothing"), loss.predictions.shape
    many = shape[1] if len(shape) > 1 else 0
    if loss.name != "cross_entropy" or not isinstance(smoothing, float) or many < 2:
        return loss.floor
    rest = smoothing / many
    right = 1 - smoothing + rest
    return -sum(n * p * math.log(p) for n, p in ((1, right), (many - 1, rest)) if p > 0)


def _impossible(loss: Loss | None, end: float) -> bool:
    """Whether a loss ended below zero that cannot, but for being fed what it does not take."""
    return loss is not None and loss.name in _NEVER_NEGATIVE and end < -0.1


def _progress(skill: float | None, right: float | None) -> float | None:
    """The better of both; but a loss that falls while nothing gets right falls for nothing."""
    if skill is None or right is None:
        return right if skill is None else skill
    return right if right < _BADLY and skill >= _FAIRLY else max(skill, right)


def _right(skill: float | None, loss: Loss | None) -> float | None:
    """How much of what can be got right a skill stands for: errors fall faster than entropy."""
    if skill is None or loss is None:
        return skill
    power = 1.5 if loss.name in BINARY else 1.2 if loss.name in ENTROPIES else 1.0
    remainder: float = max(1 - skill, 0.0) ** power
    return 1 - remainder


def _series(steps: tuple[TrainingStep, ...], epochs: tuple[Epoch, ...]) -> list[float]:
    """The losses, as far apart as the last ones: of long runs not every step is written down."""
    last = max((x.step for x in steps), default=0)
    apart = 1 if last < _ALL_STEPS else 10 ** len(str(last // _ALL_STEPS))
    even = [x for x in steps if x.step % apart == 0]
    losses = [x.loss - (x.penalty or 0.0) for x in even if x.loss is not None]
    epoch_losses = [x.values.get("loss") for x in epochs]
    return losses or [x for x in epoch_losses if x is not None]


def _parts(values: list[float]) -> tuple[float, ...]:
    count = min(_PARTS, len(values))
    edges = [len(values) * i // count for i in range(count + 1)]
    return tuple(fmean(values[a:b]) for a, b in pairwise(edges))


def _trivial(loss: Loss, data: Data | None) -> float | None:
    """The loss of the best constant prediction. Of a small batch it says too little: then it is
    taken from all targets, or from the number of classes.
    """
    own = loss.trivial if loss.trivial and loss.trivial - min(loss.floor, 0) > _TINY else None
    if loss.name == "poisson" and loss.settings.get("full"):
        return None  # it adds what depends on the counts alone
    if not own or not loss.targets.shape or loss.targets.shape[0] < _ENOUGH:
        own = _target_spread(loss.name, data) or _of_classes(loss) or own
    return own * _terms(loss) if own else None


def _terms(loss: Loss) -> int:
    """How many losses were added up: one, unless the program asked for their sum."""
    if loss.settings.get("reduction") != "sum":
        return 1
    by_row = loss.name in ENTROPIES
    return math.prod(loss.targets.shape[:1] if by_row else loss.targets.shape)


def _target_spread(name: str, data: Data | None) -> float | None:
    std = data.targets.std if data and data.targets else None
    return {"mse": std * std, "mae": 0.8 * std}.get(name) if std else None


def _of_classes(loss: Loss) -> float | None:
    shape = loss.predictions.shape
    if loss.name in BINARY:
        return math.log(2)
    if loss.name not in ENTROPIES or not shape:
        return None
    classes = shape[1] if loss.name in ("cross_entropy", "nll") and shape[1:] else shape[-1]
    return math.log(classes) if classes > 1 else None


def _accuracy(epochs: tuple[Epoch, ...]) -> float | None:
    last = epochs[-1].values if epochs else {}
    accuracies = [
        v for k, v in last.items() if "acc" in k and not k.startswith("val") and v is not None
    ]
    return max(accuracies, default=None)


def _above_majority(accuracy: float | None, loss: Loss | None) -> float | None:
    majority = _majority(loss)
    return None if accuracy is None or majority is None else (accuracy - majority) / (1 - majority)


def _majority(loss: Loss | None) -> float | None:
    """The share of the most frequent class."""
    shares = loss.class_shares if loss else ()
    majority = max(shares, default=1.0)
    return None if majority >= 1 or sum(shares) > 1 + _TINY else majority


def constant_accuracy(epochs: tuple[Epoch, ...], loss: Loss | None) -> tuple[float, float] | None:
    """The last accuracy, where it is known, and the one below which it is no better than that of
    the most frequent class.
    """
    accuracy, majority = _accuracy(epochs), _majority(loss)
    if accuracy is None or majority is None:
        return None
    return accuracy, majority + _BADLY * (1 - majority)


def _pace(values: list[float]) -> tuple[float, bool]:
    """The relative fall from the last but one fifth of the run to the last."""
    size = len(values) // 5
    if size < 1:
        return 0.0, False
    before, after = values[-2 * size : -size], values[-size:]
    fall = fmean(before) - fmean(after)
    noise = math.sqrt((pvariance(before) + pvariance(after)) / size)
    return fall / max(abs(fmean(before)), _TINY), fall > 2 * noise and len(values) >= _FEWEST


def _health(facts: Learning) -> Health:
    start, end = facts.start, facts.end
    if facts.broken or start is None or end is None:
        return "badly"
    if facts.meaningless:
        return "unknown"
    if facts.progress is None:
        return _by_fall(start, end)
    if facts.progress >= _WELL:
        return "well"
    if facts.progress >= _FAIRLY:
        return "fairly"
    return "partly" if facts.progress >= _BADLY else "badly"


def _by_fall(start: float, end: float) -> Health:
    """Without a trivial predictor, the fall from the start must do."""
    if start <= 0 or end < 0:
        return "unknown"
    if end <= (1 - _WELL) * start:
        return "well"
    return "badly" if end > 0.9 * start else "unknown"
