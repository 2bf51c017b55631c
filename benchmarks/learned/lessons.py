"""Makes much to learn from at little cost: every mutant of the families, trained once with the
probe, and once more to confirm that it is worse.

That is less sure than the test of `benchmarks.mutants.generate`, which is for judgement. Mutants
that learn as well as the original are kept as healthy programs; what lies between is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path

from benchmarks.fault_runs import FIGURES
from benchmarks.mutants import cases
from benchmarks.mutants.family import Family
from benchmarks.mutants.generate import order
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.significance import finite, worse_by
from benchmarks.mutants.trainer import Trainer
from benchmarks.mutants.trial import FIRST_SEED, Trial, original

Say = Callable[[str], None]
_HARMLESS = 0.5
_METRIC = "metric.json"
_HEALTHY = "-healthy"
TRACES = "traces"
"""The folder beside the cases where their traces are."""


def teach(families: Iterable[Family], python: Path, out: Path, most: int, say: Say) -> None:
    """Write the programs and the traces of at most so many mutants of a kind; first one of each
    kind in each family, then the next. What is there already stays.
    """
    ordered = sorted(families, key=lambda family: family.framework)
    for framework, group in groupby(ordered, key=lambda family: family.framework):
        with Trainer(python, framework, watching=True) as trainer:
            _taught(list(group), trainer, out, most, say)


def _taught(families: list[Family], trainer: Trainer, out: Path, most: int, say: Say) -> None:
    sound = {family.name: _original(family, trainer, out) for family in families}
    kinds = [kind for family in families if sound[family.name] for kind in order(family)]
    for mutant in (kind[at] for at in range(most) for kind in kinds if kind[at:]):
        name = cases.name(mutant)
        if not _done(out, name):
            said = _lesson(mutant, sound[mutant.family.name], trainer, out)
            _finish(out, mutant, trainer, healthy=said == "healthy")
            say(f"{name} {mutant.change}: {said}")


def _original(family: Family, trainer: Trainer, out: Path) -> tuple[float, ...]:
    """The metric of two runs of the original, none when it does not run."""
    kept = out / TRACES / f"{family.name}{_HEALTHY}" / _METRIC
    if kept.is_file():
        return tuple(json.loads(kept.read_bytes()))
    run = trainer.run(family, family.source, FIRST_SEED, _trace(out, family.name))
    values = original(family, trainer, 2)
    if len(values) < 2:
        return ()
    cases.write_healthy(out, family, run.seconds)
    _finish(out, family, trainer, healthy=True)
    kept.write_text(json.dumps(values))
    return values


def _lesson(mutant: Mutant, sound: tuple[float, ...], trainer: Trainer, out: Path) -> str:
    """Write down one mutant, and say what came of it."""
    name, family = cases.name(mutant), mutant.family
    run = trainer.run(family, mutant.source, FIRST_SEED, _trace(out, name))
    if run.value is None:
        return "failed"
    if _worse(sound, run.value, family) < _HARMLESS:
        cases.write_healthy(out, family, run.seconds, mutant)
        return "healthy"
    again = trainer.run(family, mutant.source, FIRST_SEED + 1).value
    if again is None or min(_worse(sound, x, family) for x in (run.value, again)) < 1:
        return "undecided"
    faulty = (run.value, again)
    cases.write(out, Trial(mutant, "killed", faulty, sound, run.seconds, mutant.alternatives))
    return "faulty"


def _worse(sound: tuple[float, ...], value: float, family: Family) -> float:
    return worse_by(sound, finite([value], sound), family.direction)


def _trace(out: Path, name: str) -> Path:
    folder = (out / TRACES / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("training-*.jsonl"):
        old.unlink()
    return folder


def _done(out: Path, name: str) -> bool:
    return any((out / TRACES / f"{name}{end}" / FIGURES).is_file() for end in ("", _HEALTHY))


def _finish(out: Path, of: Mutant | Family, trainer: Trainer, *, healthy: bool) -> None:
    """Close a folder of traces; a healthy program's has a name of its own (`FaultCase.folder`)."""
    family, name = (of.family, cases.name(of)) if isinstance(of, Mutant) else (of, of.name)
    figures = {"seconds": round(trainer.run(family, of.source, FIRST_SEED).seconds, 2), "error": ""}
    folder = out / TRACES / name
    if healthy:
        folder = folder.rename(f"{folder}{_HEALTHY}")
    (folder / FIGURES).write_text(json.dumps(figures))
