"""Faults of sequences: places that see what they are to predict, masks that hide what is there, and
places that nothing tells apart.
"""

import math

from bot.kernel.training_code import ProgramCode
from bot.training.diagnosis.code_loop import code_sign
from bot.training.diagnosis.rule import Rule, Signs, Training, evidence, in_line

_SHIFTED, _LEAST_LOOKS, _HALF = 0.9, 3, 0.5
_RECURRENT = ("LSTM", "GRU", "RNN")


def future_leak(training: Training) -> Signs:
    """Each target is the token that follows, and the model sees it: attention without a mask, or a
    recurrent layer that also reads backwards.
    """
    code = training.code
    shifted = code.facts.get("shifted_targets") if code else None
    if code is None or not isinstance(shifted, int | float) or shifted < _SHIFTED:
        return
    both_ways = any(
        x.settings.get("bidirectional") is True for x in training.layers if x.type in _RECURRENT
    )
    if both_ways:
        line = next((x.line for x in code.mentions if x.name in _RECURRENT), 0)
        what, words = "a recurrent layer reads them backwards too", "Read forwards only"
        words += f": `bidirectional=False`{in_line(line)}."
    elif code.integer("attention_open") >= _LEAST_LOOKS and not code.integer("attention_closed"):
        line = code.integer("attention_line_open")
        what = f"attention{in_line(line)} has no causal mask"
        words = f"Pass a causal mask{in_line(line)}."
    else:
        return
    text = (
        f"Each target is the next token of the inputs, and {what}: the model reads the answer"
        " instead of predicting it."
    )
    yield code_sign(
        training, "future-leak", 0.93, text, words, line=line, always=True,
        measurements=(evidence("batches whose targets follow in the inputs", f"{shifted:.0%}"),),
    )  # fmt: skip


def mask_inverted(training: Training) -> Signs:
    """A mask of padding that hides the tokens and shows the padding."""
    code = training.code
    inverted, looks = (
        (code.integer("attention_inverted"), _looks(code)) if code is not None else (0, 0)
    )
    if code is None or inverted < _LEAST_LOOKS or inverted < _HALF * looks:
        return
    line = code.integer("attention_line_inverted")
    text = (
        f"The padding mask{in_line(line)} is inverted: it hides the tokens and shows the padding"
        " (true means hidden)."
    )
    words = f"Pass `tokens == padding` as `key_padding_mask`{in_line(line)}."
    yield code_sign(
        training, "mask-inverted", 0.95, text, words, line=line, always=True,
        measurements=(evidence("calls with an inverted mask", f"{inverted} of {looks}"),),
    )  # fmt: skip


def _looks(code: ProgramCode) -> int:
    return code.integer("attention_open") + code.integer("attention_closed")


def positions_missing(training: Training) -> Signs:
    """Attention over embeddings to which no position was added, in a run that learned little."""
    code, loss, data = training.code, training.loss, training.data
    if code is None or code.integer("attention_placeless") < _LEAST_LOOKS:
        return
    if not training.learning.poor or loss is None or data is None:
        return
    if math.prod(loss.targets.shape) != math.prod(data.inputs.shape):
        return  # one answer for all tokens may need no order
    line = code.integer("attention_line_placeless")
    text = (
        f"Attention{in_line(line)} reads embeddings to which no position was added: it cannot tell"
        " in which order the tokens stand."
    )
    words = f"Add a positional embedding to its inputs{in_line(line)}."
    yield code_sign(training, "positions-missing", 0.85, text, words, line=line)


_SOURCE = "public questions"
RULES: tuple[Rule, ...] = (
    Rule("future-leak", "code", ("future-leak",), _SOURCE,
         "A model sees the token that it has to predict.", future_leak),
    Rule("mask-inverted", "code", ("mask-inverted",), _SOURCE,
         "A padding mask hides tokens instead of padding.", mask_inverted),
    Rule("positions-missing", "code", ("positions-missing",), _SOURCE,
         "Attention over embeddings without positions.", positions_missing),
)  # fmt: skip
