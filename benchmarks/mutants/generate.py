"""Generates a set of faults: which mutants are tried, and the programs that are killed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from benchmarks.mutants import cases
from benchmarks.mutants.family import Family
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.operators import CODE_OPERATORS, OPERATORS, Operator, mutants
from benchmarks.mutants.trainer import Trainer
from benchmarks.mutants.trial import FIRST_SEED, Trial, healthy, neutral, tried

Say = Callable[[str], None]

TRIES = 2
"""Mutants of one kind that are tried before it is given up in a family."""


def generate(
    families: Iterable[Family],
    out: Path,
    python: Path,
    *,
    seeds: int,
    most: int,
    say: Say,
    code: bool = False,
) -> tuple[Trial, ...]:
    """Try the mutants of each family, write those that are killed and the originals to `out`.

    `seeds` is how many runs an undecided mutant gets at most; `most` mutants are written, 0 for
    all. A family whose original does not learn well is left out. With `code`, the faults are code.
    """
    operators = CODE_OPERATORS if code else OPERATORS
    families = sorted(families, key=lambda family: family.framework)
    families = [family for family in families if not code or family.framework == "torch"]
    share = -(-most // len(families)) if most else 0
    trials: list[Trial] = []
    for framework, group in groupby(families, key=lambda family: family.framework):
        with Trainer(python, framework) as trainer:
            for family in group:
                kinds = order(family, operators)
                trials += _generated(family, kinds, trainer, out, seeds, share, say)
    return tuple(trials)


def _generated(
    family: Family,
    kinds: list[list[Mutant]],
    trainer: Trainer,
    out: Path,
    seeds: int,
    share: int,
    say: Say,
) -> Iterator[Trial]:
    try:
        values = healthy(family, trainer)
    except ValueError as error:
        say(str(error))
        return
    seconds = trainer.run(family, family.source, FIRST_SEED).seconds
    cases.write_healthy(out, family, seconds)
    say(f"{family.name}: {values}, {seconds:.1f} s")
    yield from _written(_trials(kinds, trainer, seeds, share), out, say)


def _written(trials: Iterator[Trial], out: Path, say: Say) -> Iterator[Trial]:
    for trial in trials:
        say(_line(trial))
        if trial.outcome == "killed":
            cases.write(out, trial)
        yield trial


def order(family: Family, operators: tuple[Operator, ...] = OPERATORS) -> list[list[Mutant]]:
    """The mutants of a family by operator and kind, each list shuffled: by the family's name, so
    that the same family always gives the same.
    """
    kinds: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants(family, operators):
        group = mutant.group if mutant.operator in ("HLR", "ACH", "RAW") else ""
        kinds.setdefault((mutant.operator, group), []).append(mutant)
    chance = random.Random(family.name)
    every = list(kinds.values())
    chance.shuffle(every)
    for kind in every:
        chance.shuffle(kind)
    return every


def _trials(kinds: list[list[Mutant]], trainer: Trainer, seeds: int, share: int) -> Iterator[Trial]:
    killed = 0
    for kind in kinds:
        for mutant in kind[:TRIES]:
            if share and killed == share:
                return
            trial = _with_alternatives(tried(mutant, trainer, seeds), trainer)
            yield trial
            if trial.outcome == "killed":
                killed += 1
                break


def _with_alternatives(trial: Trial, trainer: Trainer) -> Trial:
    if trial.outcome != "killed":
        return trial
    return replace(
        trial, alternatives=(*trial.mutant.alternatives, *dict.fromkeys(neutral(trial, trainer)))
    )


def _line(trial: Trial) -> str:
    codes = ", ".join(trial.mutant.codes)
    values = " ".join(f"{value:.3g}" for value in trial.faulty)
    return f"  {trial.outcome}: {codes} ({trial.mutant.change}) {values} {trial.seconds:.1f} s"
