"""Trials of mutants against their original, with the same seeds, as few as decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from benchmarks.mutants.family import Family
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.operators.training import neighbours
from benchmarks.mutants.significance import Outcome, finite, outcome
from benchmarks.mutants.trainer import Trainer

FIRST_SEED = 101
_AT_ONCE = 3


@dataclass(frozen=True)
class Trial:
    """What the runs of a mutant and of its original gave; "failed" when the program crashed."""

    mutant: Mutant
    outcome: Outcome | str
    faulty: tuple[float, ...] = ()
    original: tuple[float, ...] = ()
    seconds: float = 0.0
    alternatives: tuple[tuple[str, ...], ...] = ()


def healthy(family: Family, trainer: Trainer, seeds: int = _AT_ONCE) -> tuple[float, ...]:
    """The original's metric over the seeds. Raises ValueError when it does not learn well."""
    values = original(family, trainer, seeds)
    if len(values) < seeds or not _good(family, values):
        said = trainer.run(family, family.source, FIRST_SEED).output[-500:]
        raise ValueError(f"{family.name} does not learn well: {values} {said}")
    return values


def original(family: Family, trainer: Trainer, seeds: int) -> tuple[float, ...]:
    """The original's metric over the seeds, without runs that failed."""
    runs = [trainer.run(family, family.source, FIRST_SEED + at) for at in range(seeds)]
    return tuple(run.value for run in runs if run.value is not None)


def tried(mutant: Mutant, trainer: Trainer, most: int) -> Trial:
    """Train a mutant until it is decided: one seed, three, then one by one up to `most`."""
    faulty: list[float] = []
    seconds = 0.0
    for seeds in (1, *range(_AT_ONCE, most + 1)):
        for at in range(len(faulty), seeds):
            run = trainer.run(mutant.family, mutant.source, FIRST_SEED + at)
            if run.value is None:
                return Trial(mutant, "failed")
            faulty.append(run.value)
            seconds += run.seconds
        sound = original(mutant.family, trainer, max(seeds, _AT_ONCE))
        said = outcome(sound, finite(faulty, sound), mutant.family.direction)
        if said != "undecided":
            break
    return Trial(mutant, said, tuple(faulty), sound, seconds / len(faulty))


def neutral(trial: Trial, trainer: Trainer) -> Iterator[tuple[str, ...]]:
    """Other single edits that mend the mutant as well: a third of the margin or 1.2 times the loss
    at most from the original, with two seeds.
    """
    mutant = trial.mutant
    for other in neighbours(replace(mutant.family, source=mutant.source), mutant.operator):
        values = []
        for at in range(2):
            run = trainer.run(mutant.family, other.source, FIRST_SEED + at)
            values.append(run.value)
            if run.value is None or not _as_good(mutant.family, trial.original, run.value):
                break
        else:
            yield other.codes


def _good(family: Family, values: tuple[float, ...]) -> bool:
    mean = fmean(values)
    return mean >= family.good if family.direction == "max" else mean <= family.good


def _as_good(family: Family, original: tuple[float, ...], value: float) -> bool:
    if family.direction == "max":
        return value >= fmean(original) - 0.05
    return value <= 1.2 * fmean(original)
