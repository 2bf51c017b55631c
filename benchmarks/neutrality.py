"""Other ground truths of a faulty program: configurations that learn as well as the key's repair.

A breadth-first search from the faulty program over neighbours that differ in one hyperparameter,
as in the source study. What differs: all trainings are paired by seeds, a neighbour that is clearly
worse is dropped after three of them, "as good" is a one-sided test of non-inferiority instead of a
comparison of means, of each hyperparameter only the best value is gone on from, and what has all
codes of a truth and more is not tried.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from statistics import fmean, stdev

from bot.kernel.training_types import Hyperparameter, HyperparameterKind, Patch
from bot.program import hyperparameters
from bot.program.text import canonical_number, parse_number, same
from bot.training.repair import search
from bot.training.repair.metric import score
from bot.training.repair.trials import TrialRequest, Trials

SEEDS = tuple(range(4001, 4007))
_STAGES = (1, 3, len(SEEDS))
"""Trainings after which a neighbour is looked at: the first tells most that fail."""
_STUDENT = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015}
"""The 95 % quantiles of Student's t by degrees of freedom."""
_BEST = 5
_GRIDS: Mapping[HyperparameterKind, tuple[str, ...]] = {
    "learning_rate": ("0.001", "0.01", "0.1", "0.0001", "1e-05", "1"),
    "batch_size": ("32", "16", "64", "128", "256", "512"),
    "momentum": ("0.9", "0.5", "none"),
    "weight_decay": ("none", "0.0001", "0.01"),
    "clipping": ("1", "none"),
    "dropout": ("0", "0.2", "0.5"),
}
_FACTORS: Mapping[HyperparameterKind, tuple[float, ...]] = {
    "epochs": (2.86, 1.69, 0.59, 0.35),  # 1.3 to the powers of 4, 2, -2 and -4
    "units": (2, 0.5),
}


@dataclass(slots=True)
class NeutralSearch:
    """The search within the budget of its trials. `truth` is the score of the key's repair, more is
    better; `margin` is how much less is as good. `known` are the codes of truths, first the key's;
    `truths` has what was found, with its scores.
    """

    trials: Trials
    found: Sequence[Hyperparameter]
    truth: float
    margin: float
    known: list[frozenset[str]]
    truths: dict[Patch, tuple[float, ...]] = field(default_factory=dict)
    visited: set[frozenset[tuple[str, str]]] = field(default_factory=lambda: {frozenset()})
    exhausted: bool = False

    def run(self) -> None:
        """Search until the budget is used up or nothing is left. Raises Stopped."""
        queue = deque[Patch]([()])
        while queue and self.trials.left_s > 0:
            queue.extend(self._next(queue.popleft()))
        self.exhausted = not queue and self.trials.left_s > 0

    def _next(self, parent: Patch) -> list[Patch]:
        """The best neighbours that are as good as their parent, and no truths yet."""
        good: dict[str, tuple[float, Patch]] = {}
        for changed, patch in neighbours(parent, self.found):
            scores = self._raced(patch, parent) if self._is_new(patch) else ()
            if scores and _bound([x - self.truth for x in scores], -1) >= -self.margin:
                self.truths[patch] = scores
                self.known.append(frozenset(codes(patch, self.found)))
            elif scores and (changed not in good or fmean(scores) > good[changed][0]):
                good[changed] = (fmean(scores), patch)
        ordered = sorted(good.values(), key=lambda each: -each[0])
        return [patch for _, patch in ordered[:_BEST]]

    def _is_new(self, patch: Patch) -> bool:
        """Whether a configuration is still to be tried."""
        key = frozenset((edit.parameter, edit.after) for edit in patch)
        own = frozenset(codes(patch, self.found))
        if self.trials.left_s <= 0 or key in self.visited or any(x < own for x in self.known):
            return False
        self.visited.add(key)
        return True

    def _raced(self, patch: Patch, parent: Patch) -> tuple[float, ...]:
        """The scores of a neighbour that is as good as its parent; none of a worse one."""
        scores: tuple[float, ...] = ()
        for count in _STAGES:
            try:
                scores = scores_of(patch, self.trials, count)
            except hyperparameters.NotApplicable:
                return ()
            gains = _gains(scores_of(parent, self.trials, count), scores)
            if not all(map(math.isfinite, scores)) or _bound(gains, 1) < -self.margin:
                return ()
        return scores if _bound(gains, -1) >= -self.margin else ()


def scores_of(patch: Patch, trials: Trials, count: int = len(SEEDS)) -> tuple[float, ...]:
    """The metric over the first seeds, on all rows, more is better."""
    rows = trials.run([TrialRequest(patch, seed, "whole") for seed in SEEDS[:count]])
    return tuple(score(row.value, trials.subject.metric.direction) for row in rows)


def _gains(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """Of the pairs in which the parent did not fail: what fails is worse than anything."""
    pairs = zip(before, after, strict=True)
    return [new - old for old, new in pairs if math.isfinite(old)]


def _bound(gains: Sequence[float], side: int) -> float:
    """The lower (-1) or upper (1) 95 % bound of a mean; what the parent failed at is all gain."""
    if len(gains) < 2:
        return math.inf
    spread = _STUDENT[len(gains) - 1] * stdev(gains) / math.sqrt(len(gains))
    return fmean(gains) + side * spread


def neighbours(parent: Patch, found: Sequence[Hyperparameter]) -> Iterator[tuple[str, Patch]]:
    """The configurations that differ from one in the named hyperparameter alone, also back in what
    it changed: the first other value of each, then the second of each, and so on.
    """
    now = {edit.parameter: edit.after for edit in parent}
    rows = [
        [(one, x) for x in _values(one) if not same(x, now.get(one.id, one.value))] for one in found
    ]
    for turn in zip_longest(*rows):
        for one, value in filter(None, turn):
            yield one.id, search.merge_patches(parent, (search.edit(one, value),))


def _values(one: Hyperparameter) -> tuple[str, ...]:
    """What a hyperparameter can be given, its own value last."""
    number = parse_number(one.value)
    factors = _FACTORS.get(one.kind, ()) if number is not None else ()
    scaled = tuple(canonical_number(max(1, round((number or 0) * factor))) for factor in factors)
    grid = (x for x in (*_GRIDS.get(one.kind, ()), *scaled) if _fits(one, x))
    return tuple(dict.fromkeys((*one.choices, *grid, one.value)))


def _fits(one: Hyperparameter, value: str) -> bool:
    return value == "none" or hyperparameters.writable(one, value)


def codes(patch: Patch, found: Sequence[Hyperparameter]) -> tuple[str, ...]:
    """The fault codes that a patch repairs, with layers, as keys name them."""
    layers = {one.id: one.layer for one in found}
    named = {(edit.operator, layers[edit.parameter]) for edit in patch}
    return tuple(sorted(x if layer is None else f"{x}({layer})" for x, layer in named))
