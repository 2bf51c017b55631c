"""Neuralint (Nikanjam et al., TOSEM 2021): static rules, all of them reported.

Rules of style (f002, f016, f019, f023 and f025 to f027) are left out: on present-day nets they
misfire, and the diagnosis gives some of them as advice. Rules on crashes have no code here.
"""

from itertools import pairwise

from benchmarks.published_tools.shared import at, last_index
from bot.kernel.training_types import Layer
from bot.training.diagnosis.learning import BINARY, ENTROPIES
from bot.training.diagnosis.loss_contract import last_function, wants_logits, width
from bot.training.diagnosis.rule import Training, kernel, nonlinear, recurrent

_NEAR = 3


def found(training: Training) -> tuple[str, ...]:
    """The codes of all its messages."""
    told = (*_initial(training), *_order(training), *_last(training))
    return tuple(dict.fromkeys(told))


def _initial(training: Training) -> tuple[str, ...]:
    constant, biased = [], []
    for layer in training.learners:
        by_role = {x.role: x.initial for x in layer.weights}
        if by_role["kernel"].std == 0:
            constant.append(at("WCI", layer.index))
        bias = by_role.get("bias")
        named = layer.bias_initializer not in ("", "zeros", "Zeros")
        if bias is not None and named and bias.zero < 1 and not recurrent(layer):
            biased.append(at("BCI", layer.index))
    return (*constant, *biased)


def _order(training: Training) -> tuple[str, ...]:
    told: list[str] = []
    layers = training.layers
    for place, layer in enumerate(layers):
        behind = layers[place + 1 : place + 1 + _NEAR]
        if kernel(layer) and _normed(behind) and any(x.role == "bias" for x in layer.weights):
            told.append(at("BCI", layer.index))
    for layer, after in pairwise(training.learners):
        between = layers[layers.index(layer) : layers.index(after)]
        told += _functions(layer, between)
    return tuple(told)


def _normed(layers: tuple[Layer, ...]) -> bool:
    return any(w.role == "scale" for layer in layers for w in layer.weights)


def _functions(layer: Layer, between: tuple[Layer, ...]) -> list[str]:
    """f003: two functions in a row; f009: none."""
    applied = [x for x in between if nonlinear(x)]
    if not applied and not recurrent(layer):
        return [at("ARM", layer.index)]
    return [at("LAD", x.index) for x in applied[1:]]


def _last(training: Training) -> tuple[str, ...]:
    loss, function = training.loss, last_function(training)
    if loss is None or loss.name not in ENTROPIES | BINARY:
        return ()
    one, place = width(loss) == 1, at("ACH", last_index(training))
    if wants_logits(loss):
        wrong = one is (loss.name not in BINARY)
        return (place, "LCH") if function != "linear" or wrong else ()
    if one:
        return (place,) if function != "sigmoid" else ()
    expected = ("log_softmax",) if loss.name == "nll" else ("softmax",)
    if loss.name in BINARY:
        return (place, "LCH") if function != "sigmoid" else ("LCH",)
    return (place, "LCH") if function not in expected else ()
