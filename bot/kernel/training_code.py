"""What the training recorder saw of the code around a training: the order and the lines of its
calls, what became of each parameter, and in which mode a model ran.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field

from bot.kernel.values import Record

CodeFault = Literal[
    "gradients-not-reset", "reset-after-backward", "step-never-called", "per-epoch-step",
    "backward-never-called", "optimizer-holds-others", "parameters-frozen", "not-registered",
    "graph-cut", "eval-while-training", "train-while-evaluating", "dropout-in-evaluation",
    "axis-mixed", "broadcast-loss", "same-batch", "split-leak", "target-in-inputs",
    "schedule-stepped-wrong", "clipping-kills", "accumulation-wrong", "state-carried",
    "padding-counts", "metric-wrong", "wrong-reduction", "update-lost",
    "step-uphill", "layer-repeated", "future-leak", "mask-inverted", "positions-missing",
    "best-not-copied", "self-compared", "weights-swapped", "divergence-negative",
    "terminal-ignored", "arguments-swapped", "gradient-singular", "labels-shuffled",
    "scaling-mismatch", "state-incomplete", "target-stale", "result-lost", "seed-repeated",
    "batches-unused", "averages-short", "value-undefined", "direction-inverted",
    "wrong-code",
]  # fmt: skip
"""Faults that are code and no hyperparameter: stable names, one rule each. `wrong-code` is any
other, which only a model names.
"""
OTHER_CODE: CodeFault = "wrong-code"
CODE_FAULTS: frozenset[str] = frozenset(get_args(CodeFault))

# Numbers and texts that hostile code may have written: bounded.

_MOST = 10**12
_HUGE = 1e100


def _real(value: float) -> float:
    return value if abs(value) < _HUGE or math.isnan(value) else math.copysign(math.inf, value)


Count = Annotated[int, Field(ge=0, le=_MOST)]
Place = Annotated[int, Field(ge=-1, le=_MOST)]
"""The index of a layer, -1 for none."""
Shape = Annotated[tuple[Count, ...], Field(max_length=16)]
Real = Annotated[float, AfterValidator(_real)]
"""A number whose square is one too; infinity from 1e100 on, or NaN."""
Setting = str | Real | Annotated[int, Field(ge=-_MOST, le=_MOST)] | bool | None | tuple[Real, ...]


class ProbeRecord(Record):
    """What a line holds. Hostile code may have written it: texts and numbers are bounded."""

    model_config = ConfigDict(str_max_length=1000)


class CallSite(ProbeRecord):
    """Calls of one kind from one line of the program: `calls` counts those that were looked at,
    `first` and `last` are the optimizer steps that had been taken by then. `loops` are the lines of
    the loops around it, outermost first, "name:line" of those in a function.

    `name` is backward, step, zero_grad, schedule, clip, train, eval, load or accumulate.
    """

    name: str
    line: Count = 0
    calls: Count = 0
    first: Count = 0
    last: Count = 0
    loops: Annotated[tuple[str, ...], Field(max_length=12)] = ()


class OptimizerUse(ProbeRecord):
    """What happened between the steps of one optimizer, at the steps that were looked at.

    Of `looked` intervals with a backward pass, `stale` began none of their backward passes without
    the gradients of earlier steps, and `erased` ended without the gradients that a backward pass
    had left. `empty` steps had no backward pass before them. `growth` is the median norm of a stale
    gradient over that of the new one alone. `held` counts the optimizer's parameters, `reached`
    those of them that ever had a gradient.
    """

    optimizer: str = ""
    name: str = ""
    line: Count = 0
    steps: Count = 0
    looked: Count = 0
    stale: Count = 0
    erased: Count = 0
    empty: Count = 0
    backwards: Count = 0
    growth: Real | None = None
    held: Count = 0
    reached: Count = 0


class ParameterUse(ProbeRecord):
    """A parameter of a module that ran in training. `optimizers` counts those that hold it,
    `looked` the steps at which it was looked at, `fed` those at which it had a gradient other than
    zero. `in_graph` says whether a loss leads back to it, `ran` whether its own module was called,
    `ungraded` at how many of the steps that happened without gradients alone, `changed` whether
    its values did. `restored` parameters were loaded. `root` is the number of the outermost module.
    """

    name: str
    module: str = ""
    size: Count = 0
    trainable: bool = True
    optimizers: Count = 0
    looked: Count = 0
    fed: Count = 0
    in_graph: bool = False
    ran: bool = False
    ungraded: Count = 0
    changed: bool = False
    restored: bool = False
    root: Count = 0


class Unregistered(ProbeRecord):
    """An attribute of a module that holds modules or tensors which ran in training but are none of
    its parameters. `kind` is list, tuple, dict or tensor.
    """

    owner: str
    attribute: str
    kind: str
    count: Count = 1
    line: Count = 0
    optimized: bool = False


class ModeUse(ProbeRecord):
    """In which mode the layers of a model ran that act differently in training: `training` and
    `evaluating` count looked-at training steps, `judged` the forward passes without gradients or in
    evaluation, `judged_training` those of them in training mode, in `judged_intervals` intervals
    between steps. `first` is the first step in evaluation mode. `layers` are the kinds of layers.
    """

    layers: tuple[str, ...] = ()
    training: Count = 0
    evaluating: Count = 0
    first: Count = 0
    judged: Count = 0
    judged_training: Count = 0
    judged_intervals: Count = 0
    restored: bool = False
    line: Count = 0


class Schedule(ProbeRecord):
    """A learning rate scheduler: how often it was stepped, how many of those calls came before the
    optimizer's first step, and what it was made with. `optimizer_steps` are those of the optimizer
    that it was given.
    """

    name: str
    steps: Count = 0
    early: Count = 0
    settings: dict[str, Setting] = {}
    line: Count = 0
    optimizer_steps: Count | None = None


class Clipping(ProbeRecord):
    """Gradient clipping at one line: the limit, and the median norm before it."""

    kind: Literal["norm", "value"] = "norm"
    limit: Real
    median: Real | None = None
    calls: Count = 0
    line: Count = 0


class Mention(ProbeRecord):
    """A use of what may cut a graph, move data or change a mode, as the program's text has it.
    `names` are the names in its statement.
    """

    name: str
    line: Count
    function: str = ""
    names: Annotated[tuple[str, ...], Field(max_length=40)] = ()


class TensorUse(ProbeRecord):
    """What a line does to a tensor of shape `before`: a `view` or `reshape` that gives it the sizes
    of one with other axes (`after`), an `argmax` or `max` along its first axis, or, as `half`, a
    comparison of its values (`low` to `high`) with 0.5. `first` is the first step of it.
    """

    name: str
    line: Count = 0
    before: Shape = ()
    after: Shape = ()
    calls: Count = 0
    first: Count = 0
    low: Real | None = None
    high: Real | None = None


class ProgramCode(ProbeRecord):
    """All that was seen of the code around a training, written once more as more is known."""

    kind: Literal["code"] = "code"
    calls: Annotated[tuple[CallSite, ...], Field(max_length=200)] = ()
    totals: dict[str, Count] = {}
    optimizers: Annotated[tuple[OptimizerUse, ...], Field(max_length=50)] = ()
    parameters: Annotated[tuple[ParameterUse, ...], Field(max_length=400)] = ()
    unregistered: Annotated[tuple[Unregistered, ...], Field(max_length=50)] = ()
    modes: Annotated[tuple[ModeUse, ...], Field(max_length=50)] = ()
    schedules: Annotated[tuple[Schedule, ...], Field(max_length=50)] = ()
    clippings: Annotated[tuple[Clipping, ...], Field(max_length=50)] = ()
    mentions: Annotated[tuple[Mention, ...], Field(max_length=200)] = ()
    dropped_out: Annotated[tuple[CallSite, ...], Field(max_length=50)] = ()
    """Lines of functional dropout that acted while its module was in evaluation mode."""
    uses: Annotated[tuple[TensorUse, ...], Field(max_length=50)] = ()
    facts: dict[str, Setting] = {}
    """Single facts by name."""

    def integer(self, name: str) -> int:
        """A fact that is a count, a line or several lines, of which the first; 0 for none. Hostile
        code may have written anything in its place.
        """
        value = self.facts.get(name)
        first = value[0] if isinstance(value, tuple) and value else value
        return int(first) if isinstance(first, int | float) and math.isfinite(first) else 0

    def sites(self, name: str) -> list[CallSite]:
        """The lines of one kind of call, most calls first."""
        return sorted((x for x in self.calls if x.name == name), key=lambda x: -x.calls)

    def site(self, name: str) -> CallSite:
        """The line that most calls of a kind come from; line 0 for none."""
        return next(iter(self.sites(name)), CallSite(name=name))
