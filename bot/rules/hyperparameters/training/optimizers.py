"""Where a program chooses its optimiser: a call of its class, or a name that `compile` is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.text.arguments import argument
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.uses import worded
from bot.rules.hyperparameters.training.catalogue import CLASSES, OTHERS

_MOST = 50  # more than a program that somebody wrote has


@dataclass(frozen=True)
class OptimizerPlace:
    """`call` is the construction; `name` the written or absent name that `compile` gets."""

    framework: str
    value: str
    line: int
    call: cst.Call | None = None
    compiled: cst.Call | None = None
    name: cst.SimpleString | None = None

    @property
    def rate_name(self) -> str:
        """What the framework calls the learning rate."""
        return "lr" if self.framework == "torch" else "learning_rate"

    @property
    def rate_position(self) -> int:
        """Where the rate stands without a name: PyTorch has the parameters first."""
        return 1 if self.framework == "torch" else 0


def optimizers(program: ProgramTree, trace: TrainingTrace | None) -> list[OptimizerPlace]:
    """Those that are used: what `compile` gets, otherwise every construction."""
    found = list(_unique(_compiled(program)))
    handed = {x.call for x in found}
    torch = [x for x in _constructed(program, "torch") if x.call not in handed]
    keras = [] if found else list(_constructed(program, "keras"))
    return _seen(program, [*found, *torch, *keras], trace)[:_MOST]


def _seen(
    program: ProgramTree, found: list[OptimizerPlace], trace: TrainingTrace | None
) -> list[OptimizerPlace]:
    """Those first of which a trace saw steps; the others train nothing or were not reached."""
    if trace is None or not trace.optimizers:
        return found
    names = {x.name for x in trace.optimizers}
    lines = {x.line for x in trace.optimizers}
    used = [x for x in found if x.value in names]
    return sorted(used or found, key=lambda x: program.traced(x.line) not in lines)


def _unique(found: Iterator[OptimizerPlace]) -> Iterator[OptimizerPlace]:
    seen: set[cst.CSTNode | None] = set()
    for place in found:
        node = place.call or place.name or place.compiled
        if node not in seen:
            seen.add(node)
            yield place


def compilations(program: ProgramTree) -> Iterator[cst.Call]:
    """The calls of a model's `compile`: of the module `re` there is another."""
    for call in program.method("compile"):
        if not program.name(call.func).startswith(("re.", "torch.", "jax.", "regex.")):
            yield call


def _compiled(program: ProgramTree) -> Iterator[OptimizerPlace]:
    for call in compilations(program):
        given = argument(call, "optimizer", 0)
        line = program.line(given or call)
        value = worded(program, given)
        if value is None:
            if any(arg.star for arg in call.args):
                continue
            yield OptimizerPlace("keras", "default", line, compiled=call)
        elif isinstance(value, cst.SimpleString) and isinstance(value.evaluated_value, str):
            name = value.evaluated_value.lower()
            yield OptimizerPlace("keras", name, program.line(value), None, call, value)
        elif isinstance(value, cst.Call):
            yield from _one(program, value, "keras")


def _constructed(program: ProgramTree, framework: str) -> Iterator[OptimizerPlace]:
    for call in program.calls:
        yield from _one(program, call, framework)


def _one(program: ProgramTree, call: cst.Call, framework: str) -> Iterator[OptimizerPlace]:
    full = program.called(call)
    parts = full.split(".")
    if parts[0] == framework and "optim" in parts:
        # torch.optim.adam.Adam is torch.optim.Adam.
        full = f"torch.optim.{parts[-1]}"
    known = CLASSES.get(full) or (parts[-1].lower() if full in OTHERS else None)
    if known and parts[0] == framework:
        yield OptimizerPlace(framework, known, program.line(call), call)
