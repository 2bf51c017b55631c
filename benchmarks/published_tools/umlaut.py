"""UMLAUT (Schoop et al., CHI 2021): ten heuristics, all of them reported."""

from itertools import pairwise

from benchmarks.published_tools.shared import at, invalid, last_index
from bot.training.diagnosis.loss_contract import last_function, wants_logits
from bot.training.diagnosis.rule import Training, nonlinear, recurrent

_HIGH, _LOW = 0.01, 1e-7


def found(training: Training) -> tuple[str, ...]:
    """The codes of all its messages. Its advice (dropout, over-fitting) has no code."""
    return (*_data(training), *_rate(training), *_last(training), *_hidden(training))


def _data(training: Training) -> tuple[str, ...]:
    data = training.data
    if data is None or data.ids:
        return ()
    shape, low, high = data.inputs.shape, data.inputs.minimum or 0.0, data.inputs.maximum or 0.0
    oblong = len(shape) == 4 and shape[1] != shape[2] and shape[2] != shape[3]
    lost = any(invalid(x.loss) for x in training.steps) and data.inputs.finite < 1
    return ("CPP",) if oblong or lost or low < -1 or high > 1 else ()


def _rate(training: Training) -> tuple[str, ...]:
    rate = training.rate
    return ("HLR",) if rate is not None and (rate > _HIGH or rate < _LOW) else ()


def _last(training: Training) -> tuple[str, ...]:
    loss, function = training.loss, last_function(training)
    if loss is None or "softmax" in function or wants_logits(loss):
        return ()
    return (at("ACH", last_index(training)),)


def _hidden(training: Training) -> tuple[str, ...]:
    """Its missing activation: any layer but the last whose own function is the identity, unless a
    layer that is only a function follows.
    """
    silent = []
    for layer, after in pairwise(training.layers):
        alone = nonlinear(after) and not after.weights
        if layer in training.hidden and not nonlinear(layer) and not recurrent(layer) and not alone:
            silent.append(at("ACH", layer.index))
    return tuple(silent)
