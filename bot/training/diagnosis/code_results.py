"""Faults of what a program computes for nothing: results that nothing reads, random numbers that
begin anew, batches that no step sees, averages that forget, and values that an operation lacks.
"""

import math
from dataclasses import replace

from bot.kernel.training_code import ProgramCode
from bot.training.diagnosis.code_loop import code_sign
from bot.training.diagnosis.rates import BANDS
from bot.training.diagnosis.rule import (
    Rule,
    Sign,
    Signs,
    Training,
    evidence,
    in_line,
    label,
    number,
)
from bot.training.diagnosis.schedule import begins_broken, breaks_at_once

_LEAST_REPEATS, _HALF = 20, 0.5
_LEAST_PASSES, _LEAST_BATCHES, _FEW = 3, 5, 0.2
_ENDS = 4  # facts of each loop that is left
_FORGETS, _FORGETS_ALL = 0.2, 0.02
_WORSE = 1.1
_CALLED = {"log": "a logarithm of zero", "log2": "a logarithm of zero",
           "log10": "a logarithm of zero", "div": "a division by zero"}  # fmt: skip


def _lines(code: ProgramCode, name: str) -> list[int]:
    value = code.facts.get(name)
    rows = value if isinstance(value, tuple) else ()
    return [int(x) for x in rows if isinstance(x, int | float) and math.isfinite(x)]


def lost_results(training: Training) -> Signs:
    """Results that are computed and never read: dropped where they arise, replaced before anything
    reads them, or unpacked under a name that nothing uses.
    """
    code = training.code
    if code is None:
        return
    line, name = code.integer("dropped_line"), code.facts.get("dropped_call")
    if line and isinstance(name, str):
        text = (
            f"Line {line} calls `{name}` and drops what it returns: the call changes nothing of"
            " what it is given."
        )
        words = f"Give its result a name that the next lines use, in line {line}."
        is_layer = name.startswith("self.") or name[:1].isupper()
        yield code_sign(
            training, "result-lost", 0.88, text, words, line=line, always=is_layer
        )  # what a layer that regularizes was for, no loss of the training shows
    line, name = code.integer("dead_line"), code.facts.get("dead_name")
    if line and isinstance(name, str):
        by = code.integer("dead_by")
        how = f"line {by} replaces it before anything reads it" if by else "nothing reads it"
        text = f"Line {line} computes `{name}`, and {how}: what went into it has no effect."
        words = f"Use the value of line {line}" + (f", or leave out line {by}." if by else ".")
        yield code_sign(training, "result-lost", 0.86, text, words, line=by or line, always=True)
    for line in _lines(code, "lost_state")[:1]:
        if training.model.framework != "jax":
            break
        text = (
            f"The running averages of batch normalization that a step returns{in_line(line)} are"
            " thrown away: evaluations use those that training began with."
        )
        words = "Put them into the state: `state.apply_gradients(…).replace(batch_stats=…)`."
        sign = code_sign(training, "result-lost", 0.9, text, words, line=line, always=True)
        yield replace(sign, also=("update-lost",))


def repeated_seed(training: Training) -> Signs:
    """A seed that is set again and again while the program trains."""
    code = training.code
    again = code.integer("seeded_again") if code else 0
    if code is not None:
        yield from _one_key(training, code)
    if code is None or again < max(_LEAST_REPEATS, _HALF * training.updates):
        return
    line = code.integer("seed_line")
    text = (
        f"Line {line} begins the random numbers anew, with the same seed each of {again + 1} times:"
        " what is drawn after it is the same each time."
    )
    words = f"Set the seed once, before training, and not in line {line}."
    sign = code_sign(
        training, "seed-repeated", 0.9, text, words, line=line, always=True,
        measurements=(evidence("times that the seed was set", again + 1, 1),),
    )  # fmt: skip
    yield replace(sign, also=("same-batch",))


def _one_key(training: Training, code: ProgramCode) -> Signs:
    """A compiled step that draws by one random key each time."""
    inside, looks = code.integer("key_inside"), code.integer("same_key_looks")
    line = inside or code.integer("key_line")
    if not (inside or looks):
        return
    how = f"makes its random key from a fixed number{in_line(line)}"
    if not inside:
        how = (
            f"gets the same random key at each of {looks} steps that were looked at{in_line(line)}"
        )
    text = f"The training step {how}: what it draws, as by dropout, is the same each time."
    words = "Split the key in each step: `key, subkey = jax.random.split(key)`."
    sign = code_sign(training, "seed-repeated", 0.88, text, words, line=line, always=True)
    yield replace(sign, also=("same-batch",))


def unused_batches(training: Training) -> Signs:
    """A loop over batches that is left after the first ones."""
    code = training.code
    loops = code.site("backward").loops if code else ()
    if code is None:
        return
    yield from _judged_by_one(training, code)
    if not loops:
        return
    inner = int(loops[-1].rpartition(":")[2])
    ends = {line: (end, plain) for line, end, plain, _ in _loop_ends(code)}
    end, plain = ends.get(inner, (0, 0))
    passes, steps, length = (code.integer(f"loader_{x}") for x in ("begun", "steps", "length"))
    per_pass = steps / passes if passes else 0.0
    is_left = passes >= _LEAST_PASSES and length >= _LEAST_BATCHES and per_pass <= _FEW * length
    if not end or not (plain or is_left):
        return
    share = f"{number(max(per_pass, 1))} of {length}" if length else "the first"
    text = (
        f"Line {end} leaves the loop over the batches{in_line(inner)}: each pass trains on {share}"
        " of them, and the rest of the data is never used."
    )
    words = f"Leave line {end} out, or move it behind the loop."
    yield code_sign(
        training, "batches-unused", 0.93, text, words, line=end, always=True,
        measurements=(evidence("batches in a pass", share),) if length else (),
    )  # fmt: skip


def _judged_by_one(training: Training, code: ProgramCode) -> Signs:
    """A sum over batches, beside those of training, that is returned in its first turn."""
    around = {name.rpartition(":")[2] for site in code.calls for name in site.loops}
    for line, end, plain, sums in _loop_ends(code):
        if not plain or not sums or str(line) in around:
            continue
        text = (
            f"Line {end} leaves the loop{in_line(line)} in its first turn: what is added up there"
            " is that of the first batch alone."
        )
        words = f"Move line {end} behind the loop."
        yield code_sign(training, "metric-wrong", 0.85, text, words, line=end, always=True)
        return


def _loop_ends(code: ProgramCode) -> list[tuple[int, ...]]:
    rows = _lines(code, "loop_ends")
    return [tuple(rows[at : at + _ENDS]) for at in range(0, len(rows) - _ENDS + 1, _ENDS)]


def short_averages(training: Training) -> Signs:
    """Averages of batch normalization that hold hardly more than the last batch. Keras and PyTorch
    count momentum from opposite ends.
    """
    if training.learning.broken:
        return
    last = training.epochs[-1].values if training.epochs else {}
    loss, other = last.get("loss"), last.get("val_loss")
    is_worse = loss is not None and other is not None and other > _WORSE * loss
    for layer in training.layers:
        value = layer.settings.get("momentum") if "BatchNorm" in layer.type else None
        if not isinstance(value, float) or layer.settings.get("track_running_stats") is False:
            continue
        share = value if training.model.framework == "keras" else 1 - value
        if share > _FORGETS or not (is_worse or share <= _FORGETS_ALL):
            continue
        usual = 0.9 if training.model.framework == "keras" else 0.1
        text = (
            f"{label(layer).capitalize()} has `momentum={number(value)}`, so its running averages"
            f" hold {share:.0%} of what was before each batch: evaluations use little more than the"
            " statistics of the last batch."
        )
        words = f"Use `momentum={usual}`: {training.model.framework} counts it this way."
        yield code_sign(
            training, "averages-short", 0.85 if is_worse else 0.6, text, words,
            line=training.model.line, always=is_worse,
            measurements=(evidence("share that is kept", share, "about 0.9"),),
        )  # fmt: skip
        return


def undefined_values(training: Training) -> Signs:
    """A loss that became NaN or infinite by an operation that has no value there, not by steps that
    are too large.
    """
    code = training.code
    if code is None or not training.learning.broken:
        return
    kind = code.facts.get("broken_by")
    if isinstance(kind, str) and kind in _CALLED:
        line = next(iter(_lines(code, "quotients" if kind == "div" else "logs")), 0)
        text = f"The loss has no value because of {_CALLED[kind]} on the way to it{in_line(line)}."
        yield _undefined(training, 0.93, text, line, kind)
    elif _steps_break(training):
        line = next(iter(_lines(code, "quotients")), 0)
        name = training.optimizer.name if training.optimizer else "optimizer"
        text = (
            f"A step of `{name}` makes weights NaN although the loss and the gradients are finite:"
            f" it divides by zero{in_line(line)}, as where a gradient is zero."
        )
        yield _undefined(training, 0.92, text, line, "div")
    elif training.model.framework != "torch" and _lines(code, "logs"):
        line = _lines(code, "logs")[0]
        if begins_broken(training) or breaks_at_once(training.learning):
            text = (
                "The loss became NaN or infinite at once: line"
                f" {line} takes the logarithm of what may be zero."
            )
            yield _undefined(training, 0.85, text, line, "log")


def _undefined(training: Training, confidence: float, text: str, line: int, kind: str) -> Sign:
    words = "Add a small constant to the divisor" if kind == "div" else "Bound it from below"
    example = "`x / (y + 1e-8)`" if kind == "div" else "`log(x.clip(1e-7, 1))`"
    sign = code_sign(
        training, "value-undefined", confidence, text, f"{words}{in_line(line)}: {example}.",
        line=line, always=True,
    )  # fmt: skip
    return replace(sign, also=("gradient-singular",))


def _steps_break(training: Training) -> bool:
    """Whether a step of the program's own optimizer is the first thing that has no value."""
    optimizer = training.optimizer
    if optimizer is None or optimizer.name in BANDS:
        return False
    for step in training.steps:
        if step.loss is not None and not math.isfinite(step.loss):
            return False
        norms = [row.norm for row in step.weights if row.norm is not None]
        ratios = [row.update_ratio for row in step.weights if row.update_ratio is not None]
        if any(map(math.isnan, ratios)):
            return all(map(math.isfinite, norms))
    return False


def inverted_direction(training: Training) -> Signs:
    """What stops, saves or slows a training takes worse values for better ones."""
    code = training.code
    name, by = (code.facts.get(x) if code else None for x in ("watched", "watched_by"))
    if code is None or not isinstance(name, str) or not isinstance(by, str):
        return
    line, mode = code.integer("watched_line"), code.facts.get("watched_as")
    other = "max" if mode == "min" else "min"
    text = (
        f"`{by}`{in_line(line)} watches `{name}` in the mode `{mode}`: it takes worse values for"
        " better ones."
    )
    words = f"Pass `mode='{other}'` to `{by}`{in_line(line)}."
    yield code_sign(training, "direction-inverted", 0.92, text, words, line=line, always=True)


_SOURCE = "public questions"
RULES: tuple[Rule, ...] = (
    Rule("result-lost", "code", ("result-lost", "update-lost"), _SOURCE,
         "A result that is computed and that nothing reads.", lost_results),
    Rule("seed-repeated", "code", ("seed-repeated", "same-batch"), _SOURCE,
         "A seed that is set again and again during training.", repeated_seed),
    Rule("batches-unused", "code", ("batches-unused", "metric-wrong"), _SOURCE,
         "A loop over batches that is left after the first ones.", unused_batches),
    Rule("direction-inverted", "code", ("direction-inverted",), _SOURCE,
         "A callback or scheduler that watches a value in the wrong direction.",
         inverted_direction),
    Rule("averages-short", "code", ("averages-short",), _SOURCE,
         "Averages of batch normalization that hold hardly more than the last batch.",
         short_averages),
    Rule("value-undefined", "code", ("value-undefined", "gradient-singular"), _SOURCE,
         "A logarithm of zero or a division by zero, in the loss, the model or the optimizer.",
         undefined_values),
)  # fmt: skip
