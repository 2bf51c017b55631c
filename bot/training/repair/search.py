"""Searches for a patch on the guide's part: what the diagnosis suggests, then steps beside the
best, until the budget is used up or there is nothing left to gain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from bot.kernel.training_types import Diagnosis, Hyperparameter, Patch
from bot.training.program import hyperparameters
from bot.training.repair import candidates
from bot.training.repair.metric import score
from bot.training.repair.trials import TrialRequest, Trials

SEEDS = (1001, 1002, 1003)
"""What patches are chosen with: the first for all, the others for the best."""
_FINALISTS = 3
_CEILING = 0.995  # of a share such as accuracy
_GAIN = 0.01  # of what was gained so far: what a further edit has to bring
_SUGGESTED = 3  # the likeliest finding, all likely ones, all; the others are steps beside the best
_PATIENCE = 10  # trials that bring nothing
_RESERVE = 0.3  # of the budget, to try the best with more seeds


@dataclass(slots=True)
class Search:
    """The state of a search: which patches were tried with the first seed, best first."""

    trials: Trials
    diagnosis: Diagnosis
    found: Sequence[Hyperparameter]
    tried: dict[Patch, float] = field(default_factory=dict)

    def best(self) -> Patch:
        """The patch that is best on the guide's part. Raises Stopped."""
        self._try(((),))
        self._try_each(candidates.from_diagnosis(self.diagnosis, self.found)[:_SUGGESTED])
        while self._open():
            steps = self._untried(candidates.moves(self._leader, self.found, self.diagnosis))
            leader = self._leader
            while self._open() and self._leader == leader and (some := self._next(steps)):
                self._try(some)
            if self._leader == leader:
                break
        return self._chosen()

    @property
    def _leader(self) -> Patch:
        """The best so far. Of those that are nearly as good the one with fewer edits leads."""
        faulty, top = self.tried[()], max(self.tried.values())
        if not math.isfinite(top) or top <= faulty:
            return ()
        margin = _GAIN * (top - faulty) if math.isfinite(faulty) else 0.0
        good = [patch for patch, value in self.tried.items() if value >= top - margin]
        return min(good, key=lambda patch: (len(patch), -self.tried[patch]))

    def _open(self) -> bool:
        """Whether there is budget left, and something to gain."""
        trials = self.trials
        has_time = trials.left_s > _RESERVE * trials.budget_s
        return has_time and self._idle() < _PATIENCE and not self._at_ceiling()

    def _at_ceiling(self) -> bool:
        """Whether the leader is as good as can be, with each seed: one may be luck."""
        leader = self._leader
        if not leader or not self._is_share or self.tried[leader] < _CEILING:
            return False
        self.tried[leader] = self.trials.score(leader, SEEDS)
        return self.tried[leader] >= _CEILING

    def _idle(self) -> int:
        """How many trials were made since the leader was found; 0 without one."""
        leader = self._leader
        return len(self.tried) - 1 - list(self.tried).index(leader) if leader else 0

    @property
    def _is_share(self) -> bool:
        metric = self.trials.subject.metric
        values = [value for value in self.tried.values() if math.isfinite(value)]
        return metric.direction == "max" and all(0 <= value <= 1 for value in values)

    def _try_each(self, patches: Sequence[Patch]) -> None:
        waiting = self._untried(patches)
        while self._open() and (some := self._next(waiting)):
            self._try(some)

    def _untried(self, patches: Sequence[Patch]) -> Iterator[Patch]:
        """Those that can be written and were not tried."""
        for patch in patches:
            if patch not in self.tried and self._applies(patch):
                yield patch

    def _applies(self, patch: Patch) -> bool:
        try:
            self.trials.subject.patched(patch)
        except hyperparameters.NotApplicable:
            return False
        return True

    def _next(self, waiting: Iterator[Patch]) -> tuple[Patch, ...]:
        return tuple(islice(waiting, max(1, self.trials.runs.jobs)))

    def _try(self, patches: Sequence[Patch]) -> None:
        subject = self.trials.subject
        rows = self.trials.run(TrialRequest(patch, SEEDS[0], subject.guide) for patch in patches)
        for patch, row in zip(patches, rows, strict=True):
            self.tried[patch] = score(row.value, subject.metric.direction)

    def _chosen(self) -> Patch:
        """Of the best few the one that is best over all seeds."""
        faulty = self.tried[()]
        leader = self._leader
        better = [x for x in self.tried if x and self.tried[x] > faulty and x != leader]
        finalists = [leader, *sorted(better, key=lambda x: -self.tried[x])][:_FINALISTS]
        if not leader or len(finalists) == 1:
            return leader
        means: dict[Patch, float] = {}
        for patch in finalists:
            if patch == leader or self.trials.left_s > 0:
                means[patch] = self.trials.score(patch, SEEDS)
        return max(means, key=lambda patch: means[patch])
