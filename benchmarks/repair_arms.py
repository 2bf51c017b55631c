"""Searches to hold a repair against, on its own trials and budget: the kinds of the source study's
tools, over all hyperparameters at once, each patch the best of one training, and AutoTrainer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.autotrainer_arm import autotrainer
from benchmarks.joint_search import OptunaSearch, Sampler
from bot.kernel.training_types import Hyperparameter, Patch
from bot.program import hyperparameters
from bot.program.text import parse_number
from bot.training.repair import search
from bot.training.repair.metric import score
from bot.training.repair.search import SEEDS
from bot.training.repair.trials import TrialRequest, Trials

Arm = Callable[[Trials, Sequence[Hyperparameter]], Patch]
_MOST = 400  # proposals, also of those that cannot be written
_WORST = -1e9
_ETA = 3  # Hyperband's: of so many patches one is trained in full, all with a part of the epochs


def _joint(sampler: Sampler, trials: Trials, found: Sequence[Hyperparameter]) -> Patch:
    """The best patch of one training each, until the budget is used up."""
    study, best = OptunaSearch(found, sampler), Patch()
    top = max(trials.score(best, SEEDS[:1]), _WORST)
    for _ in range(_MOST):
        if trials.left_s <= 0:
            break
        patch = study.ask()
        value = _value(trials, patch)
        study.tell(patch, value)
        if value is not None and value > top:
            best, top = patch, value
    return best


def _halving(trials: Trials, found: Sequence[Hyperparameter]) -> Patch:
    """Brackets of three proposals at a third of their epochs, the best of which is trained in full
    (successive halving). Without epochs that can be written, the sampler alone.
    """
    epochs = [one for one in found if one.kind == "epochs" and parse_number(one.value)]
    if not epochs:
        return _joint("tpe", trials, found)
    study, best = OptunaSearch(found, "tpe"), Patch()
    top = max(trials.score(best, SEEDS[:1]), _WORST)
    for _ in range(_MOST // _ETA):
        if trials.left_s <= 0:
            break
        rung = _rung(study, trials, epochs)
        leader = max(rung, key=lambda patch: rung[patch], default=None)
        for patch in (x for x in rung if x != leader):
            study.shortened(patch, rung[patch])
        if leader is None:
            continue
        value = _value(trials, leader)
        study.tell(leader, value)
        if value is not None and value > top:
            best, top = leader, value
    return best


def _rung(
    study: OptunaSearch, trials: Trials, epochs: Sequence[Hyperparameter]
) -> dict[Patch, float]:
    """Proposals with what they reach at a third of their epochs."""
    rung: dict[Patch, float] = {}
    for _ in range(_ETA):
        patch = study.ask()
        value = _value(trials, _short(patch, epochs)) if trials.left_s > 0 else None
        if value is None:
            study.tell(patch, None)
        else:
            rung[patch] = value
    return rung


def _short(patch: Patch, epochs: Sequence[Hyperparameter]) -> Patch:
    asked = {edit.parameter: edit.after for edit in patch}
    counts = [(one, parse_number(asked.get(one.id, one.value)) or 1.0) for one in epochs]
    fewer = (search.edit(one, str(math.ceil(count / _ETA))) for one, count in counts)
    return search.merge_patches(patch, tuple(fewer))


def _value(trials: Trials, patch: Patch) -> float | None:
    """The metric of one training, more is better; None for a patch that cannot be written."""
    try:
        row = trials.run([TrialRequest(patch, SEEDS[0], trials.subject.guide)])[0]
    except hyperparameters.NotApplicable:
        return None
    return max(score(row.value, trials.subject.metric.direction), _WORST)


ARMS: dict[str, Arm] = {
    "random": partial(_joint, "random"),
    "tpe": partial(_joint, "tpe"),
    "bohb": _halving,
    "hebo": partial(_joint, "gp"),
    "autotrainer": autotrainer,
}  # fmt: skip
"""The baselines by name: random search, and the kinds of BOHB (with and without successive
halving) and of HEBO, and AutoTrainer's loop.
"""
