"""Searches over all hyperparameters of a program at once, by Optuna, to hold repairs against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import optuna

from bot.kernel.training_types import Hyperparameter, Patch
from bot.training.repair import search

Sampler = Literal["tpe", "random", "gp"]
_SAMPLERS: dict[Sampler, Callable[[], optuna.samplers.BaseSampler]] = {
    "random": lambda: optuna.samplers.RandomSampler(seed=0),
    "tpe": lambda: optuna.samplers.TPESampler(seed=0, n_startup_trials=4, multivariate=True),
    "gp": lambda: optuna.samplers.GPSampler(seed=0, n_startup_trials=4),
}
_LOG = {"learning_rate", "epochs", "batch_size", "units", "kernel_size"}
_WHOLE = {"epochs", "batch_size", "units", "kernel_size"}
_OWN = 3.0  # times the program's own epochs: what the source study draws from


class OptunaSearch:
    """A study of one program. `tpe` is the sampler of BOHB's kind, `gp` of HEBO's (needs torch)."""

    def __init__(self, hyperparameters: Sequence[Hyperparameter], sampler: Sampler = "tpe") -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._found = hyperparameters
        self._study = optuna.create_study(sampler=_SAMPLERS[sampler](), direction="maximize")
        self._asked: dict[Patch, optuna.Trial] = {}

    def ask(self) -> Patch:
        """A patch to try next."""
        trial = self._study.ask()
        values = ((one, _drawn(trial, one)) for one in self._found)
        patch = tuple(search.edit(one, value) for one, value in values if value != one.value)
        self._asked[patch] = trial
        return patch

    def tell(self, patch: Patch, value: float | None) -> None:
        """What came of a patch that was asked for, more is better; None when it failed."""
        trial = self._asked.pop(patch)
        if value is None:
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, value)

    def shortened(self, patch: Patch, value: float) -> None:
        """What came of a patch that was tried with less training only: worse than any other."""
        trial = self._asked.pop(patch)
        trial.report(value, step=1)
        self._study.tell(trial, state=optuna.trial.TrialState.PRUNED)


def _drawn(trial: optuna.Trial, one: Hyperparameter) -> str:
    """A value within the bounds, or of the choices and the present one."""
    if one.choices:
        choices = tuple(dict.fromkeys((one.value, *one.choices)))
        return str(trial.suggest_categorical(one.id, choices))
    low, high = one.low or 0.0, one.high if one.high is not None else 1.0
    if one.kind in _WHOLE:
        return str(trial.suggest_int(one.id, max(1, int(low)), _most(one, high), log=True))
    number = trial.suggest_float(one.id, low, high, log=one.kind in _LOG and low > 0)
    return f"{number:.4g}"


def _most(one: Hyperparameter, high: float) -> int:
    try:
        own = float(one.value)
    except ValueError:
        own = 32.0
    return int(min(high, max(4.0, _OWN * own)))
