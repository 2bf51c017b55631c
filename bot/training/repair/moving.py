"""Moves a patch from where values are used to the literals that decide them. Only runs decide: a
literal counts when the program with it changed has the new value at the use, and every other value
as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from bot.kernel import files, launch
from bot.kernel.training_types import Patch, TrainingProgram, TrainingTrace
from bot.program import hyperparameters, literals
from bot.program.literals import Literal, Observation

Runner = Callable[[Sequence[TrainingProgram]], Sequence[str]]
"""Runs programs, and gives back what each wrote on its standard error."""


@dataclass(frozen=True)
class _Move:
    """A literal that decides some uses, and what it becomes."""

    literal: Literal
    text: str
    keys: frozenset[str]


@dataclass(frozen=True)
class MovedPatch:
    """The program with a patch, and its edits where they were made."""

    program: TrainingProgram
    patch: Patch


@dataclass(frozen=True)
class Mover:
    """Observes a program and moves its patches. `run` may end once all values were seen."""

    program: TrainingProgram
    trace: TrainingTrace | None
    run: Runner

    def observe(self) -> Observation:
        """The values at the uses that the text does not show, by a whole run."""
        watched = self._watched({}, {})
        return literals.read_observation(self.run([watched])[0]) if watched else {}

    def move(self, patch: Patch, observed: Observation) -> MovedPatch:
        """The patch at the literals to which it can be moved; the rest stays at the uses. Raises
        NotApplicable.
        """
        moves = list(self._chosen(self._moves(patch, observed)))
        moved = {key: move for move in moves for key in move.keys}
        texts = literals.rewritten(self._texts, [(one.literal, one.text) for one in moves])
        program = _with(self.program, texts)
        patched = hyperparameters.patch_program(
            program.source, patch, self.trace, _modules(program), observed, moved.keys()
        )
        edits = tuple(
            edit.model_copy(update=self._place(moved[key])) if key else edit
            for edit in patch
            for key in [self._moved_key((edit,), observed, moved)]
        )
        return MovedPatch(_with(program, {**patched.files, program.entry: patched.source}), edits)

    def _moved_key(self, single: Patch, observed: Observation, moved: Mapping[str, _Move]) -> str:
        """A use of an edit whose uses have all been moved; "" for another edit."""
        with suppress(hyperparameters.NotApplicable):
            keys = self._patched(single, observed).replaced.keys()
            if keys and keys <= moved.keys():
                return min(keys)
        return ""

    def _place(self, move: _Move) -> dict[str, object]:
        file = "" if move.literal.file == self.program.entry else move.literal.file
        return {"file": file, "line": move.literal.line}

    def _patched(self, patch: Patch, observed: Observation) -> hyperparameters.PatchedText:
        program = self.program
        return hyperparameters.patch_program(
            program.source, patch, self.trace, _modules(program), observed
        )

    def _moves(self, patch: Patch, observed: Observation) -> Iterator[_Move]:
        """The literals that a run shows to decide uses of the patch, and nothing else."""
        changes = self._patched(patch, observed).replaced
        values = dict(zip(changes, literals.told_as(x.text for x in changes.values()), strict=True))
        targets = {key: to for key, to in values.items() if to and len(observed.get(key, ())) == 1}
        tries = dict.fromkeys(
            (literal, changes[key].text)
            for key in targets
            for literal in literals.spelled(self._texts, observed[key][0], changes[key].name)
        )
        programs = {
            one: watched
            for one in tries
            if (watched := self._watched(literals.rewritten(self._texts, [one]), observed))
        }
        outputs = self.run(list(programs.values())) if programs else ()
        for (literal, text), output in zip(programs, outputs, strict=True):
            keys = literals.changed(observed, literals.read_observation(output), targets)
            if keys:
                yield _Move(literal, text, frozenset(keys))

    def _chosen(self, moves: Iterator[_Move]) -> Iterator[_Move]:
        covered: set[str] = set()
        for move in moves:
            if not covered & move.keys:
                covered |= move.keys
                yield move

    def _watched(self, texts: Mapping[str, str], base: Observation) -> TrainingProgram | None:
        """The program, with some files changed, that tells its values."""
        program, watched = _with(self.program, texts), dict[str, str]()
        with suppress(hyperparameters.NotApplicable):
            watched = hyperparameters.watched(program.source, self.trace, _modules(program))
        if not watched:
            return None
        watched[program.entry] = watched.pop("")
        folder = program.entry.rpartition("/")[0]
        recorder = launch.probe("values.py").decode()
        name = f"{folder}/{literals.MODULE}.py".lstrip("/")
        return _with(program, {**watched, name: literals.expecting(recorder, base)})

    @cached_property
    def _texts(self) -> dict[str, str]:
        """The files that a pull request may change too."""
        texts: dict[str, str] = {}
        for name, data in self.program.files.items():
            if not files.refusal(name, is_patched=True):
                with suppress(UnicodeDecodeError):
                    texts[name] = data.decode()
        return texts


def _with(program: TrainingProgram, texts: Mapping[str, str]) -> TrainingProgram:
    files = {**program.files, **{name: text.encode() for name, text in texts.items()}}
    return program.model_copy(update={"files": files})


def _modules(program: TrainingProgram) -> tuple[hyperparameters.ProgramFile, ...]:
    return hyperparameters.program_files(program.files, program.entry)
