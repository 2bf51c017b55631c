"""Faults of what a loss compares: shapes, class weights, samples with themselves, signs, and values
of what comes after the end of an episode.
"""

import math
from statistics import fmean

from bot.training.diagnosis.code_loop import code_sign
from bot.training.diagnosis.loss_contract import copies
from bot.training.diagnosis.rule import Rule, Signs, Training, evidence, in_line, number
from bot.training.diagnosis.schedule import breaks_at_once

_LEAST_STEPS, _TENTH = 20, 10
_LEAST_LOOKS, _LEAST_UPDATES = 3, 1000
_RARE, _SHRUNK = 0.35, 0.5
_NEVER_NEGATIVE = frozenset(("mse", "mae", "bce", "bce_logits", "huber", "smooth_l1"))


def broadcast(training: Training) -> Signs:
    """A vector that meets a column in a loss: each value of one meets all of the other."""
    code = training.code
    shapes = code.facts.get("outer_shapes") if code else None
    if code is None or not isinstance(shapes, str) or training.learning.well:
        return
    line = code.integer("outer_line")
    text = (
        f"On the way to the loss{in_line(line)} tensors of {shapes} are broadcast: each value of"
        " one meets all values of the other, not the one of its own sample."
    )
    words = f"Give both the same shape, for example with `squeeze(-1)`{in_line(line)}."
    yield code_sign(
        training, "broadcast-loss", 0.9, text, words, line=line, always=True,
        measurements=(evidence("shapes", shapes),),
    )  # fmt: skip


def swapped_weights(training: Training) -> Signs:
    """Class weights that make what is rare rarer."""
    loss = training.loss
    weights = loss.settings.get("weights") if loss else None
    if loss is None or not isinstance(weights, tuple):
        return
    shares = loss.class_shares
    if loss.name == "bce_logits" and len(weights) == 1 and len(shares) == 2:
        weights = (1.0, weights[0])
    pairs = [(s, w) for s, w in zip(shares, weights, strict=False) if s > 0 and w > 0]
    if len(pairs) < 2 or len(shares) > len(weights):
        return
    (rare, low), (common, high) = min(pairs), max(pairs)
    whole = sum(share * weight for share, weight in pairs) / sum(share for share, _ in pairs)
    if rare > _RARE or rare * 2 > common or high <= low or low > _SHRUNK * whole:
        return
    text = (
        f"The class with {rare:.1%} of the targets has the weight {number(low)}, that with"
        f" {common:.0%} has {number(high)}: `{loss.name}`{in_line(loss.line)} makes the rare class"
        " rarer still."
    )
    words = f"Swap the weights: the rarer a class, the larger its weight{in_line(loss.line)}."
    yield code_sign(
        training, "weights-swapped", 0.9, text, words, line=loss.line, always=True,
        measurements=(evidence("share and weight", f"{rare:.1%}: {number(low)}"),),
    )  # fmt: skip


def self_compared(training: Training) -> Signs:
    """Scores of a batch against itself in which every sample finds itself first."""
    loss = training.loss
    if loss is None or not loss.settings.get("self_compared"):
        return
    rows = loss.predictions.shape[0]
    text = (
        f"`{loss.name}`{in_line(loss.line)} compares {rows} samples with each other and with"
        " themselves: the score of a sample with itself is always the largest, and never the"
        " target."
    )
    words = (
        f"Exclude it: `logits.fill_diagonal_(float('-inf'))` before the loss{in_line(loss.line)}."
    )
    yield code_sign(training, "self-compared", 0.92, text, words, line=loss.line, always=True)


def negative_divergence(training: Training) -> Signs:
    """What is added to the error of a model that reconstructs noisy codes falls below zero: no
    divergence does.
    """
    loss, code = training.loss, training.code
    if loss is None or code is None or loss.name not in _NEVER_NEGATIVE or not copies(training):
        return
    names = {x.name for x in code.mentions}
    losses = [x.loss for x in training.steps if x.loss is not None]
    if not names & {"randn_like", "rsample"} or len(losses) < _LEAST_STEPS:
        return
    last = fmean(losses[-max(1, len(losses) // _TENTH) :])
    if last >= 0 or min(losses[: len(losses) // _TENTH]) <= last:
        return
    line = code.integer("loss_line")
    text = (
        f"The loss falls to {number(last)}, although `{loss.name}` is never negative: what is added"
        f" to it{in_line(line)} has no lower bound, and a divergence is never below zero."
    )
    words = (
        "Check its signs: `-0.5 * (1 + logvar - mu**2 - logvar.exp())`, summed over the code"
        f"{in_line(line)}."
    )
    yield code_sign(
        training, "divergence-negative", 0.88, text, words, line=line, always=True,
        measurements=(evidence("loss at the end", last, "0 or more"),),
    )  # fmt: skip


def ignored_ends(training: Training) -> Signs:
    """Values of actions that count what follows the end of an episode."""
    code = training.code
    line = code.integer("unused_ends") if code else 0
    if code is None or not line or not code.facts.get("picked_values"):
        return
    text = (
        f"Line {line} reads which steps end an episode, and nothing uses it: the target counts"
        " values of states after the end."
    )
    words = "Multiply the value of the next state by `1 - done`."
    yield code_sign(training, "terminal-ignored", 0.85, text, words, line=line, always=True)


def stale_target(training: Training) -> Signs:
    """Values of actions whose targets come from a network of the same form that never changes."""
    code = training.code
    if code is None or not code.facts.get("picked_values"):
        return
    looks = code.integer("twin_looks")
    if looks < _LEAST_LOOKS or training.updates < _LEAST_UPDATES:
        return
    loads = {x.line for x in code.sites("load")}
    unused = [x.line for x in code.mentions if x.name == "load_state_dict" and x.line not in loads]
    line = next(iter(unused), code.site("load").line)
    text = (
        f"The network that gives the targets never changes in {training.updates} steps: it is a"
        " copy of the one that learns, from before it had learned anything."
    )
    words = "Copy the weights into it again every few hundred steps, and check that this happens."
    yield code_sign(
        training, "target-stale", 0.9, text, words, line=line, always=True,
        measurements=(evidence("steps at which it was looked at", looks),),
    )  # fmt: skip


def singular_gradient(training: Training) -> Signs:
    """Gradients that are no numbers although the loss is one, where a root is taken of what may be
    zero: its slope has no bound there.
    """
    code, learning = training.code, training.learning
    if code is None or not learning.broken:
        return
    at_once = not learning.points or breaks_at_once(learning)
    is_seen = any(
        step.loss is not None and math.isfinite(step.loss)
        and any(row.norm is not None and math.isnan(row.norm) for row in step.weights)
        for step in training.steps
    )  # fmt: skip
    low = code.facts.get("root_low")
    is_zero = isinstance(low, int | float) and low <= 0
    sure = is_zero or is_seen
    line = code.integer("roots")
    if not (sure or (at_once and line)):
        return
    where = f"a root or norm{in_line(line)}" if line else "a root, a norm or a quotient"
    text = (
        f"The loss became NaN at once, by a gradient that was NaN while the loss was still finite: "
        f"{where} meets a zero, where its slope is unbounded."
    )
    words = f"Add a small constant under the root{in_line(line)}: `sqrt(x + 1e-8)`."
    measurements = (evidence("smallest root", "0", "above 0"),) if is_zero else ()
    yield code_sign(
        training, "gradient-singular", 0.93 if sure else 0.7, text, words, line=line,
        measurements=measurements,
    )  # fmt: skip


_SOURCE = "public questions"
RULES: tuple[Rule, ...] = (
    Rule("broadcast-loss", "code", ("broadcast-loss",), _SOURCE,
         "A vector that meets a column on the way to the loss.", broadcast),
    Rule("weights-swapped", "code", ("weights-swapped",), _SOURCE,
         "Class weights that are smaller for rarer classes.", swapped_weights),
    Rule("self-compared", "code", ("self-compared",), _SOURCE,
         "A contrastive loss in which each sample is compared with itself.", self_compared),
    Rule("divergence-negative", "code", ("divergence-negative",), _SOURCE,
         "A term beside the error of an autoencoder that falls below zero.", negative_divergence),
    Rule("terminal-ignored", "code", ("terminal-ignored",), _SOURCE,
         "Targets of action values that ignore the ends of episodes.", ignored_ends),
    Rule("target-stale", "code", ("target-stale",), _SOURCE,
         "Targets of action values from a network that never changes.", stale_target),
    Rule("gradient-singular", "code", ("gradient-singular",), _SOURCE,
         "A root of zero, whose gradient is not finite.", singular_gradient),
)  # fmt: skip
