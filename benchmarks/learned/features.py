"""What is learned from a training: the same numbers for every program, free of its scale.

A loss counts relative to its start and to the trivial predictor, gradients relative to those of
other layers, updates relative to weights, rates relative to what the optimiser usually takes. No
absolute accuracy, loss or size of a gradient is used: they would only name the program.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import get_args

from benchmarks.learned.numbers import clipped, decades, known, middle, most, one_of
from bot.models.training import Summary, WeightStep
from bot.rules.diagnosis.learning import BINARY, ENTROPIES, Health
from bot.rules.diagnosis.rates import BANDS, effective
from bot.rules.diagnosis.training import Training, kernel, nonlinear

Features = Mapping[str, float]

_USUAL = (1e-4, 1e-3, 1e-2)
_USUAL_UPDATE = 1e-3
_KERNELS = ("kernel", "recurrent")
_FUNCTIONS = ("softmax", "log_softmax", "sigmoid", "tanh", "relu", "linear", "")
_DISTANCES = ("mse", "mae", "mape", "msle", "huber")


def of_program(training: Training) -> Features:
    """The features of a whole training."""
    parts = {
        "curve": _curve(training),
        "rate": _rate(training),
        "step": _steps(training),
        "unit": _units(training),
        "budget": _budget(training),
        "data": _data(training),
        "loss": _contract(training),
        "penalty": _penalty(training),
        "shape": _shape(training),
    }
    return {f"{part}.{name}": x for part, of in parts.items() for name, x in of.items()}


def _curve(training: Training) -> Features:
    """Where the loss went, by parts of the run."""
    learned = training.learning
    points = learned.points or (1.0,)
    start, third = learned.start, max(1, len(points) // 3)
    thirds = [points[:third], points[third : 2 * third] or points, points[2 * third :] or points]
    steps = known(x.loss for x in training.steps)
    jumps = [abs(b - a) for a, b in pairwise(steps)]
    level = fmean(map(abs, steps)) if steps else 0.0
    fall = points[0] - min(points)
    half = next((i for i, x in enumerate(points) if points[0] - x >= fall / 2), 0)
    return {
        "end": decades(learned.end, start),
        "best": decades(min(points), start),
        "peak": decades(max(points), start),
        "rebound": decades(learned.end, min(points)) if learned.points else 0.0,
        **{f"third{i}": decades(part[-1], part[0]) for i, part in enumerate(thirds)},
        "falling": sum(b < a for a, b in pairwise(points)) / len(points),
        "rises": learned.rises / len(points),
        "half": half / len(points),
        "noise": decades(fmean(jumps), level) if jumps else 0.0,
        "pace": clipped(learned.pace, 1.0),
        "certain": float(learned.certain),
        "broken": float(learned.broken),
        "negative": float(min(points) < 0),
        "trivial": float(learned.trivial is not None),
        "start": decades(start, learned.trivial),
        "skill": clipped(learned.skill, 2.0),
        "right": clipped(learned.progress, 2.0),
        "gap": _gap(training),
        **one_of("health", learned.health, get_args(Health)),
    }


def _gap(training: Training) -> float:
    last = training.epochs[-1].values if training.epochs else {}
    return decades(last.get("val_loss"), last.get("loss"))


def _rate(training: Training) -> Features:
    """The optimiser and its rate, relative to what it usually takes."""
    optimizer, rate = training.optimizer, training.rate
    if optimizer is None or rate is None:
        names = ("usual", "above", "below", "plain", "momentum", "slow", "scheduled", "clipping")
        return dict.fromkeys(names, 0.0)
    used = effective(optimizer, rate)
    low, usual, high = BANDS.get(optimizer.name, _USUAL)
    return {
        "usual": decades(used, usual),
        "above": max(decades(used, high), 0.0),
        "below": max(decades(low, used), 0.0) if used else 6.0,
        "plain": float(optimizer.name == "sgd" and not optimizer.momentum),
        "momentum": optimizer.momentum,
        "slow": float(optimizer.name in ("adagrad", "adadelta", "ftrl")),
        "scheduled": float(optimizer.scheduled),
        "clipping": float(optimizer.clipping),
    }


def tensors(training: Training, layer: int | None = None) -> list[WeightStep]:
    """The kernels of a layer, or of all, at the sampled steps in their order."""
    return [
        weight
        for step in training.steps
        for weight in step.weights
        if weight.role in _KERNELS and layer in (None, weight.layer)
    ]


def _steps(training: Training) -> Features:
    """Updates relative to weights, gradients of the first layer relative to the last."""
    every = tensors(training)
    ratios = sorted(known(x.update_ratio for x in every))
    early, late = _ends(every)
    of = [tensors(training, layer.index) for layer in training.learners]
    norms = [x for x in (middle(x.norm for x in layer) for layer in of) if x is not None]
    return {
        "known": float(bool(ratios)),
        "update": decades(middle(ratios), _USUAL_UPDATE),
        "low": decades(ratios[len(ratios) // 10], _USUAL_UPDATE) if ratios else 0.0,
        "high": decades(ratios[-1 - len(ratios) // 10], _USUAL_UPDATE) if ratios else 0.0,
        "slows": decades(_update(late), _update(early)),
        "fades": decades(middle(x.norm for x in late), middle(x.norm for x in early)),
        "first": decades(norms[0], norms[-1]) if norms else 0.0,
        "spread": decades(max(norms), min(norms)) if norms else 0.0,
        "zero": most(x.gradient_zero for x in every),
        "grows": decades(middle(x.weight_norm for x in late), middle(x.weight_norm for x in early)),
        "invalid": float(any(not _finite(x.norm) for x in every)),
    }


def _finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


def _ends(rows: Sequence[WeightStep]) -> tuple[Sequence[WeightStep], Sequence[WeightStep]]:
    size = max(1, len(rows) // 4)
    return rows[:size], rows[-size:]


def _update(rows: Sequence[WeightStep]) -> float | None:
    return middle(x.update_ratio for x in rows)


def _units(training: Training) -> Features:
    """Units that are dead or at their bounds, and how outputs shrink or grow with depth."""
    rows = [x for step in training.steps for x in step.activations]
    first = next((step.activations for step in training.steps if step.activations), ())
    stds = known(x.std for x in first)
    return {
        "dead": most(x.dead for x in rows),
        "dead_first": most(x.dead for x in first),
        "saturated": most(x.saturated for x in rows),
        "saturated_first": most(x.saturated for x in first),
        "invalid": most(1 - x.finite for x in rows),
        "grows": decades(stds[-1], stds[0]) if stds else 0.0,
        "largest": decades(max(stds)) if stds else 0.0,
        "smallest": decades(min(stds)) if stds else 0.0,
    }


def _budget(training: Training) -> Features:
    """Updates, epochs and batches."""
    plan = training.plan
    batch, samples = (plan.batch_size, plan.samples) if plan else (None, None)
    return {
        "updates": decades(training.updates or None),
        "epochs": decades(plan.epochs if plan else None),
        "batch": decades(batch),
        "share": decades(batch, samples),
        "steps": decades(plan.steps_per_epoch if plan else None),
        "unshuffled": float(plan is not None and plan.shuffle is False),
    }


def _data(training: Training) -> Features:
    """The size of what the model is given, and of what it shall return."""
    data = training.data
    other = next((x for x in training.held_out if x.part == "validation"), None)
    loss = training.loss
    inputs = data.inputs if data else None
    targets = (data.targets if data else None) or (loss.targets if loss else None)
    return {
        "known": float(inputs is not None),
        "largest": decades(_largest(inputs)),
        "spread": decades(inputs.std if inputs else None),
        "offset": decades(abs(inputs.mean or 0) if inputs else None, inputs.std if inputs else 1),
        "uneven": decades(data.feature_std_ratio if data else None),
        "constant": data.constant_columns if data else 0.0,
        "invalid": 1 - inputs.finite if inputs else 0.0,
        "ids": float(data is not None and data.ids),
        "validation": decades(other.inputs.std if other else None, inputs.std if inputs else None),
        "target": decades(_largest(targets)),
        "target_spread": decades(targets.std if targets else None),
        "majority": max(loss.class_shares, default=0.0) if loss else 0.0,
    }


def _largest(summary: Summary | None) -> float | None:
    if summary is None:
        return None
    return max(map(abs, known((summary.minimum, summary.maximum))), default=None)


def _contract(training: Training) -> Features:
    """The loss, and what it is fed."""
    loss = training.loss
    name = loss.name if loss else ""
    told = {
        "classes": name in ENTROPIES,
        "binary": name in BINARY,
        "distance": name in _DISTANCES,
        "other": bool(name) and name not in {*ENTROPIES, *BINARY, *_DISTANCES},
        "logits": loss is not None and loss.from_logits is True,
        "probabilities": loss is not None and loss.from_logits is False,
        "sums_to_one": loss is not None and loss.rows_sum_to_one,
        "one_hot": loss is not None and loss.one_hot,
        "integer": loss is not None and loss.integer_targets,
        "several": len(training.losses) > 1,
        "few_values": loss is not None and (loss.targets.distinct or 99) <= 2,
        "negative": loss is not None and (loss.targets.minimum or 0) < 0,
        "above_one": loss is not None and (loss.targets.maximum or 0) > 1,
        "one_unit": loss is not None and loss.predictions.shape[1:] in ((), (1,)),
    }
    return {
        **{key: float(value) for key, value in told.items()},
        "beyond": decades(
            _largest(loss.targets) if loss else None, _largest(loss.predictions) if loss else None
        ),
        "spread": decades(loss.predictions.std if loss else None),
        **one_of("ends", loss.activation if loss else "", _FUNCTIONS),
    }


def _penalty(training: Training) -> Features:
    """What regularisers add to the loss, and take from the weights."""
    shares = [abs(x.penalty / x.loss) for x in training.steps if x.penalty and x.loss]
    optimizer = training.optimizer
    decay = optimizer.weight_decay if optimizer and not optimizer.decoupled else 0.0
    return {
        "share": clipped(middle(shares), 1.0),
        "decay": decades(decay, 1e-4) if decay else 0.0,
        "layers": float(any(x.regularizer for x in training.layers)),
    }


def _shape(training: Training) -> Features:
    """How deep and how narrow the model is."""
    hidden = known(x.units for x in training.hidden)
    output = training.learners[-1].units if training.learners else None
    drops = [x.settings.get("rate") or x.settings.get("p") for x in training.layers]
    return {
        "depth": float(len(training.learners)),
        "narrowest": decades(min(hidden, default=None)),
        "bottleneck": decades(min(hidden, default=None), output),
        "drop": most(x for x in drops if isinstance(x, float)),
        "linear": float(sum(_linear(training, at) for at in range(len(training.layers)))),
        "normed": float(any("norm" in x.type.lower() for x in training.layers)),
    }


def _linear(training: Training, at: int) -> bool:
    """Whether the next layer with a kernel follows without a function between."""
    layers = training.layers
    if not kernel(layers[at]) or nonlinear(layers[at]):
        return False
    after = next((x for x in layers[at + 1 :] if kernel(x) or nonlinear(x)), None)
    return after is not None and kernel(after) is not None
