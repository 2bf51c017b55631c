"""Faults of what a training is fed and measured with: axes, batches, rows, padding, reductions,
states and thresholds that are wrong in the program's code.
"""

import math
from collections.abc import Sequence
from statistics import fmean

from bot.kernel.training_code import ProgramCode, TensorUse
from bot.kernel.training_types import Layer, Loss
from bot.training.diagnosis.code_loop import code_sign
from bot.training.diagnosis.learning import BINARY, ENTROPIES
from bot.training.diagnosis.rule import (
    Rule,
    Signs,
    Training,
    evidence,
    in_line,
    label,
    number,
    recurrent,
)

_SEQUENCES = frozenset(("LSTM", "GRU", "RNN", "MultiheadAttention"))
_MAKERS = (
    "LSTM", "GRU", "RNN", "MultiheadAttention", "TransformerEncoderLayer",
    "TransformerDecoderLayer", "Transformer",
)  # fmt: skip
_PLAIN = frozenset(("sgd", "asgd"))
_RANK, _LEAST_LOOKS, _LOOPS = 3, 5, 2
_MOST, _HALF, _PART, _WHOLE = 0.8, 0.5, 0.15, 0.85
_LARGER, _NOTHING_LEFT, _UNLEARNED = 3.0, 0.05, 0.9
_CLEAN = 0.02
_PADDED, _GROWN, _LEAST_ROWS, _BEYOND = 0.3, 2.5, 8, 1e-3


def _numbers(code: ProgramCode, name: str) -> tuple[float, ...]:
    value = code.facts.get(name)
    return tuple(value) if isinstance(value, tuple) else ()


def _number(code: ProgramCode, name: str) -> float:
    value = code.facts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def mixed_axes(training: Training) -> Signs:
    """A recurrent layer or attention takes the samples of a batch for the places of a sequence."""
    code, rows = training.code, _rows(training)
    if code is None or not rows:
        return
    for layer in training.layers:
        shape = layer.input.shape if layer.input else ()
        if layer.type not in _SEQUENCES or len(shape) != _RANK or shape[0] == shape[1]:
            continue
        first = layer.settings.get("batch_first") is True
        if shape[0 if first else 1] == rows or shape[1 if first else 0] != rows:
            continue
        line = next((x.line for x in code.mentions if x.name in _MAKERS), 0)
        text = (
            f"{label(layer).capitalize()} reads the {rows} samples of a batch as the places of a"
            f" sequence: it expects {'(batch, places, …)' if first else '(places, batch, …)'} and"
            f" gets {shape}."
        )
        words = f"Pass `batch_first={not first}`{in_line(line)}."
        yield code_sign(
            training, "axis-mixed", 0.93, text, words, line=line, always=True,
            measurements=(evidence("input", str(shape)), evidence("batch", rows)),
        )  # fmt: skip
        return


def mixed_views(training: Training) -> Signs:
    """A `view` or `reshape` that gives a tensor the sizes that `permute` would."""
    for use in training.code.uses if training.code else ():
        if use.name not in ("view", "reshape"):
            continue
        text = (
            f"`{use.name}`{in_line(use.line)} turns {use.before} into {use.after} by cutting the"
            " numbers anew: it mixes entries of different rows and swaps no axes."
        )
        words = f"Swap axes with `permute` or `transpose` instead of `{use.name}`"
        yield code_sign(
            training, "axis-mixed", 0.9, text, f"{words}{in_line(use.line)}.", line=use.line,
            measurements=(evidence("shapes", f"{use.before} to {use.after}"),), always=True,
        )  # fmt: skip
        return


def softmax_over_samples(training: Training) -> Signs:
    """Softmax along the samples, of scores that have places beside them."""
    for use in training.code.uses if training.code else ():
        if use.name != "softmax" or not _rows(training) or use.before[0] != _rows(training):
            continue
        text = (
            f"`softmax`{in_line(use.line)} runs over the {use.before[0]} samples of a batch, the"
            f" first axis of {use.before}: each sample's weights depend on the others."
        )
        words = f"Pass `dim=-1` instead of `dim=0`{in_line(use.line)}."
        yield code_sign(
            training, "axis-mixed", 0.93, text, words, line=use.line, always=True,
            measurements=(evidence("shape", str(use.before)),),
        )  # fmt: skip
        return


def single_places(training: Training) -> Signs:
    """A recurrent layer whose sequences have one place: its weights for what came before never get
    a gradient.
    """
    if not training.learning.poor:
        return
    for layer in training.learners:
        rows = [x for x in training.changed.get(layer.index, ()) if x.norm is not None]
        before = [x.norm for x in rows if x.role == "recurrent"]
        if not recurrent(layer) or len(before) < _LEAST_LOOKS or any(before):
            continue
        if not any(x.norm for x in rows if x.role == "kernel"):
            continue
        code = training.code
        line = next((x.line for x in code.mentions if x.name in _MAKERS), 0) if code else 0
        shape = layer.input.shape if layer.input else ()
        text = (
            f"{label(layer).capitalize()} gets sequences of length 1, {shape}, each from an"
            " empty state: its recurrent weights never have a gradient, and it remembers nothing."
        )
        words = "Give it sequences of several steps, as (batch, steps, features)."
        yield code_sign(
            training, "axis-mixed", 0.82, text, words, line=line,
            measurements=(evidence("gradient of its recurrent weights", "0"),),
        )  # fmt: skip
        return


def axes(training: Training) -> Signs:
    """Axes that are mixed up, by a layer that reads them wrongly, a `view` or a softmax."""
    yield from mixed_axes(training)
    yield from mixed_views(training)
    yield from softmax_over_samples(training)
    yield from single_places(training)


def _rows(training: Training) -> int:
    """How many samples a batch has: as the loss compares them, and as the model gets them. Where
    both have places beside the samples, in either order, the size of the loader's batches tells.
    """
    loss, data, code = training.loss, training.data, training.code
    targets = loss.targets.shape if loss else ()
    inputs = data.inputs.shape if data else ()
    if not targets or not inputs or targets[0] != inputs[0]:
        return 0
    if len(inputs) < _RANK or targets[1:2] != inputs[1:2]:
        return targets[0]
    plan = training.plan
    is_loaded = code is not None and bool(_number(code, "loader_steps"))
    return targets[0] if is_loaded and plan and plan.batch_size == targets[0] else 0


def same_batch(training: Training) -> Signs:
    """Every step is made on the same rows of larger data."""
    code = training.code
    if code is None or code.facts.get("distinct_batches") != 1:
        return
    if _number(code, "batches") < _LEAST_LOOKS:
        return
    if code.totals.get("backward", 0) >= _LOOPS * code.totals.get("step", 0):
        return  # rows are looked at when a step is made: here the last ones of each epoch
    beginnings, steps = _number(code, "loader_begun"), _number(code, "loader_steps")
    length = _number(code, "loader_length")
    again = steps and beginnings >= _MOST * steps and length > 1
    loops = code.site("backward").loops
    inner = float(loops[-1].rpartition(":")[2]) if loops else 0.0
    in_parts = inner in _numbers(code, "batch_loops")
    sliced = (
        not steps and len(loops) >= _LOOPS and (in_parts or _number(code, "batch_share") < _HALF)
    )
    if not again and not sliced:
        return
    line = next((x.line for x in code.mentions if x.name == "iter"), 0) if again else 0
    line = line or code.site("backward").line
    text = f"All {training.updates} steps see the same batch"
    if again:
        text += f": the loader begins anew for each{in_line(line)}, and {number(length - 1)} of its"
        text += f" {number(length)} batches are never used."
        words = "Loop over the loader itself: `for batch in loader`."
    else:
        share = _number(code, "batch_share")
        part = f": {share:.0%} of the data," if share < 1 else ""
        text += f"{part} in a loop that is meant to go through the data."
        words = "Take the rows of each batch by the variable of the loop."
    yield code_sign(
        training, "same-batch", 0.93, text, words, line=line, always=True,
        measurements=(
            evidence("different batches", "1"), evidence("looked at", _number(code, "batches")),
        ),
    )  # fmt: skip


def leaked_rows(training: Training) -> Signs:
    """Some rows of an evaluation are rows that were trained on."""
    code, plan = training.code, training.plan
    if code is None or plan is None or not plan.samples:
        return
    trained = _number(code, "trained_rows")
    if trained > plan.samples + (plan.batch_size or 0):
        return  # they are the rows of another training of this program
    rows, shared = _numbers(code, "judged_rows"), _numbers(code, "judged_trained")
    coverage = min(1.0, (trained + _number(code, "repeated_rows")) / plan.samples)
    if not rows or coverage < _HALF:
        return
    parts = [(n, hits / n / coverage) for n, hits in zip(rows, shared, strict=False)]
    mixed = [(n, share) for n, share in parts if _PART <= share <= _WHOLE]
    if not mixed or sum(n for n, _ in mixed) < _HALF * sum(rows):
        return
    if any(share < _CLEAN for _, share in parts):
        return  # beside rows that were held out, those of training are judged, too
    share = sum(n * share for n, share in mixed) / sum(n for n, _ in mixed)
    text = (
        f"About {share:.0%} of the rows that the model is judged by are rows that it was trained"
        " on: the result is too good."
    )
    words = "Split the data first, and only then repeat, augment or sample rows."
    yield code_sign(training, "split-leak", 0.85, text, words, always=True)


def leaked_target(training: Training) -> Signs:
    """A column of the inputs is the target."""
    code, loss = training.code, training.loss
    if code is not None and _number(code, "copied_targets") > _MOST:
        text = (
            "The decoder reads the very targets that it has to predict, each at its own position:"
            " it learns to copy them, not to predict the next one."
        )
        words = "Feed `tgt[:, :-1]` and compare with `tgt[:, 1:]`"
        line = loss.line if loss else 0
        yield code_sign(
            training, "target-in-inputs", 0.9, text, f"{words}{in_line(line)}.", line=line,
            always=True,
        )  # fmt: skip
        return
    columns = _numbers(code, "target_columns") if code else ()
    if code is None or loss is None or not columns:
        return
    which = " and ".join(number(x) for x in columns[:3])
    text = f"Column {which} of the inputs is the target itself, but for scale: nothing is learned."
    words = f"Remove column {which} from the inputs."
    yield code_sign(training, "target-in-inputs", 0.85, text, words, always=True)


def summed(training: Training) -> Signs:
    """A loss that is summed over the batch, under a rate for its mean."""
    loss, code = training.loss, training.code
    if loss is None or code is None or loss.settings.get("reduction") != "sum":
        return
    rows = math.prod(loss.targets.shape[:1])
    plain = any(x.name in _PLAIN and x.steps for x in code.optimizers)
    learning = training.learning
    if rows < _LEAST_ROWS or not plain or not (learning.poor or learning.broken):
        return
    text = (
        f"`{loss.name}`{in_line(loss.line)} sums over the {rows} samples of a batch, so gradients"
        f" are {rows} times those of the mean, too large for this learning rate."
    )
    words = f"Average instead: `reduction='mean'`{in_line(loss.line)}."
    yield code_sign(training, "wrong-reduction", 0.85, text, words, line=loss.line)


def outweighed(training: Training) -> Signs:
    """A term beside the loss that is far larger, and for which the loss itself is not learned: the
    sum of a divergence beside the mean of an error.
    """
    loss, code = training.loss, training.code
    pairs = [(x.added, x.loss - x.added) for x in training.steps if x.added and x.loss is not None]
    if loss is None or code is None or len(pairs) < _LEAST_LOOKS * _LOOPS or not loss.trivial:
        return
    if training.is_policy or training.in_turns or any(added < 0 for added, _ in pairs):
        return  # a divergence is never negative
    first, last = pairs[: max(1, len(pairs) // 10)], pairs[-(len(pairs) // 4) :]
    start, own = (max(x[0] for x in first), max(x[1] for x in first))
    rest = fmean(x[1] for x in last)
    is_gone = fmean(x[0] for x in last) < _NOTHING_LEFT * start
    if start < _LARGER * own or not is_gone or not _is_trivial(rest, loss.trivial):
        return
    line = code.integer("loss_line")
    text = (
        f"What is added to `{loss.name}`{in_line(line)} begins {number(start / max(own, 1e-12))}"
        " times as large and is brought to nothing, while the error stays that of a constant"
        f" ({number(rest)}): it is a sum beside a mean."
    )
    words = f"Take both as means over the samples, or weigh the added term less{in_line(line)}."
    yield code_sign(
        training, "wrong-reduction", 0.9, text, words, line=line,
        measurements=(
            evidence("added term", start), evidence("error at the end", rest, loss.trivial),
        ),
    )  # fmt: skip


def _is_trivial(error: float, trivial: float) -> bool:
    return _UNLEARNED * trivial <= error <= trivial / _UNLEARNED


def reductions(training: Training) -> Signs:
    """Sums where means belong."""
    yield from summed(training)
    yield from outweighed(training)


def carried(training: Training) -> Signs:
    """A state that is carried from batch to batch with its graph."""
    code = training.code
    sizes = _numbers(code, "graph_sizes") if code else ()
    backward = code.totals.get("backward", 0) if code else 0
    if code is None or len(sizes) < _RANK or backward < _LEAST_LOOKS:
        return
    if _number(code, "kept_graphs") < _MOST * backward or sizes[-1] < _GROWN * sizes[0]:
        return
    line = code.site("backward").line
    text = (
        f"The graph of the loss grows from step to step ({number(sizes[0])} to {number(sizes[-1])}"
        f" operations): a state keeps the graphs of all earlier batches, and"
        f" `retain_graph=True`{in_line(line)} hides it."
    )
    words = f"Detach the state after each batch, and leave out `retain_graph`{in_line(line)}."
    yield code_sign(training, "state-carried", 0.92, text, words, line=line, always=True)


def padding(training: Training) -> Signs:
    """Padding that counts: in a loss over sequences, or as the place that is read."""
    yield from _padded_places(training)
    yield from _padded_ends(training)


def _padded_ends(training: Training) -> Signs:
    """A recurrent layer that is read at its last step, where most sequences have padding."""
    code = training.code
    share = _number(code, "padded_ends") if code else 0.0
    if code is None or share < _HALF or not training.learning.poor:
        return
    maker = next((x.line for x in code.mentions if x.name in _MAKERS), 0)
    line = code.integer("ends_line") or maker
    text = (
        f"A recurrent layer is read at its last step{in_line(line)}, which is padding in"
        f" {share:.0%} of the sequences: what came before it is forgotten over the padding."
    )
    words = "Read each sequence at its own last step, or pack it with `pack_padded_sequence`."
    yield code_sign(
        training, "padding-counts", 0.85, text, words, line=line,
        measurements=(evidence("sequences that end in padding", f"{share:.0%}"),),
    )  # fmt: skip


def _padded_places(training: Training) -> Signs:
    """Places of padding that count in a loss over sequences."""
    loss, data, code = training.loss, training.data, training.code
    if loss is None or data is None or code is None or loss.name not in ENTROPIES:
        return
    if training.model.framework == "keras":
        return  # it masks padding of its own accord, which no record of its loss tells
    if not data.ids or not _is_of_places(loss, data.inputs.shape) or not loss.class_shares:
        return
    ids = _padding_ids(training.layers)
    pad = next((x for x in ids if x < len(loss.class_shares)), 0)
    ignored = loss.settings.get("ignore_index")
    share = loss.class_shares[pad]
    as_input = data.inputs.zero if not pad else share
    if ignored == pad or share < _PADDED or as_input < _PADDED or share < max(loss.class_shares):
        return
    text = (
        f"{share:.0%} of the targets are the padding id {pad}, and `{loss.name}`"
        f"{in_line(loss.line)} counts them: the model learns to predict padding."
    )
    words = f"Pass `ignore_index={pad}` to the loss{in_line(loss.line)}."
    yield code_sign(
        training, "padding-counts", 0.85, text, words, line=loss.line, always=True,
        measurements=(evidence("targets that are padding", f"{share:.0%}"),),
    )  # fmt: skip


def _is_of_places(loss: Loss, inputs: Sequence[int]) -> bool:
    """Whether there is a target for each place of a sequence."""
    return len(inputs) == _RANK - 1 and math.prod(loss.targets.shape) >= math.prod(inputs) * _HALF


def _padding_ids(layers: Sequence[Layer]) -> list[int]:
    values = (x.settings.get("padding_idx") for x in layers)
    return [x for x in values if isinstance(x, int) and not isinstance(x, bool)]


def measured(training: Training) -> Signs:
    """Logits compared with one half as if they were probabilities, classes that are predicted along
    the samples, or predictions in another order than the labels.
    """
    loss, code = training.loss, training.code
    miscounted = code.integer("miscounted") if code else 0
    if miscounted:
        text = (
            f"Line {miscounted} divides a sum over rows by the number of batches, or means of"
            " batches by the number of rows: the share is wrong by the size of a batch."
        )
        words = f"Divide by the number of what was added up, in line {miscounted}."
        yield code_sign(training, "metric-wrong", 0.9, text, words, line=miscounted, always=True)
    if code is not None and training.model.framework == "keras":
        yield from _measured_by_keras(training, code)
    if code is not None:
        yield from _judged_as_it_began(training, code)
    for use in code.uses if loss and code else ():
        if use.name == "half" and loss and loss.name == "bce_logits" and _are_logits(use):
            text = (
                f"Line {use.line} takes logits for probabilities: it compares values of"
                f" {number(use.low or 0)} to {number(use.high or 0)} with 0.5, but a logit above 0"
                " already means more than one half."
            )
            words = f"Compare with 0, or apply `torch.sigmoid` first, in line {use.line}."
        elif use.name == "argmax of all" and loss and _has_classes(use, loss):
            text = (
                f"`argmax`{in_line(use.line)} has no axis: from a tensor of {use.before} it picks"
                " one index for all samples, not a class for each."
            )
            words = f"Pass `dim=1`{in_line(use.line)}."
        elif use.name in ("argmax", "max") and loss and _is_of_one(use, loss):
            text = (
                f"`{use.name}`{in_line(use.line)} picks one of a single column of {use.before}: the"
                " answer is 0 for every sample."
            )
            limit = "0" if loss.name == "bce_logits" else "0.5"
            words = f"Compare the output with {limit} instead{in_line(use.line)}."
        elif use.name in ("argmax", "max") and loss and _is_along_samples(use, loss):
            text = (
                f"`{use.name}`{in_line(use.line)} picks a sample for each class of {use.before},"
                " not a class for each sample."
            )
            words = f"Use `dim=1` instead of `dim=0`{in_line(use.line)}."
        else:
            continue
        yield code_sign(training, "metric-wrong", 0.88, text, words, line=use.line, always=True)
        return


def _judged_as_it_began(training: Training, code: ProgramCode) -> Signs:
    """A compiled function that evaluates the parameters which training began with."""
    line = code.integer("judged_initial")
    if not line:
        return
    text = (
        f"The function in line {line} evaluates the initial parameters: it has captured them, or is"
        " passed them again, although training has changed them since."
    )
    words = f"Pass the trained parameters to the function in line {line}, and use those."
    yield code_sign(training, "metric-wrong", 0.95, text, words, line=line, always=True)


def _measured_by_keras(training: Training, code: ProgramCode) -> Signs:
    loss, limit = training.loss, code.facts.get("threshold")
    if code.facts.get("labels_of_training"):
        line = code.integer("labels_of_training")
        text = (
            f"`evaluate`{in_line(line)} is given other inputs, but the labels of the training data,"
            " so its result means nothing."
        )
        words = f"Pass the labels of the same rows{in_line(line)}."
    elif code.facts.get("predicted_shuffled"):
        line = code.integer("predicted_line")
        text = (
            f"`predict` reads a data set that is shuffled anew in each pass{in_line(line)}, so its"
            " predictions do not stand in the order of labels that are read separately."
        )
        words = "Do not shuffle the data that the model is evaluated on."
    elif loss and loss.from_logits and loss.name == "binary_crossentropy" and limit == _HALF:
        line = code.integer("threshold_line")
        text = (
            f"The accuracy{in_line(line)} takes outputs above 0.5 for the positive class, but they"
            " are logits: a probability of 0.5 is a logit of 0."
        )
        words = f"Use `keras.metrics.BinaryAccuracy(threshold=0.0)`{in_line(line)}."
    else:
        return
    yield code_sign(training, "metric-wrong", 0.9, text, words, line=line, always=True)


def _are_logits(use: TensorUse) -> bool:
    return (use.low or 0.0) < -_BEYOND or (use.high or 0.0) > 1 + _BEYOND


def _is_of_one(use: TensorUse, loss: Loss) -> bool:
    """Whether what is looked through is the single output of a model that tells two classes."""
    return loss.name in BINARY and use.before[1:] == loss.predictions.shape[1:] == (1,)


def _is_along_samples(use: TensorUse, loss: Loss) -> bool:
    """Whether what is looked through has a column for each class, and rows that are samples."""
    return _has_classes(use, loss) and use.before[1] != use.before[0]


def _has_classes(use: TensorUse, loss: Loss) -> bool:
    """Whether what is looked through has a row for each sample and a column for each class."""
    shape = loss.predictions.shape
    is_classes = loss.name in ENTROPIES and len(shape) == _LOOPS and len(use.before) == _LOOPS
    return is_classes and use.before[1] == shape[1]


_SOURCE = "public questions; TrainCheck"
RULES: tuple[Rule, ...] = (
    Rule("axis-mixed", "code", ("axis-mixed",), _SOURCE,
         "A recurrent layer or attention runs over the samples of a batch, or a view swaps axes.",
         axes),
    Rule("same-batch", "code", ("same-batch",), _SOURCE,
         "Every step sees the same batch of larger data.", same_batch),
    Rule("split-leak", "code", ("split-leak",), _SOURCE,
         "Rows of an evaluation are among those of training.", leaked_rows),
    Rule("target-in-inputs", "code", ("target-in-inputs",), _SOURCE,
         "A column of the inputs is the target.", leaked_target),
    Rule("wrong-reduction", "code", ("wrong-reduction",), _SOURCE,
         "A summed loss under a learning rate for a mean, or a sum beside a mean.", reductions),
    Rule("state-carried", "code", ("state-carried",), _SOURCE,
         "A state keeps the graphs of earlier batches.", carried),
    Rule("padding-counts", "code", ("padding-counts",), _SOURCE,
         "Padding counts in a loss over sequences.", padding),
    Rule("metric-wrong", "code", ("metric-wrong",), _SOURCE,
         "Logits are compared with one half, or classes are picked along the samples.", measured),
)  # fmt: skip
