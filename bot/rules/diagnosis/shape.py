"""Layers too narrow for what passes them, and maps that shrink to nothing.

Sources: Neuralint f013 (sizes), f019 (only a layer that is too narrow counts here).
"""

from bot.models.training import Layer
from bot.rules.diagnosis.rule import Rule, Sign, Signs, change, evidence
from bot.rules.diagnosis.targets import kind, width
from bot.rules.diagnosis.training import Training, kernel, recurrent

_NARROW = 2
_DROPPED = 0.75
_DENSE = 2


def narrow(training: Training) -> Signs:
    """A hidden layer with fewer units than there are classes, or of one or two units."""
    loss, learned = training.loss, training.learning
    if loss is None or not learned.doubtful:
        return
    classes = width(loss) if kind(loss) in ("one-hot", "classes") else 0
    for layer in training.hidden:
        units, own = layer.units or 0, kernel(layer)
        if own is None:
            continue
        given = own.fan_in or 0
        dense = len(own.initial.shape) <= _DENSE  # the filters of a convolution see many places
        if units == 1 and (recurrent(layer) or not dense):
            yield _widen(layer, 0.6, 8)
        if not dense or not learned.poor:
            continue
        if 0 < units < min(classes, 10) and classes > _NARROW:
            yield _widen(layer, 0.6 if units <= classes / 3 else 0.36, 2 * classes)
        elif 0 < units <= _NARROW and given >= 4 * units and (units == 1 or not learned.falling):
            yield _widen(layer, 0.5, 8)


def _widen(layer: Layer, confidence: float, units: int) -> Sign:
    return Sign(
        "LCN",
        confidence,
        f"Layer {layer.index} has only {layer.units} units: too little passes.",
        (layer.index,),
        ("LAD",) if layer.activation == "" else (),
        evidence=(evidence("units", layer.units or 0, units),),
        change=change(f"units({layer.index})", (units, 4 * units), f"Give it {units} units."),
        direction="up",
    )


def no_hidden(training: Training) -> Signs:
    """A single layer for targets that it does not reach."""
    learned = training.learning
    if len(training.learners) != 1 or not learned.poor:
        return
    if learned.skill is not None and learned.skill > -0.5:
        index = training.learners[0].index
        better = change("layers", ("dense",), "Add a hidden layer with relu.")
        text = "A single layer draws only straight borders."
        yield Sign("LRM", 0.4, text, (index,), change=better, symptom=True)


def dropout(training: Training) -> Signs:
    """Dropout that leaves less than a quarter."""
    for layer in training.layers:
        share = layer.settings.get("rate", layer.settings.get("p"))
        if kernel(layer) or not isinstance(share, float) or not training.learning.poor:
            continue
        if _DROPPED < share <= 1:
            text = f"Dropout in layer {layer.index} drops most of what passes."
            shown = (evidence("dropout", share, 0.5),)
            better = change(f"rate({layer.index})", (0.2, 0.5), "Drop a fifth, or nothing.")
            yield Sign("LAD", 0.5, text, (layer.index,), (), shown, better, "down")


RULES: tuple[Rule, ...] = (
    Rule("narrow-layer", "dynamics", ("LCN", "LAD"), "Neuralint f019; Reprise",
         "A hidden layer has fewer units than classes, or one or two.", narrow),
    Rule("heavy-dropout", "dynamics", ("LAD",), "UMLAUT (dropout)",
         "Dropout leaves less than a quarter.", dropout),
    Rule("no-hidden-layer", "dynamics", ("LRM",), "Reprise",
         "A single layer learns little.", no_hidden),
)  # fmt: skip
