"""Clipping of gradients in a PyTorch loop: a call before the optimiser's step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from bot.models.training import TrainingTrace
from bot.rules.hyperparameters.place import HyperparameterPlace, Write, place
from bot.rules.hyperparameters.text.arguments import argument, positional
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.numbers import canonical, parsed
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import dotted
from bot.rules.hyperparameters.text.uses import number_used, write_argument
from bot.rules.hyperparameters.training.optimizers import OptimizerPlace, optimizers

_BOUNDS = (0.01, 10.0)
_CLIPS = {"clip_grad_norm_": "max_norm", "clip_grad_value_": "clip_value"}


def torch_clipping(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """The bound of the gradients, which can be added to every optimiser of a loop."""
    present = [(x, name) for x in program.calls if (name := _clip(program, x))]
    for call, name in present:
        yield _present(program, call, name)
    for found in [] if present else optimizers(program, trace):
        steps = _steps(program, found)
        if steps:
            yield place(
                "clipping", "none", program.line(steps[0]), _adder(found, steps), bounds=_BOUNDS
            )


def _clip(program: ProgramTree, call: cst.Call) -> str:
    return _CLIPS.get(program.called(call).rpartition(".")[2], "")


def _present(program: ProgramTree, call: cst.Call, name: str) -> HyperparameterPlace:
    given = argument(call, name, 1)
    known = number_used(program, given)

    def write(rewriting: Rewriting, value: str) -> None:
        if value == "none":
            rewriting.remove(call)
        else:
            write_argument(rewriting, call, name, _number(value), 1)

    value = canonical(known) if known is not None else "default"
    return place("clipping", value, program.line(call), write, bounds=_BOUNDS)


def _number(value: str) -> str:
    number = parsed(value)
    if number is None or number <= 0:
        raise NotApplicable(f"{value!r} is not a positive number.")
    return value


def _steps(program: ProgramTree, found: OptimizerPlace) -> list[cst.Call]:
    """The calls that step an optimiser, also through a scaler of gradients."""
    if found.framework != "torch" or found.call is None:
        return []
    names = {x for x, values in program.values.items() if any(v is found.call for v in values)}
    return [
        x
        for x in program.method("step")
        if _receiver(x) in names or any(dotted(y) in names for y in positional(x))
    ]


def _receiver(call: cst.Call) -> str:
    return dotted(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _adder(found: OptimizerPlace, steps: list[cst.Call]) -> Write:
    def write(rewriting: Rewriting, value: str) -> None:
        bound = _number(value)
        for step in steps:
            scaled = positional(step)
            optimizer = dotted(scaled[0]) if scaled else _receiver(step)
            parameters = _parameters(rewriting.program, found, step, optimizer)
            name = _function(rewriting)
            lines = [f"{_receiver(step)}.unscale_({optimizer})"] if scaled else []
            rewriting.before(step, "\n".join([*lines, f"{name}({parameters}, {bound})"]))

    return write


def _function(rewriting: Rewriting) -> str:
    spelled = rewriting.imports.spelled("torch.nn.utils.clip_grad_norm_")
    return spelled or rewriting.named("torch.nn.utils.clip_grad_norm_")


def _parameters(program: ProgramTree, found: OptimizerPlace, step: cst.Call, optimizer: str) -> str:
    """What the optimiser was given, where its name means the same at the step."""
    given = positional(found.call)[:1] if found.call else []
    text = program.text(given[0]) if given else ""
    scope = program.function(found.call) if found.call else None
    if text.endswith(".parameters()") and (scope is None or text.startswith("self.")):
        return text
    if text.endswith(".parameters()") and scope is program.function(step):
        return text
    return f"[p for group in {optimizer}.param_groups for p in group['params']]"
