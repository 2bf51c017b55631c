"""Penalties and decay that outweigh what is to be learned. No published tool looks at them."""

from statistics import median

from bot.models.training import Layer
from bot.rules.diagnosis.rule import UNHARMED, Rule, Sign, Signs, change, evidence, in_line, named
from bot.rules.diagnosis.training import Training

_SHARE = 0.25
_AT_FIRST = 1.0
_LOST = 0.6
_DECAY = 0.05
_ACTIVITY = 0.05
_LEARNED, _NEARLY = 0.95, 0.99
"""How well a run may go before a penalty is spoken of, and one that is far too large."""
_FAR = 4.0
_STRONG = (0.1, 0.5)
_SHRUNK = 0.08


def penalty(training: Training) -> Signs:
    """Penalties of the size of the loss itself."""
    share, first = penalty_share(training), _first_share(training)
    if share is None or (share < _SHARE and first < _AT_FIRST):
        return
    beyond = first >= _AT_FIRST and any(map(_strong, training.layers))
    fine = 0.75 if share < 2 * _SHARE else _NEARLY if share > _FAR * _SHARE else _LEARNED
    harmed = training.learning.below(fine if share >= _SHARE else _LEARNED)
    if not harmed and not beyond:
        return
    layers = _penalised(training)
    better = change(
        "weight_regularizer", ("none", "x0.01"), "Remove the weight penalty, or divide it by 100."
    )
    yield Sign(
        "RAW",
        min(0.5 + max(share, first / 4) / 2, 0.9) if harmed else UNHARMED,
        "The penalty on the weights outweighs the loss.",
        layers,
        evidence=(evidence("penalty / data loss", share, _SHARE),),
        change=better,
    )


def _penalised(training: Training) -> tuple[int, ...]:
    """The layers with a penalty, () for all: by their regularizers, by the terms that the program
    adds to the loss, or by how they shrink.
    """
    named = tuple(x.index for x in training.layers if x.regularizer)
    if named:
        return named
    added = tuple(
        layer.index
        for layer in training.learners
        if any(x.penalised for x in training.changed.get(layer.index, ()))
    )
    if added:
        return added if len(added) < len(training.learners) or len(added) == 1 else ()
    return tuple(x.index for x in training.layers if _shrinks(training, x.index))


def activity(training: Training) -> Signs:
    """A penalty on what a layer returns, where the run learned too little."""
    layers = tuple(x.index for x in training.layers if _on_activity(x))
    share = penalty_share(training)
    if not layers or share is None or share < _ACTIVITY or not training.learning.below(0.75):
        return
    yield Sign(
        "RAW",
        0.6,
        "The activity regularizer keeps the model from learning.",
        layers,
        evidence=(evidence("penalty / data loss", share, _ACTIVITY),),
        change=change(
            "weight_regularizer",
            ("none", "x0.01"),
            "Remove the activity regularizer, or divide it by 100.",
        ),
    )


def _strong(layer: Layer) -> bool:
    """Whether a penalty is a hundred times as strong as usual ones."""
    l1, l2 = (layer.settings.get(f"kernel_regularizer.{name}") for name in ("l1", "l2"))
    limits = ((l1, _STRONG[0]), (l2, _STRONG[1]))
    return any(isinstance(x, float) and x >= limit for x, limit in limits)


def _on_activity(layer: Layer) -> bool:
    return any(key.startswith("activity_regularizer.") and x for key, x in layer.settings.items())


def penalty_share(training: Training) -> float | None:
    """The median of penalty over data loss, in the later half of the run."""
    late = training.steps[len(training.steps) // 2 :]
    pairs = [(x.penalty, x.loss) for x in late if x.penalty is not None and x.loss is not None]
    shares = [p / max(loss - p, 1e-9) for p, loss in pairs]
    return median(shares) if shares else None


def _first_share(training: Training) -> float:
    """Penalty over data loss at the first step: what weighs most then rules where it leads."""
    first = next((x for x in training.steps if x.penalty is not None and x.loss is not None), None)
    if first is None or first.penalty is None or first.loss is None:
        return 0.0
    return first.penalty / max(first.loss - first.penalty, 1e-9)


def _shrinks(training: Training, index: int) -> bool:
    """Whether a kernel loses much of its norm, as under a penalty that the program adds itself."""
    norms = kernel_norms(training, index)
    return len(norms) > 2 and norms[-1] < _LOST * norms[0]


def shrunk(training: Training) -> Signs:
    """Kernels that shrink to nothing, as under a penalty that no record names."""
    decayed = training.optimizer is not None and training.optimizer.weight_decay >= _DECAY
    if decayed or not training.learning.below(0.95):
        return
    for layer in training.learners:
        norms = kernel_norms(training, layer.index)
        if len(norms) > 2 and norms[0] > 0 and norms[-1] < _SHRUNK * norms[0]:
            share = norms[-1] / norms[0]
            yield Sign(
                "RAW",
                0.8,
                f"The weights of {named(layer)} shrink to almost zero, as under a penalty.",
                (layer.index,),
                evidence=(evidence("final norm / initial norm", share, _SHRUNK),),
                change=change(
                    "weight_regularizer", ("none", "x0.01"), "Remove the weight penalty."
                ),
            )


def kernel_norms(training: Training, index: int) -> list[float]:
    """The norms of a layer's kernel, or of its embeddings, at the sampled steps."""
    seen = [x for x in training.changed.get(index, ()) if x.role in ("kernel", "embedding")]
    return [x.weight_norm for x in seen if x.weight_norm is not None]


def decay(training: Training) -> Signs:
    """Weight decay within the gradient that is larger than what it should hold back."""
    optimizer = training.optimizer
    if optimizer is None:
        return
    limit = 1.0 if optimizer.decoupled else _DECAY
    far = optimizer.weight_decay >= _FAR * limit
    if not training.learning.below(_NEARLY if far else _LEARNED):
        return
    if optimizer.weight_decay >= limit:
        yield Sign(
            "RAW",
            0.8,
            f"The weight decay of `{optimizer.name}` outweighs the loss.",
            evidence=(evidence("weight decay", optimizer.weight_decay, limit),),
            change=change(
                "weight_decay",
                (0, 1e-4),
                f"Remove the weight decay{in_line(optimizer.line)}, or lower it to 0.0001.",
            ),
            direction="down",
        )


RULES: tuple[Rule, ...] = (
    Rule("penalty-outweighs", "rate", ("RAW",), "Reprise",
         "Penalties on weights are as large as the loss.", penalty),
    Rule("activity-penalty", "rate", ("RAW",), "Reprise",
         "A penalty on the outputs of a layer keeps the model from learning.", activity),
    Rule("weights-shrink", "rate", ("RAW",), "Reprise",
         "The weights of a layer shrink to almost zero.", shrunk),
    Rule("decay-outweighs", "rate", ("RAW",), "Reprise",
         "Weight decay is far larger than usual.", decay),
)  # fmt: skip
