"""Where the values of hyperparameters stand, against keys: programs of several files, in which a
change must be made at the one place that decides a value.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from rich.table import Table

from bot.kernel import launch
from bot.kernel.environment import Environment
from bot.kernel.job import JobOptions
from bot.kernel.training_types import Hyperparameter, TrainingProgram
from bot.kernel.values import Record
from bot.program.hyperparameters import find, program_files
from bot.program.literals import Observation
from bot.program.text import NotApplicable, same
from bot.training.repair.moving import Mover, Runner
from bot.training.repair.search import edit
from sandbox.port import Sandbox

ENTRY, ARGUMENTS, KEYS = "train.py", "arguments.txt", "keys.json"
_SECONDS = 120.0
_NEW = {
    "learning_rate": "0.0123", "momentum": "0.77", "weight_decay": "0.0077", "batch_size": "7",
    "epochs": "77", "units": "77", "dropout": "0.37",
}  # fmt: skip
Outcome = Literal["right", "where it is used", "not found", "elsewhere", "wrong value"]


class TruePlace(Record):
    """What a key says: the value, the file ("" for the program itself), and the 1-based line."""

    value: str
    file: str
    line: int


class PlaceRow(Record):
    """A hyperparameter of a program. "where it is used": a change is made there, not where the
    value stands; "elsewhere": it is made where it has no effect.
    """

    program: str
    hyperparameter: str
    outcome: Outcome
    found: tuple[str, ...] = ()


class PlaceBench(Record):
    """The JSON of `python -m benchmarks places`."""

    programs: int
    outcomes: dict[Outcome, int]
    rows: tuple[PlaceRow, ...]


@dataclass(frozen=True)
class _Program:
    program: TrainingProgram
    run: Runner

    @cached_property
    def mover(self) -> Mover:
        return Mover(self.program, None, self.run)

    @cached_property
    def observed(self) -> Observation:
        return self.mover.observe()

    @cached_property
    def found(self) -> tuple[Hyperparameter, ...]:
        modules = program_files(self.program.files, ENTRY)
        return find(self.program.source, None, modules, self.observed)

    def changed(self, one: Hyperparameter, value: str) -> set[tuple[str, int]]:
        """The lines that a change of one hyperparameter changes; none where it cannot be made."""
        try:
            made = self.mover.move((edit(one, value),), self.observed).program
        except NotApplicable:
            return set()
        return {place for name in made.files for place in self._lines(name, made)}

    def _lines(self, name: str, made: TrainingProgram) -> Iterator[tuple[str, int]]:
        before = self.program.files[name].decode(errors="replace").splitlines()
        after = made.files[name].decode(errors="replace").splitlines()
        for number, pair in enumerate(zip(before, after, strict=False), 1):
            if pair[0] != pair[1]:
                yield name if name != ENTRY else "", number


def sandboxed(sandbox: Sandbox, environment: Environment) -> Runner:
    """Runs in a sandbox, in an environment."""

    def started(program: TrainingProgram) -> str:
        spec = launch.trial_spec(
            program, environment, JobOptions(), "whole", 0, limit_s=_SECONDS, with_probe=False
        )
        return sandbox.run(spec).stderr

    return lambda programs: [started(program) for program in programs]


def run(folder: Path, runner: Runner) -> PlaceBench:
    """Find and change every hyperparameter of the keys."""
    keys = json.loads((folder / KEYS).read_text(encoding="utf-8"))
    rows = [
        row for name, key in sorted(keys.items()) for row in _rows(name, folder / name, key, runner)
    ]
    outcomes = Counter(row.outcome for row in rows)
    return PlaceBench(programs=len(keys), outcomes=dict(outcomes.most_common()), rows=tuple(rows))


def _rows(name: str, folder: Path, key: Mapping[str, object], runner: Runner) -> Iterator[PlaceRow]:
    told = folder / ARGUMENTS
    arguments = told.read_text(encoding="utf-8").split("\n") if told.exists() else []
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ARGUMENTS and path.parent.name != "__pycache__"
    }
    started = TrainingProgram(files=files, entry=ENTRY, arguments=tuple(filter(None, arguments)))
    program = _Program(started, runner)
    for wanted, true in key.items():
        yield _row(name, wanted, TruePlace.model_validate(true), program)


def _row(name: str, wanted: str, true: TruePlace, program: _Program) -> PlaceRow:
    kind, _, layer = wanted.partition("(")
    alike = [one for one in program.found if one.kind == kind]
    changes = [(one, program.changed(one, _NEW[kind])) for one in alike]
    there = {(true.file, true.line)}
    if layer:  # the index is by the model, which no text alone tells: by the place, else by the id
        at = [each for each in changes if each[1] == there]
        changes = at or [each for each in changes if each[0].id == wanted]
    hit = [one for one, lines in changes if lines == there]
    used = any((one.file, one.line) in lines for one, lines in changes)
    outcome: Outcome = "not found"
    if hit:
        outcome = "right" if any(same(one.value, true.value) for one in hit) else "wrong value"
    elif any(lines for _, lines in changes):
        outcome = "where it is used" if used else "elsewhere"
    found = tuple(f"{one.value} at {sorted(lines)}" for one, lines in changes)
    return PlaceRow(program=name, hyperparameter=wanted, outcome=outcome, found=found)


def places_table(whole: PlaceBench) -> Table:
    """How many of each outcome, and what was not right."""
    table = Table(title=", ".join(f"{count} {name}" for name, count in whole.outcomes.items()))
    for head in ("program", "hyperparameter", "outcome", "found"):
        table.add_column(head, overflow="fold")
    for row in whole.rows:
        if row.outcome != "right":
            table.add_row(row.program, row.hyperparameter, row.outcome, "; ".join(row.found))
    return table
