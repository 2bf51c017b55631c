"""AutoTrainer's repair loop (Zhang et al., ICSE 2021) on the trials of a repair.

As in the original, a patch is accepted when the monitor reports nothing any more, whatever the
metric says. What differs: the original goes on from the weights that it has and stops a training
at its first symptom; here every training begins anew, ends, and is judged by its whole trace. A
program in whose trace nothing is seen (loops of PyTorch without epochs tell less) stays as it is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.autotrainer_actions import ACTIONS, PresentValues
from benchmarks.published_tools import autotrainer as monitor
from bot.kernel.training_types import Hyperparameter, Patch, TrainingTrace
from bot.program import hyperparameters
from bot.training.diagnosis.rule import trainings
from bot.training.repair import search
from bot.training.repair.metric import score
from bot.training.repair.search import SEEDS
from bot.training.repair.trials import TrialRequest, Trials

_ROUNDS = 10
_FAILED = "failed"


class _Tried(NamedTuple):
    """A patch with what the monitor says of it ("" nothing) and its metric, more is better."""

    patch: Patch
    symptom: str
    value: float


def autotrainer(trials: Trials, found: Sequence[Hyperparameter]) -> Patch:
    """The patch that it accepts, otherwise the one with the best metric that it tried."""
    probed, trials.runs.probed, trials.look = trials.runs.probed, True, symptom
    try:
        return _repaired(trials, found, random.Random(0))
    finally:
        trials.runs.probed, trials.look = probed, None


def symptom(trace: TrainingTrace) -> str:
    """What the monitor reports of a run, "" for nothing."""
    seen = (monitor.symptom(training) for training in trainings(trace))
    return next((str(one) for one in seen if one), "")


def _repaired(trials: Trials, found: Sequence[Hyperparameter], chance: random.Random) -> Patch:
    subject = trials.subject
    faulty = trials.score((), SEEDS[:1])
    now, seen = _Tried(Patch(), symptom(subject.trace), faulty), set[str]()
    for _ in range(_ROUNDS):
        if not now.symptom or now.symptom in seen:
            break
        seen.add(now.symptom)
        tried = []
        for each in _round(now, trials, found, chance):
            if not each.symptom:
                return each.patch
            tried.append(each)
        others = [x for x in tried if x.symptom not in (now.symptom, _FAILED)]
        now = max(others or [now, *tried], key=lambda one: one.value)
    return now.patch


def _round(
    now: _Tried, trials: Trials, found: Sequence[Hyperparameter], chance: random.Random
) -> Iterator[_Tried]:
    """The actions against a symptom, each beside what was changed before, while there is budget."""
    loss = next((x.loss for x in trainings(trials.subject.trace)), None)
    program = PresentValues(tuple(_with(one, now.patch) for one in found), loss, chance)
    tries = ((act, at) for key, row in ACTIONS.items() if key == now.symptom for act, at in row)
    for act, most in tries:
        for at in range(most):
            patch = search.merge_patches(now.patch, act(program, at))
            if trials.left_s > 0 and patch != now.patch:
                yield from _looked(patch, trials)


def _looked(patch: Patch, trials: Trials) -> Iterator[_Tried]:
    """The trial of a patch; none where it cannot be written. A probed run imports the framework
    anew, which the forks of the other arms do not, so that time is not counted.
    """
    subject = trials.subject
    task = TrialRequest(patch, SEEDS[0], subject.guide)
    plain = trials.run([TrialRequest((), SEEDS[0], subject.guide)])[0]
    before = len(trials.made)
    try:
        row = trials.run([task])[0]
    except hyperparameters.NotApplicable:
        return
    if len(trials.made) > before:
        trials.budget_s += min(row.seconds, max(0.0, subject.seconds - plain.seconds))
    told = trials.symptom(task) if row.value is not None else _FAILED
    yield _Tried(patch, told, score(row.value, subject.metric.direction))


def _with(one: Hyperparameter, patch: Patch) -> Hyperparameter:
    """A hyperparameter with the value that a patch gives it."""
    value = next((x.after for x in patch if x.parameter == one.id), one.value)
    return one.model_copy(update={"value": value})
