"""The learning rate, against bands of the optimiser and by what it does to the weights.

Sources: UMLAUT (learning rate), DeepDiagnosis (rate times gradient over weight), and bands of
our own. Momentum counts: a step of SGD is rate / (1 - momentum) in the long run.
"""

import math
from itertools import chain
from statistics import median

from bot.kernel.training_types import Optimizer
from bot.training.diagnosis.rule import (
    Rule,
    Sign,
    Signs,
    Training,
    change,
    evidence,
    in_line,
    number,
)

_ADAM = (1e-4, 1e-3, 1e-2)
BANDS: dict[str, tuple[float, float, float]] = {
    "adam": _ADAM,
    "adamw": _ADAM,
    "nadam": _ADAM,
    "radam": _ADAM,
    "amsgrad": _ADAM,
    "adamax": (2e-4, 2e-3, 2e-2),
    "rmsprop": _ADAM,
    "lamb": _ADAM,
    "lion": (1e-5, 1e-4, 1e-3),
    "sgd": (1e-3, 1e-2, 0.6),
    "adadelta": (0.05, 1.0, 3.0),
    "adagrad": (1e-3, 1e-2, 0.5),
    "ftrl": (1e-3, 1e-2, 0.5),
    "rprop": (1e-3, 1e-2, 0.1),
    "asgd": (1e-3, 1e-2, 0.5),
}
"""The lowest, the usual and the highest rate at which an optimiser mostly works."""
_FAST, _FAR = 0.1, 0.5
_REACHES = (0.75, 0.9, 0.97)
"""How well a run may go before a rate beyond the band is spoken of, by the distance from it."""
_EARLY = 20
_MODERATE = (1.5e-3, 0.03)
_SLOW = 1e-5
_LOWER, _SMALL = 3.0, 1e-3
_LEAST_SHARE = 0.01  # of the highest rate
_WAY, _STILL = 10.0, 1e-3
_GOOD = 3e-3


def effective(optimizer: Optimizer, rate: float) -> float:
    """The rate in the long run: momentum adds up the steps of plain SGD."""
    plain = optimizer.name == "sgd" and 0 < optimizer.momentum < 1
    return rate / (1 - optimizer.momentum) if plain else rate


def update_ratio(training: Training) -> float | None:
    """The median over early steps and kernels of the update's norm over the weight's. Later ones
    tell of units that died; steps that only add to a gradient change nothing.
    """
    sampled_steps = [step for step in training.steps if step.weights][:_EARLY]
    by_step = [
        [
            weight.update_ratio
            for weight in step.weights
            if weight.update_ratio is not None
            and math.isfinite(weight.update_ratio)
            and weight.role in ("kernel", "recurrent")
        ]
        for step in sampled_steps
    ]
    ratios = list(chain(*filter(any, by_step))) or list(chain(*by_step))
    return median(ratios) if ratios else None


def in_band(training: Training) -> bool:
    """Whether the optimiser mostly works at this rate."""
    optimizer, rate = training.optimizer, training.rate
    limits = BANDS.get(optimizer.name) if optimizer else None
    if optimizer is None or rate is None or limits is None:
        return False
    return limits[0] <= effective(optimizer, rate) <= limits[2]


def small_steps(training: Training) -> bool:
    """Whether steps leave room for a higher rate: they are not far beyond a thousandth of the
    weights, or not seen.
    """
    ratio = update_ratio(training)
    return ratio is None or ratio < _GOOD


def rate_sign(
    training: Training, confidence: float, up: bool, message: str, *, symptom: bool = False
) -> Sign:
    """A learning rate that should rise or fall, with what it does."""
    optimizer, rate = training.optimizer, training.rate
    name = optimizer.name if optimizer else "?"
    low, usual, high = BANDS.get(name, _ADAM)
    tries = _tries(rate or usual, usual, up=up)
    ratio = update_ratio(training)
    where = in_line(optimizer.line) if optimizer else ""
    usual_band = "" if low <= (rate or 0.0) <= high else f"{number(low)} to {number(high)}"
    return Sign(
        "HLR",
        confidence,
        message,
        evidence=(
            evidence(f"learning rate of {name}", rate or 0.0, usual_band),
            *([evidence("update over weight", ratio, "about 0.001")] if ratio is not None else []),
        ),
        change=change("learning_rate", tries, f"Try a learning rate of {tries[0]}{where}."),
        direction="up" if up else "down",
        symptom=symptom,
    )


def _tries(rate: float, usual: float, *, up: bool) -> tuple[str, ...]:
    steps = (rate * 10, rate * 3, rate * 100) if up else (rate / 10, rate / 3, rate / 100)
    beyond = usual > rate * 1.5 if up else usual < rate / 1.5
    values = (usual, *steps) if beyond else steps
    return tuple(dict.fromkeys(number(x) for x in values))


def band(training: Training) -> Signs:
    """A rate at which the optimiser seldom works, in a run that learned little."""
    optimizer, rate = training.optimizer, training.rate
    limits = BANDS.get(optimizer.name) if optimizer else None
    if optimizer is None or rate is None or limits is None:
        return
    rate_in_effect, (low, usual, high) = max(effective(optimizer, rate), 1e-12), limits
    up = rate_in_effect < high
    decades = math.log10(low / rate_in_effect) if up else math.log10(rate_in_effect / high)
    learning = training.learning
    reach = _REACHES[0] if decades < 0.5 else _REACHES[1] if decades < 1 else _REACHES[2]
    if decades < 0:
        if (
            rate_in_effect <= usual / _LOWER
            and learning.poor
            and (update_ratio(training) or 1) < _SMALL
        ):
            text = f"The learning rate is low for `{optimizer.name}`, and the steps are small."
            yield rate_sign(training, 0.38, True, text)
        return
    if _denied(training, up=up):
        return
    # Where no loss says how well it went, steps that are both far too large for the optimizer and
    # large for the weights do.
    is_far = not up and decades >= _FAR and update_ratio(training) is not None
    is_fast = is_far and learning.health == "unknown"
    if not (learning.below(reach) or learning.meaningless or is_fast):
        return
    text = f"The learning rate is too {'low' if up else 'high'} for `{optimizer.name}`."
    yield rate_sign(training, _by_distance(decades), up, text)


def _denied(training: Training, *, up: bool) -> bool:
    """Whether steps are of a good size all the same: the scale of gradients makes up for it."""
    ratio = update_ratio(training)
    return ratio is not None and (ratio > _MODERATE[0] if up else ratio < _MODERATE[1])


def _by_distance(decades: float) -> float:
    return min(0.5 + 0.4 * decades, 0.95)


def updates(training: Training) -> Signs:
    """Steps that move the weights by far more or less than a thousandth."""
    ratio = update_ratio(training)
    if ratio is None or not training.learning.poor:
        return
    if ratio >= _FAST:
        message = "Each step changes the weights by a tenth or more."
        yield rate_sign(training, 0.6, False, message, symptom=True)
    elif ratio <= _SLOW * 10 and training.learning.falling:
        yield rate_sign(training, 0.7, True, "The steps hardly change the weights.", symptom=True)
    elif ratio <= _SLOW and not _usual(training):
        yield rate_sign(training, 0.6, True, "The steps hardly change the weights.", symptom=True)


def _usual(training: Training) -> bool:
    """Whether the rate is at least the usual one, so that gradients must be faint."""
    optimizer, rate = training.optimizer, training.rate
    limits = BANDS.get(optimizer.name) if optimizer else None
    return limits is not None and rate is not None and rate >= limits[1]


def total_step(training: Training) -> Signs:
    """Plain descent whose steps add up to little. Beside a fault that shrinks the gradient,
    the rate is too low all the same.
    """
    optimizer, rate, ratio = training.optimizer, training.rate, update_ratio(training)
    if optimizer is None or optimizer.name != "sgd" or rate is None or not ratio:
        return
    way, learning = effective(optimizer, rate) * training.updates, training.learning
    if way > _WAY or ratio > _STILL or not (learning.poor or learning.meaningless) or training.cut:
        return
    total = f"learning rate * updates = {number(way)}"
    text = f"The steps of `{optimizer.name}` are too small in total: {total}."
    low = rate < BANDS["sgd"][1]
    yield rate_sign(training, 0.5 if low else 0.42, True, text)
    measurements = (
        evidence("learning rate * updates", way, _WAY),
        evidence("optimizer", optimizer.name),
    )
    better = change("optimizer", ("adam",), f"Try Adam{in_line(optimizer.line)}.")
    yield Sign("OCH", 0.38 if low else 0.45, text, evidence=measurements, change=better)


def vanishing_rate(training: Training) -> Signs:
    """A schedule that takes the rate to nearly nothing before half of the run, as where it is
    advanced at each batch instead of each epoch.
    """
    rates = [(x.step, x.rate) for x in training.steps if x.rate is not None]
    if not rates or training.updates < _EARLY or not training.learning.doubtful:
        return
    half = next((rate for step, rate in rates if 2 * step >= training.updates), rates[-1][1])
    highest = max(rate for _, rate in rates)
    if half >= _LEAST_SHARE * highest:
        return
    text = f"The learning rate falls from {number(highest)} to {number(half)} by mid-run."
    measurements = (evidence("learning rate at mid-run", half, _LEAST_SHARE * highest),)
    better = change(
        "learning_rate",
        (),
        "Slow the schedule down (step it per epoch, not per batch), or remove it.",
    )
    yield Sign("HLR", 0.75, text, evidence=measurements, change=better, direction="up")


RULES: tuple[Rule, ...] = (
    Rule("rate-out-of-band", "rate", ("HLR",), "UMLAUT (learning rate)",
         "The learning rate is outside the range in which the optimizer usually works.", band),
    Rule("rate-vanishes", "rate", ("HLR",), "Reprise",
         "A schedule that lowers the learning rate to almost zero early.", vanishing_rate),
    Rule("update-ratio", "rate", ("HLR",), "DeepDiagnosis (learning rate)",
         "Updates that are far larger or smaller than a thousandth of the weights.", updates),
    Rule("small-total-step", "rate", ("HLR", "OCH"), "Reprise",
         "The steps of plain gradient descent are too small in total.", total_step),
)  # fmt: skip
