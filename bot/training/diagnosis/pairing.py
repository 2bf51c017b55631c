"""Whether rows, labels and predictions belong together: by the rows and labels that a training was
given, and by what its losses are called with.
"""

import math

from bot.kernel.training_code import ProgramCode
from bot.kernel.training_types import Fault, Loss
from bot.training.diagnosis.code_loop import code_sign
from bot.training.diagnosis.labels import classes_of, last_units, takes_numbers
from bot.training.diagnosis.learning import BINARY, ENTROPIES, targets_of
from bot.training.diagnosis.loss_contract import kind, last_layer
from bot.training.diagnosis.rule import (
    Rule,
    Sign,
    Signs,
    Training,
    change,
    evidence,
    in_line,
    label,
    number,
)

_LEAST_ROWS, _LEAST_BATCHES, _MANY, _MOST = 32, 5, 0.3, 0.9
_TABLE = 2
_BETWEEN, _WORSE = 0.6, 3.0
_MOST_CLASSES, _ERRORS, _HALF, _SURE = 1000, 3.0, 0.5, 0.05
_SYMMETRIC = frozenset(
    ("mse", "mae", "rmse", "huber", "smooth_l1", "logcosh", "log_cosh", "cosine_similarity",
     "cosine_embedding")
)  # fmt: skip
"""Losses for which it does not matter which of two values is learned."""
_CHECK = change("preprocessing", ("labels",), "Check how the program pairs inputs with labels.")


def contradicting(training: Training) -> Signs:
    """Inputs that come with one label and with another."""
    code = training.code
    rows, twice = _counts(code, "labelled_rows", "contradicted_rows")
    if rows < _LEAST_ROWS or twice < _MANY * rows or training.is_policy:
        return
    text = (
        f"{twice / rows:.0%} of the inputs come with more than one label: the same input is loaded"
        " for several classes, so nothing tells them apart."
    )
    measurement = evidence("inputs with several labels", f"{twice} of {rows}", "0")
    yield Sign("CPP", 0.93, text, evidence=(measurement,), change=_CHECK)


def one_row(training: Training) -> Signs:
    """Batches that hold one row again and again, another one each time."""
    code = training.code
    batches, alike = _counts(code, "row_batches", "alike_batches")
    distinct = code.facts.get("distinct_batches", 2) if code else 0
    if batches < _LEAST_BATCHES or alike < _MOST * batches or distinct == 1:
        return
    if training.data is not None and training.data.inputs.finite < _MOST:
        return  # rows without values are no rows
    text = f"All rows of a batch are the same, in {alike} of {batches} batches."
    measurement = evidence("batches of one row", f"{alike} of {batches}", "0")
    words = "Copy each row when it is read: a buffer that is used again holds the last one only."
    better = change("preprocessing", ("rows",), words)
    yield Sign("CPP", 0.95, text, evidence=(measurement,), change=better)


def large_mask(training: Training) -> Signs:
    """Masks of 0 and 255, say, by which a loss multiplies shares."""
    code = training.code
    high = code.facts.get("mask_high") if code else None
    if not isinstance(high, int | float) or high <= 1:
        return
    text = (
        f"The loss multiplies the predictions by masks of 0 and {number(high)}, but they lie"
        " between 0 and 1: an overlap counts far more than everything else."
    )
    words = f"Divide the masks by {number(high)}, or compare them: `(mask > 0).float()`."
    better = change("preprocessing", ("labels",), words)
    measurement = evidence("largest value of the masks", high, 1)
    also: tuple[Fault, ...] = ("scaling-mismatch",)
    yield Sign("CPP", 0.93, text, also=also, evidence=(measurement,), change=better)


def alike_in_batches(training: Training) -> Signs:
    """Batches of rows that are alike, of which batch normalization takes the mean, and evaluations
    that are far worse for it.
    """
    code, end = training.code, training.learning.end
    share = code.facts.get("between_batches") if code else None
    norms = [x for x in training.layers if "BatchNorm" in x.type]
    if not isinstance(share, int | float) or share < _BETWEEN or not norms or training.in_turns:
        return
    if end is None or training.judged is None or training.judged < _WORSE * abs(end):
        return
    text = (
        f"Rows differ between batches and hardly within them ({share:.0%} of the spread of their"
        f" means): {label(norms[0])} subtracts the mean of one part of the data in training, and"
        " the mean of all of it in evaluation."
    )
    words = "Shuffle all rows together before you split them into batches."
    better = change("preprocessing", ("shuffle",), words)
    measurements = (
        evidence("spread between batches", share, "under 0.2"),
        evidence("loss of evaluation", training.judged, end),
    )
    yield Sign("CPP", 0.85, text, evidence=measurements, change=better)


def one_target(training: Training) -> Signs:
    """Targets that are the same class for every row, where the outputs are those of a layer."""
    yield from _constant_columns(training)
    loss, data, plan = training.loss, training.data, training.plan
    if loss is None or len(training.losses) > 1 or training.in_turns or training.is_policy:
        return
    if loss.name not in ENTROPIES | BINARY or not _is_of_layer(training, loss):
        return
    if max(loss.class_shares, default=0.0) < 1 and not _is_constant(training, loss):
        return
    rows = math.prod(targets_of(loss, data).shape[:1])
    is_part = plan is None or plan.samples is None or rows < _HALF * plan.samples
    is_drawn = plan is not None and plan.shuffle is True
    is_learned = training.learning.end is not None and training.learning.end < _SURE
    if rows < _LEAST_ROWS or not (is_drawn or is_learned or not is_part):
        return  # rows that are sorted by class look so at the beginning
    text = (
        f"All targets are the same class: `{loss.name}`{in_line(loss.line)} has nothing to tell"
        " apart, and a constant is the best answer."
    )
    words = "Check how the labels are made: numbers of classes, thresholds and columns."
    better = change("preprocessing", ("labels",), words)
    measurement = evidence("classes among the targets", 1, "2 or more")
    yield Sign("CPP", 0.93, text, evidence=(measurement,), change=better, line=loss.line)


def _constant_columns(training: Training) -> Signs:
    """Targets of several columns of which one is always 1 and another always 0."""
    loss = training.loss
    shares = loss.class_shares if loss else ()
    if loss is None or loss.targets.minimum != 0 or loss.targets.maximum is None:
        return
    ones = [at for at, share in enumerate(shares) if share == 1]
    if not ones or 0 not in shares or loss.targets.maximum > 1 or len(loss.targets.shape) < _TABLE:
        return
    text = (
        f"Column {ones[0]} of the targets is 1 in every row, and column {shares.index(0)} is 0: the"
        " classes they stand for never change, so there is nothing to learn."
    )
    words = "Check how classes are numbered, and which number stands for none (the background)."
    better = change("preprocessing", ("labels",), words)
    measurement = evidence(f"mean of column {ones[0]} of the targets", 1, "under 1")
    yield Sign("CPP", 0.9, text, evidence=(measurement,), change=better, line=loss.line)


def _is_of_layer(training: Training, loss: Loss) -> bool:
    """Whether what is judged is what the last layer returns, and not, say, a similarity."""
    return last_units(training) == classes_of(training, loss)


def _is_constant(training: Training, loss: Loss) -> bool:
    whole = targets_of(loss, training.data)
    same = whole.minimum is not None and whole.minimum == whole.maximum
    return same and kind(loss) in ("binary", "classes") and loss.integer_targets


def too_few_units(training: Training) -> Signs:
    """Labels that number more classes than there are outputs."""
    loss, output = training.loss, training.learners[-1] if training.learners else None
    if loss is None or output is None or not loss.integer_targets:
        return
    units, whole = classes_of(training, loss), targets_of(loss, training.data)
    if not takes_numbers(training, loss) or units < 2:
        return
    if whole.minimum != 0 or whole.maximum is None or not units <= whole.maximum < _MOST_CLASSES:
        return
    if output.units != units or kind(loss) == "one-hot":
        return
    classes, places = int(whole.maximum) + 1, last_layer(training)
    text = (
        f"There are {classes} classes, but only {units} outputs: `{loss.name}`"
        f"{in_line(loss.line)} cannot judge labels above {units - 1}."
    )
    index = output.index
    widen = change(
        f"units({index})", (classes,), f"Give {label(output)} {classes} units, one per class."
    )
    measurements = (evidence("outputs", units, classes),)
    yield Sign("LCN", 0.97, text, (index,) if places else (), (), measurements, widen, "up")


def disagreeing(training: Training) -> Signs:
    """A loss of classes and one of shares of them that are given different answers for a row: a
    teacher's for other rows, say.
    """
    code = training.code
    rows, agreed = _counts(code, "answers", "answers_agreed")
    by_chance = code.facts.get("answers_by_chance") if code else 0
    chance = float(by_chance) if isinstance(by_chance, int | float) else 0.0
    shares = next((x for x in training.losses if _has_shares(x)), None)
    if shares is None or rows < _LEAST_ROWS:
        return
    if agreed > chance + _ERRORS * math.sqrt(max(chance, 1.0)):
        return
    text = (
        f"Two losses are given different answers: in {agreed} of {rows} rows the likeliest class of"
        " the one is the label of the other, as often as by chance. They belong to other rows."
    )
    words = "Compute both for the same batch; what was computed earlier is in another order."
    yield code_sign(
        training, "labels-shuffled", 0.93, text, words, line=shares.line, always=True,
        measurements=(evidence("rows that agree", f"{agreed} of {rows}", f"{chance:.0f}"),),
    )  # fmt: skip


def _has_shares(loss: Loss) -> bool:
    """Whether targets are a share of each class."""
    return len(loss.targets.shape) > 1 and loss.targets.shape == loss.predictions.shape


def swapped_arguments(training: Training) -> Signs:
    """A loss that is given the targets first and the predictions second."""
    code = training.code
    if code is not None and "swapped_line" in code.facts:
        name = str(code.facts.get("swapped_loss"))
        yield from _swapped(training, name, code.integer("swapped_line"))
        return
    for loss in training.losses:
        if loss.settings.get("swapped") and loss.name not in _SYMMETRIC:
            yield from _swapped(training, loss.name, loss.call or loss.line)
            return


def _swapped(training: Training, name: str, line: int) -> Signs:
    if name in _SYMMETRIC:
        return
    text = (
        f"`{name}`{in_line(line)} is given the targets as predictions and the predictions as"
        " targets."
    )
    words = f"Swap its two arguments{in_line(line)}."
    yield code_sign(training, "arguments-swapped", 0.95, text, words, line=line, always=True)


def _counts(code: ProgramCode | None, *names: str) -> tuple[int, ...]:
    return tuple(code.integer(name) if code else 0 for name in names)


_SOURCE = "public questions"
RULES: tuple[Rule, ...] = (
    Rule("labels-shuffled", "code", ("labels-shuffled",), _SOURCE,
         "Two losses of one batch are given answers for different rows.", disagreeing),
    Rule("arguments-swapped", "code", ("arguments-swapped",), _SOURCE,
         "A loss is given its two arguments in the wrong order.", swapped_arguments),
    Rule("labels-contradict", "contract", ("CPP",), _SOURCE,
         "The same inputs come with different labels.", contradicting),
    Rule("rows-alike", "contract", ("CPP",), _SOURCE,
         "One row fills each batch.", one_row),
    Rule("masks-not-shares", "contract", ("CPP", "scaling-mismatch"), _SOURCE,
         "Masks of 0 and a large number where predictions are shares.", large_mask),
    Rule("batches-alike", "contract", ("CPP",), _SOURCE,
         "Batches of rows that are alike, before batch normalization.", alike_in_batches),
    Rule("targets-alike", "contract", ("CPP",), _SOURCE,
         "All targets are the same class.", one_target),
    Rule("too-few-units", "contract", ("LCN",), "DeepDiagnosis 1; public questions",
         "Fewer outputs than the labels number classes.", too_few_units),
)  # fmt: skip
