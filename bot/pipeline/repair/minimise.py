"""Makes a patch 1-minimal: every edit that is left is needed for what the patch gains."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bot.models.repair import Patch
from bot.pipeline.repair.search import SEEDS
from bot.pipeline.repair.trials import Trials
from bot.rules import hyperparameters

_LOSS = 0.05
"""Of the gain: what a smaller patch may lose."""


def minimised(patch: Patch, trials: Trials) -> Patch:
    """The patch without the edits that it does not need, by delta debugging from halves to single
    edits, each try on the same seeds as the whole patch. Raises Stopped.
    """
    if len(patch) < 2:
        return patch
    least = _least(patch, trials)
    size = len(patch) // 2
    while size:
        smaller = next((x for x in _without(patch, size) if _holds(x, least, trials)), None)
        if smaller is None:
            size //= 2
        else:
            patch = smaller
            size = min(size, len(patch) // 2) or (1 if len(patch) > 1 else 0)
    return patch


def _without(patch: Patch, size: int) -> Iterator[Patch]:
    """The patch without each run of `size` edits, the last ones first: they came last."""
    for end in range(len(patch), 0, -size):
        kept = patch[: max(0, end - size)] + patch[end:]
        if kept:
            yield kept


def _least(patch: Patch, trials: Trials) -> float:
    whole, faulty = trials.score(patch, SEEDS), trials.score((), SEEDS)
    return whole - _LOSS * (whole - faulty) if math.isfinite(faulty) else whole - abs(whole) * _LOSS


def _holds(patch: Patch, least: float, trials: Trials) -> bool:
    """Whether a patch keeps the gain. One seed tells most that do not, and spares the others."""
    try:
        first = trials.score(patch, SEEDS[:1])
    except hyperparameters.NotApplicable:
        return False
    slack = abs(least) * 0.1
    return first >= least - slack and trials.score(patch, SEEDS) >= least
