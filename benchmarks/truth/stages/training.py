"""Training: the diagnosis of traces, the hyperparameters of programs, and the patches to try."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from benchmarks.truth.inputs import Inputs, KeptTraining, Program
from benchmarks.truth.stages.stage import Stage
from bot.kernel import training_trace
from bot.kernel.environment import Environment
from bot.kernel.training_types import (
    Diagnosis,
    Hyperparameter,
    Patch,
    TrainingProgram,
    TrainingTrace,
)
from bot.program.hyperparameters import find, patch_program, program_files
from bot.program.text import NotApplicable
from bot.training import opinion
from bot.training.diagnose import RecordedRun, diagnose_recording
from bot.training.diagnosis.rules import diagnose, success
from bot.training.repair import metric, search
from sandbox.port import RunResult

_MOST_PATCHES = 8
_MOST_MOVES = 60
_NOWHERE = Environment(id="none", python="3.11", interpreter="python3")


def _of_trace(trace: TrainingTrace) -> object:
    found = diagnose(trace)
    asked = opinion.build(trace, found, TrainingProgram(files={"a.py": b"fit()\n"}, entry="a.py"))
    return {"diagnosis": found, "success": success(trace), "asked": asked.messages[-1].content}


def _of_training(kept: KeptTraining) -> object:
    """The trace but for its many steps, what is made of it, and the metric that the program tells
    of.
    """
    trace = training_trace.read_trace(kept.artifacts)
    run = RecordedRun(_NOWHERE, RunResult(exit_code=0, stdout=kept.output, seconds=1.0), trace)
    chosen = metric.choose(kept.output, trace)
    return {
        "trace": trace.model_copy(update={"steps": trace.steps[-1:], "epochs": trace.epochs[-1:]}),
        "steps": len(trace.steps),
        "run": diagnose_recording(run),
        "success": success(trace),
        "metric": chosen,
        "value": metric.read_value(chosen, kept.output, trace) if chosen is not None else None,
    }


def _trained_programs(inputs: Inputs) -> Mapping[str, tuple[Program, KeptTraining | None]]:
    return {name: (one, inputs.trainings.get(name)) for name, one in inputs.programs.items()}


def _found(program: Program, trace: TrainingTrace | None) -> tuple[Hyperparameter, ...]:
    beside = program_files(program.files, program.entry)
    return find(program.files[program.entry].decode(), trace, beside)


def _hyperparameters(case: tuple[Program, KeptTraining | None]) -> object:
    program, kept = case
    return _found(program, training_trace.read_trace(kept.artifacts) if kept is not None else None)


def _patches(case: tuple[Program, KeptTraining | None]) -> object:
    """The patches that would be tried, and the text that some of them make: the first one of each
    hyperparameter, where they are not too many.
    """
    program, kept = case
    trace = training_trace.read_trace(kept.artifacts) if kept is not None else None
    found = _found(program, trace)
    diagnosis = diagnose(trace) if trace is not None else Diagnosis()
    moves = search.moves((), found, diagnosis)[:_MOST_MOVES]
    return {
        "suggested": list(map(_named, search.from_diagnosis(diagnosis, found))),
        "elsewhere": search.elsewhere(diagnosis, found),
        "moves": list(map(_named, moves)),
        "texts": {_named(patch): _text(program, patch, trace) for patch in _firsts(moves)},
    }


def _firsts(moves: tuple[Patch, ...]) -> Iterator[Patch]:
    """The first patch of each hyperparameter alone."""
    first: dict[str, Patch] = {}
    for patch in moves:
        if len(patch) == 1:
            first.setdefault(patch[0].parameter, patch)
    yield from list(first.values())[:_MOST_PATCHES]


def _named(patch: Patch) -> str:
    return ", ".join(f"{edit.parameter}: {edit.before} -> {edit.after}" for edit in patch)


def _text(program: Program, patch: Patch, trace: TrainingTrace | None) -> object:
    """The lines that a patch changes, by file."""
    beside = program_files(program.files, program.entry)
    source = program.files[program.entry].decode()
    try:
        made = patch_program(source, patch, trace, beside)
    except NotApplicable as error:
        return f"not applicable: {error}"
    texts = {program.entry: made.source, **made.files}
    before = {name: program.files.get(name, b"").decode() for name in texts}
    return {name: changed_lines(before[name], text) for name, text in texts.items()}


def changed_lines(before: str, after: str) -> list[str]:
    """The lines that differ, each with its sign."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in list(lines)[2:] if not line.startswith("@@")]


STAGES = (
    Stage("patches", _trained_programs, _patches),
    Stage("hyperparameters", _trained_programs, _hyperparameters),
    Stage("diagnosis", lambda inputs: inputs.trainings, _of_training),
    Stage("diagnosis-of-traces", lambda inputs: inputs.traces, _of_trace),
)
