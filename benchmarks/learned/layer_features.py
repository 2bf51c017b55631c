"""What is learned from one layer of a training, beside the others of the same model."""

from __future__ import annotations

import math
from statistics import fmean

from benchmarks.learned.features import Features, tensors
from benchmarks.learned.numbers import decades, known, middle, most, one_of
from bot.models.training import Layer, Weight
from bot.rules.diagnosis.training import Training, kernel, nonlinear, recurrent

_FUNCTIONS = ("", "linear", "relu", "tanh", "sigmoid", "softmax")
_USUAL_UPDATE = 1e-3


def of_layers(training: Training) -> dict[int, Features]:
    """The features of each layer by its index."""
    usual = [_tensors(training, x) for x in training.learners]
    means = {name: fmean(of[name] for of in usual) for name in (usual[0] if usual else ())}
    return {
        layer.index: {
            **_place(training, at, layer),
            **_initial(layer),
            **_relative(_tensors(training, layer), means),
            **_units(training, layer),
        }
        for at, layer in enumerate(training.layers)
    }


def _place(training: Training, at: int, layer: Layer) -> Features:
    """Where the layer stands, and between which functions."""
    layers, learners = training.layers, training.learners
    output = learners[-1].units if learners else None
    before = next((x for x in reversed(layers[:at]) if x.units), None)
    after = next((x for x in layers[at + 1 :] if kernel(x) or nonlinear(x)), None)
    rate = layer.settings.get("rate") or layer.settings.get("p")
    return {
        "depth": at / max(1, len(layers) - 1),
        "first": float(bool(learners) and layer is learners[0]),
        "tail": float(layer.index in training.tail),
        "output": float(layer is training.output),
        "kernel": float(kernel(layer) is not None),
        "recurrent": float(recurrent(layer)),
        "conv": float("conv" in layer.type.lower()),
        "norm": float("norm" in layer.type.lower()),
        "embedding": float(any(x.role == "embedding" for x in layer.weights)),
        "drop": rate if isinstance(rate, float) else 0.0,
        "units": decades(layer.units),
        "to_output": decades(layer.units, output),
        "to_before": decades(layer.units, before.units if before else None),
        "regularized": float(bool(layer.regularizer)),
        "to_kernel": float(after is not None and kernel(after) is not None),
        "to_function": float(after is not None and kernel(after) is None),
        "other_function": float(nonlinear(layer) and layer.activation not in _FUNCTIONS),
        **one_of("function", layer.activation, _FUNCTIONS),
    }


def _initial(layer: Layer) -> Features:
    """The first weights against LeCun's, and the first biases."""
    own = kernel(layer)
    bias = next((x for x in layer.weights if x.role == "bias"), None)
    std = own.initial.std if own else None
    return {
        "init": decades(std, 1 / math.sqrt(own.fan_in) if own and own.fan_in else None),
        "alike": float(own is not None and not std),
        "bias": _largest(bias),
        "bias_mean": abs(bias.initial.mean or 0.0) if bias else 0.0,
    }


def _largest(weight: Weight | None) -> float:
    ends = (weight.initial.minimum, weight.initial.maximum) if weight else ()
    return most(map(abs, known(ends)))


def _tensors(training: Training, layer: Layer) -> Features:
    rows = tensors(training, layer.index)
    size = max(1, len(rows) // 4)
    early, late = rows[:size], rows[-size:]
    ends = [middle(x.weight_norm for x in part) for part in (late, early)]
    return {
        "norm": decades(middle(x.norm for x in rows)),
        "mean": decades(middle(x.mean_abs for x in rows)),
        "update": decades(middle(x.update_ratio for x in early), _USUAL_UPDATE),
        "slows": decades(*(middle(x.update_ratio for x in part) for part in (late, early))),
        "zero": middle(x.gradient_zero for x in rows) or 0.0,
        "grows": decades(*ends),
    }


def _relative(own: Features, means: Features) -> Features:
    """Gradients count against those of the other layers only."""
    beside = {f"{name}_beside": value - means.get(name, 0.0) for name, value in own.items()}
    return {**beside, **{x: own[x] for x in ("update", "slows", "zero", "grows")}}


def _units(training: Training, layer: Layer) -> Features:
    rows = [x for step in training.steps for x in step.activations if x.layer == layer.index]
    first, last = rows[:1], rows[-max(1, len(rows) // 4) :]
    return {
        "dead_first": most(x.dead for x in first),
        "dead": middle(x.dead for x in last) or 0.0,
        "saturated_first": most(x.saturated for x in first),
        "saturated": middle(x.saturated for x in last) or 0.0,
        "spread": decades(middle(x.std for x in first)),
        "spread_last": decades(middle(x.std for x in last)),
        "offset": decades(middle(x.mean for x in last), middle(x.std for x in last)),
    }
