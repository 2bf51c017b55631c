"""Epochs, batches and the optimiser: whether the run had a chance; loss curves that break,
jump or never move.
"""

import math

from bot.training.diagnosis.learning import ENTROPIES, Learning
from bot.training.diagnosis.rates import (
    BANDS,
    in_band,
    rate_sign,
    small_steps,
    total_step,
    update_ratio,
)
from bot.training.diagnosis.rule import Rule, Sign, Signs, Training, change, evidence, in_line

# Epochs, batches and the optimiser: whether the run had a chance.
#
# Sources: AutoTrainer (slow convergence, not converged); the rest is our own.

_FEW_UPDATES = ((30, 0.85), (120, 0.58), (250, 0.45))
_FEW = 250
_ENOUGH, _MOST_EPOCHS = 1000, 500
_FEW_EPOCHS, _SOME = 2, 120
_SHORT_RUN = 5
TINY_BATCH = 4
_FEW_SAMPLES = 100
_LARGE = 256
_WHOLE = 0.35
_ROOM = 0.03
_MOSTLY_ONE = 0.85
_STEEP = 0.1
_ANNEALED = 0.05
_SHORT, _VERY_SHORT = 100, 60
_UNSETTLED, _WORSE = 0.25, 1.1
_MANY = 10_000  # so many updates are no short run, whatever they still gain
_FAR_ABOVE = 2.5  # times the loss of a constant prediction
_PLAIN = ("adadelta", "adagrad", "ftrl", "sgd")
_DECAYING = ("adagrad", "ftrl")  # they divide steps by all gradients so far


def _more_epochs(
    training: Training, confidence: float, message: str, *, symptom: bool = False
) -> Sign:
    epochs, line = (training.plan.epochs, training.plan.line) if training.plan else (None, 0)
    enough = math.ceil(_ENOUGH / max(training.updates, 1))
    longer = max(4, min(enough, math.ceil(_MOST_EPOCHS / (epochs or 1))))
    tries = tuple(dict.fromkeys((longer, 10, 4, 2)))
    text = f"Train {longer} times as long."
    if epochs:
        text = f"Train for {epochs * longer} epochs{in_line(line)}."
    return Sign(
        "HNE",
        confidence,
        message,
        evidence=(
            *([evidence("epochs", epochs)] if epochs else []),
            evidence("updates", training.updates, _FEW),
            evidence("fall over the last fifth", f"{training.learning.pace:.1%}"),
        ),
        change=change("epochs", tuple(epochs * x for x in tries) if epochs else (), text),
        direction="up",
        symptom=symptom,
    )


def few(training: Training) -> Signs:
    """A run of a few epochs or updates that learned little, and was not cut short."""
    learning, plan = training.learning, training.plan
    unsettled = unsettled_averages(training)
    if not (learning.poor or _short(training) or unsettled) or learning.broken:
        return
    if not training.updates or training.cut or _rose(training):
        return
    epochs = plan.epochs if plan else None
    confidence = next((x for most, x in _FEW_UPDATES if training.updates < most), 0.0)
    is_flat = training.updates >= _SOME and learning.poor and not learning.falling
    if is_flat:
        confidence = min(confidence, _GUESS)  # more steps of this kind promise nothing
    if confidence:
        text = "The run made too few updates to learn."
        if unsettled and learning.well:
            text = "The run made too few updates for the moving averages of batch normalization."
        seldom = epochs is not None and epochs <= _SHORT_RUN and not is_flat
        yield _more_epochs(training, max(confidence, 0.6) if seldom else confidence, text)
        if small_steps(training):
            yield rate_sign(training, confidence - 0.25, True, text)
    elif epochs is not None and epochs <= _FEW_EPOCHS:
        yield _more_epochs(training, 0.5, "The run saw its data only once or twice.")


def unsettled_averages(training: Training) -> bool:
    """Whether the moving averages of batch normalisation still hold much of what they began with,
    and the model is worse on held-out data for it. Keras and PyTorch count momentum from opposite
    ends.
    """
    last = training.epochs[-1].values if training.epochs else {}
    loss, other = last.get("loss"), last.get("val_loss")
    if loss is None or other is None or other <= _WORSE * loss:
        return False
    for layer in training.layers:
        share = layer.settings.get("momentum") if "BatchNorm" in layer.type else None
        if isinstance(share, float):
            share_left = share if training.model.framework == "keras" else 1 - share
            if share_left**training.updates > _UNSETTLED:
                return True
    return False


def _short(training: Training) -> bool:
    """Whether so short a run may have left something to learn, though it learned a fair share."""
    learning, updates = training.learning, training.updates
    short = updates < _VERY_SHORT or (updates < _SHORT and learning.pace > _ROOM)
    steep = updates < _FEW and learning.falling and learning.pace > _STEEP
    return (short and learning.below(0.95)) or (steep and learning.below(0.85))


def still_falling(training: Training) -> Signs:
    """The loss falls at the end, and there is room below: more epochs, or a higher rate."""
    learning = training.learning
    long = training.updates > _MANY
    if not learning.falling or learning.pace < _ROOM or long or training.cut:
        return
    if any(total_step(training)):
        return  # more of such steps would do, but larger ones are what is missing
    steep = learning.poor and learning.pace > _STEEP and not _is_annealed(training)
    if not learning.below(0.6) and not steep:
        return
    text = "The loss was still falling when training ended."
    strong = min(0.45 + 2 * learning.pace, 0.75)  # a curve is never certain of its cause
    if _has_other_terms(training):
        strong = _GUESS  # what is still to be gained may be in terms that nothing is known of
    yield _more_epochs(training, strong, text, symptom=True)
    if small_steps(training):
        yield rate_sign(training, strong - 0.1, True, text, symptom=True)


def _has_other_terms(training: Training) -> bool:
    """Whether steps follow more than the loss function that is known: a term is added to it, or it
    begins far above what an untrained classifier has.
    """
    learning, loss = training.learning, training.loss
    if any(step.added for step in training.steps):
        return True
    is_classes = loss is not None and loss.name in ENTROPIES
    if not is_classes or learning.start is None or not learning.trivial:
        return False
    return learning.start > _FAR_ABOVE * learning.trivial


def _is_annealed(training: Training) -> bool:
    """Whether a schedule took the rate to nearly nothing by the end: the loss falls by that, and no
    longer once it is there.
    """
    rates = [step.rate for step in training.steps if step.rate is not None]
    return bool(rates) and rates[-1] <= _ANNEALED * max(rates)


def _below_its_band(training: Training) -> bool:
    """Whether the rate is lower than where the optimiser mostly works: Keras gives Adadelta a
    thousandth of the rate of its paper.
    """
    optimizer, rate = training.optimizer, training.rate
    low = BANDS[optimizer.name][0] if optimizer and optimizer.name in BANDS else 0.0
    return rate is not None and rate < low


def tiny_batch(training: Training) -> Signs:
    """Batches of so few samples that steps follow noise."""
    plan, learning = training.plan, training.learning
    if plan is None or not plan.batch_size or not learning.doubtful:
        return
    if (plan.samples or training.updates) < _FEW_SAMPLES:
        return
    if plan.batch_size <= TINY_BATCH:
        confidence = 0.6 if plan.batch_size <= 2 else 0.45
        yield _batch(training, confidence, "Batches are so small that steps follow noise.", "up")


def huge_batch(training: Training) -> Signs:
    """Batches of much of the data: few updates in an epoch."""
    plan, learning = training.plan, training.learning
    if plan is None or (plan.batch_size or 0) < _LARGE or training.updates >= 8 * _FEW:
        return
    short = training.updates < (_FEW if learning.pace > _ROOM else _VERY_SHORT)
    steep = training.updates < _VERY_SHORT and learning.falling and learning.pace > _STEEP
    unsettled = unsettled_averages(training)
    # A single layer is often fitted to all data at once, as a probe of what another model learned.
    short_of = 0.95 if short and len(training.learners) > 1 else 0.75
    if not (steep or unsettled or learning.below(short_of)):
        return
    share = (plan.batch_size or 0) / plan.samples if plan.samples else 0.2
    if share >= 0.1 and (plan.samples or training.updates < _FEW):
        confidence = 0.65 if share >= 0.3 else 0.5
        if share == 1 and not short and not unsettled:
            confidence = _WHOLE  # many programs use no batches at all, and learn
        text = "The batches are so large that an epoch makes only a few updates."
        yield _batch(training, confidence, text, "down")


def _batch(training: Training, confidence: float, message: str, way: str) -> Sign:
    plan = training.plan
    assert plan is not None
    return Sign(
        "HBS",
        confidence,
        message,
        evidence=(evidence("batch size", plan.batch_size or 0, "8 to 256"),),
        change=change("batch_size", (32, 64, 128), f"Use a batch size of 32{in_line(plan.line)}."),
        direction="up" if way == "up" else "down",
    )


def plain_optimizer(training: Training) -> Signs:
    """An optimiser without momentum or adapted steps in a run that crawls."""
    learning, optimizer = training.learning, training.optimizer
    if optimizer is None or optimizer.momentum > 0 or optimizer.name not in _PLAIN:
        return
    below = (learning.poor or learning.meaningless) and _below_its_band(training)
    crawls = learning.falling and (
        learning.below(0.6) or (learning.poor and learning.pace > _STEEP)
    )
    decaying = optimizer.name in _DECAYING and learning.below(0.9)
    if not (learning.below(0.5) or below or crawls or decaying):
        return
    yield Sign(
        "OCH",
        0.6 if below else 0.45 if learning.falling else 0.4,
        f"`{optimizer.name}` without momentum makes little progress here.",
        evidence=(evidence("optimizer", optimizer.name),),
        change=change(
            "optimizer", ("adam", "sgd with momentum 0.9"), f"Try Adam{in_line(optimizer.line)}."
        ),
        symptom=not below,
    )


BUDGET_RULES: tuple[Rule, ...] = (
    Rule("few-updates", "dynamics", ("HNE", "HLR"), "AutoTrainer (not converged)",
         "The run is too short to learn.", few),
    Rule("still-falling", "dynamics", ("HNE", "HLR"), "AutoTrainer (slow convergence)",
         "The loss still falls at the end of a run that learned little.", still_falling),
    Rule("tiny-batch", "dynamics", ("HBS",), "AutoTrainer (unstable: batch)",
         "Batches of at most four samples.", tiny_batch),
    Rule("huge-batch", "dynamics", ("HBS",), "DeepCrime (batch size)",
         "A batch holds a tenth of the data or more.", huge_batch),
    Rule("plain-optimizer", "dynamics", ("OCH",), "AutoTrainer (optimizer); DeepFD (optimizer)",
         "An optimizer without momentum or adaptive steps makes little progress.", plain_optimizer),
)  # fmt: skip


# Loss curves that break, jump or never leave the trivial predictor.
#
# Sources: DeepLocalize 5, DeepDiagnosis 6 and 7, AutoTrainer (explode, unstable); with tolerance
# in place of equality, and relative to the best constant prediction.

_JUMPS = 0.2
_SOUND = (3e-4, 3e-2)  # of the weights, changed by a step
_LONG, _SEVERAL = 100, 5
_DEEP = 50.0  # times as far below zero as the loss began from it
_GUESS = 0.33
_LITTLE, _NEAR = 0.35, 0.2
_OVER = 0.1  # of the weights, changed by a step
_CHANCE, _CLEAR = 2.0, 5.0


def breaks(training: Training) -> Signs:
    """A loss that became invalid or ended far above its start."""
    learning = training.learning
    if learning.broken and begins_broken(training):
        text = (
            "The first loss, before any step, is NaN or infinite: something in the data, the model "
            "or the loss has no value, such as the logarithm of zero or a division by zero."
        )
        yield Sign(
            "LCH",
            _GUESS,
            text,
            change=change("loss", (), "Find the first operation that returns it."),
        )
    elif learning.broken and breaks_at_once(learning):
        text = (
            f"The loss fell to {learning.points[-1]:.3g} and became NaN or infinite at once, as "
            "when a root, a norm, a logarithm or a quotient meets a zero."
        )
        yield rate_sign(training, _GUESS, False, text, symptom=True)
    elif learning.broken:
        text = "The loss became NaN or infinite."
        yield rate_sign(training, 0.75 if _grew(training) else _GUESS, False, text, symptom=True)
    elif _rose(training):
        yield rate_sign(training, 0.75, False, "The loss rose during training.", symptom=True)


def _rose(training: Training) -> bool:
    """Whether the loss ended far above its start."""
    start, end = training.learning.start, training.learning.end
    if start is not None and _tiny_batches(training):
        start = max(start, training.learning.points[0])  # the first losses are noise
    return start is not None and end is not None and start > 0 and end > 3 * start


def _grew(training: Training) -> bool:
    """Whether losses grew, or steps were far too large for the weights, before the loss broke: what
    has no value at once is no matter of the rate.
    """
    losses = [x.loss for x in training.steps if x.loss is not None and math.isfinite(x.loss)]
    is_larger = bool(losses) and max(losses) > 2 * abs(losses[0])
    is_usual = training.optimizer is not None and training.optimizer.name in BANDS
    return is_larger or (is_usual and (update_ratio(training) or 0.0) >= _OVER)


def begins_broken(training: Training) -> bool:
    """Whether no step can be to blame, since there was none before the first loss."""
    first = next((step.loss for step in training.steps if step.loss is not None), None)
    return first is not None and not math.isfinite(first)


def breaks_at_once(learning: Learning) -> bool:
    """Whether nothing grew before the loss broke, as it does under a rate that is too high."""
    points, start = learning.points, learning.start
    if len(points) < _SEVERAL or start is None:
        return False
    return 0 < points[-1] <= min(1.5 * min(points), 0.5 * start)


def _tiny_batches(training: Training) -> bool:
    """Whether each loss is that of a few samples alone."""
    batch = training.plan.batch_size if training.plan else None
    return batch is not None and batch <= TINY_BATCH


def unbounded(training: Training) -> Signs:
    """A loss that the program writes out and that falls below zero faster and faster: it can be
    made as small as one likes, as a product of scores and targets without a logarithm of shares.
    """
    learning, loss = training.learning, training.loss
    start, end, points = learning.start, learning.end, learning.points
    if start is None or end is None or len(points) < _SEVERAL or training.is_policy:
        return
    if (loss is not None and loss.name != "expression") or training.in_turns:
        return
    if end > -_DEEP * max(abs(start), 1.0) or end > 1.5 * points[len(points) // 2]:
        return
    text = (
        f"The loss falls from {start:.3g} to {end:.3g}, and faster towards the end: it has no lower"
        " bound, so larger outputs are always better."
    )
    better = change(
        "loss",
        ("cross_entropy",),
        "Compare log-probabilities, as after `log_softmax`, or use a distance.",
    )
    line = loss.line if loss else 0
    measurement = evidence("loss at the end", end, "bounded")
    yield Sign("LCH", 0.85, text, also=("ACH",), evidence=(measurement,), change=better, line=line)


def jumps(training: Training) -> Signs:
    """A loss that falls and rises again and again."""
    learning = training.learning
    if learning.poor and learning.points and learning.rises >= _JUMPS * len(learning.points):
        ratio = update_ratio(training)
        is_fast = not in_band(training) if ratio is None else ratio > _SOUND[1]
        text = "The loss jumps up and down."
        yield rate_sign(training, 0.5 if is_fast else _GUESS, False, text, symptom=True)


def never_below_constant(training: Training) -> Signs:
    """A loss that stays with the trivial predictor, for no reason that stands in the program."""
    learning = training.learning
    if learning.broken or not learning.below(_LITTLE):
        return
    ratio = update_ratio(training)
    text = "The loss stays near that of a constant prediction."
    sound = ratio is not None and _SOUND[0] <= ratio <= _SOUND[1]
    slow = _slow(training)
    up = slow or (ratio is not None and ratio < _SOUND[0])
    stays = learning.badly and not learning.falling
    if stays:
        measured = slow or (ratio is not None and not sound)
        likely = 0.45 if measured else _GUESS if in_band(training) else 0.36
        yield rate_sign(training, likely, up, text, symptom=True)
    near = learning.skill is None or learning.skill > -_NEAR
    follow = targets_follow(training)
    if sound and near and training.updates > _LONG and not follow:
        better = change("preprocessing", ("labels",), "Check that each label belongs to its input.")
        words = "The steps are large enough, but the targets do not seem to depend on the inputs."
        likely = 0.36 if follow is False else _GUESS
        yield Sign("CPP", likely, words, change=better, symptom=True)
    optimizer = training.optimizer
    if stays and optimizer and optimizer.name not in ("adam", "adamw"):
        measurements = (evidence("optimizer", optimizer.name),)
        better = change("optimizer", ("adam",), f"Try Adam{in_line(optimizer.line)}.")
        yield Sign("OCH", 0.3, text, evidence=measurements, change=better, symptom=True)


def targets_follow(training: Training) -> bool | None:
    """Whether samples that are alike have targets that are alike, or unlike as in XOR; None where
    that is not clear.
    """
    agreement = training.data.agreement if training.data else None
    if agreement is None or _CHANCE < abs(agreement) < _CLEAR:
        return None
    shares = training.loss.class_shares if training.loss else ()
    if abs(agreement) < _CLEAR and max(shares, default=0.0) > _MOSTLY_ONE:
        return None  # of rare labels a few hundred neighbours hold too few to tell
    return abs(agreement) >= _CLEAR


def unrelated(training: Training) -> Signs:
    """Targets of nearest neighbours that agree no better than by chance, where little was learned:
    labels that do not belong to their inputs look so, and hard tasks as well.
    """
    if training.learning.poor and training.updates > _LONG and targets_follow(training) is False:
        agreement = training.data.agreement if training.data else None
        yield Sign(
            "CPP",
            0.45,
            "Similar samples do not have similar targets.",
            evidence=(
                evidence("agreement of neighbours above chance", agreement or 0.0, "over 5"),
            ),
            change=change(
                "preprocessing", ("labels",), "Check that each label belongs to its input."
            ),
        )


def _slow(training: Training) -> bool:
    """Whether plain descent takes steps of at most the usual rate: on a plateau that is little."""
    optimizer, rate = training.optimizer, training.rate
    plain = optimizer is not None and optimizer.name == "sgd" and not optimizer.momentum
    return plain and rate is not None and rate <= BANDS["sgd"][1]


CURVE_RULES: tuple[Rule, ...] = (
    Rule("loss-breaks", "rate", ("HLR",), "DeepLocalize 5; DeepDiagnosis 6; AutoTrainer (explode)",
         "The loss becomes NaN or infinite, or rises.", breaks),
    Rule("loss-unbounded", "contract", ("LCH", "ACH"), "Reprise",
         "A loss without a lower bound.", unbounded),
    Rule("loss-jumps", "dynamics", ("HLR",), "AutoTrainer (unstable)",
         "The loss falls and rises again and again.", jumps),
    Rule("targets-unrelated", "data", ("CPP",), "Reprise",
         "Targets do not depend on the inputs.", unrelated),
    Rule("loss-stuck", "dynamics", ("HLR", "OCH", "CPP"), "DeepLocalize 5 (MDL); DeepDiagnosis 7",
         "The loss never gets below that of a constant prediction.", never_below_constant),
)  # fmt: skip
