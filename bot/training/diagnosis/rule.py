"""What a rule of the diagnosis is, and the run that it is asked about."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeVar

from bot.kernel.training_code import ProgramCode
from bot.kernel.training_types import (
    ActivationStep,
    Change,
    Data,
    Epoch,
    Fault,
    Layer,
    Loss,
    Measurement,
    Optimizer,
    Plan,
    TrainedModel,
    TrainingStep,
    TrainingTrace,
    Weight,
    WeightStep,
)
from bot.training.diagnosis.learning import Learning, learning

# One model and all that a trace says of its training: what a rule is asked about.

_Part = TypeVar("_Part", Loss, Optimizer, Plan, Data, Epoch)
_Row = TypeVar("_Row", ActivationStep, WeightStep)
_MOST_OUTPUTS = 17
_MEAN = 2  # among the ways to sum up an evaluation
_MOST = 24  # models of one trace, as cross-validation makes them
_NO_MODEL = TrainedModel(id="", framework="torch", layers=())
_LINEAR = ("", "linear", "identity")


@dataclass(frozen=True)
class Training:
    """The records of one model. `layers` are in the order of the calls."""

    model: TrainedModel
    losses: tuple[Loss, ...] = ()
    optimizer: Optimizer | None = None
    plan: Plan | None = None
    data: Data | None = None
    held_out: tuple[Data, ...] = ()
    steps: tuple[TrainingStep, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    in_turns: bool = False
    ended: bool = True
    heads: frozenset[int] = frozenset()
    """The layers of several outputs, where the model has more than one."""
    whole: Learning | None = None
    judged: float | None = None
    """The loss of the last evaluation, its mean over batches where there are several."""
    code: ProgramCode | None = None

    @property
    def loss(self) -> Loss | None:
        """What is judged as the contract: the first loss that the program computes."""
        return self.losses[0] if self.losses else None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of the model, in the order of the calls."""
        return self.model.layers

    @cached_property
    def learning(self) -> Learning:
        """What the curves say. Of models that train against each other they say nothing."""
        if self.whole is not None:
            return self.whole
        if self.in_turns or self.is_policy or self.optimizes_inputs:
            return Learning()
        return learning(self.losses, self.steps, self.epochs, self.data)

    @property
    def is_policy(self) -> bool:
        """Whether a policy draws its own data, so that its loss says nothing of what it learned."""
        if self.code is not None and self.code.facts.get("picked_values"):
            return True  # values of actions, whose targets are the program's own
        names = {x.name for x in self.code.mentions} if self.code else set()
        if self.model.framework == "jax" and "categorical" in names and not self.losses:
            return True  # a loss of no known kind, in a program that draws from logits
        return {"sample", "log_prob"} <= names and "rsample" not in names

    @property
    def optimizes_inputs(self) -> bool:
        """Whether every module that ran is fixed, and what is optimized are inputs of it."""
        code = self.code
        if code is None or not code.parameters or any(x.trainable for x in code.parameters):
            return False
        return any(x.steps and x.reached for x in code.optimizers)

    @cached_property
    def learners(self) -> tuple[Layer, ...]:
        """Layers with a kernel: dense, convolution, recurrent; no embedding, no norm."""
        return tuple(layer for layer in self.layers if kernel(layer))

    @cached_property
    def order(self) -> dict[int, int]:
        """The place of each layer among the calls, by its index."""
        return {layer.index: place for place, layer in enumerate(self.layers)}

    @cached_property
    def output(self) -> Layer | None:
        """The last layer that computes something: it has weights or applies a function."""
        head = self.loss.layer if self.loss and self.heads else None
        if head is not None and head in self.order:
            return self.layers[self.order[head]]
        able = (x for x in reversed(self.layers) if nonlinear(x) or kernel(x))
        return next(able, None)

    @cached_property
    def hidden(self) -> tuple[Layer, ...]:
        """Layers with a kernel whose output others work on."""
        return tuple(layer for layer in self.learners if layer.index not in self.tail)

    @cached_property
    def tail(self) -> frozenset[int]:
        """The indices of the last layer with a kernel, of all behind it, and of other outputs."""
        if not self.learners:
            return self.heads
        first = self.order[self.learners[-1].index]
        return self.heads | self._ends | {layer.index for layer in self.layers[first:]}

    @cached_property
    def _ends(self) -> frozenset[int]:
        """Layers that are fed and feed none, where it is known which layer feeds which."""
        feeding = {index for layer in self.layers for index in layer.inputs}
        indices = {layer.index for layer in self.layers if layer.inputs}
        return frozenset(indices - feeding)

    @cached_property
    def returned(self) -> dict[int, list[ActivationStep]]:
        """What each layer returned at the sampled steps, by its index."""
        return _by_layer(row for step in self.steps for row in step.activations)

    @cached_property
    def changed(self) -> dict[int, list[WeightStep]]:
        """What became of the weights of each layer at the sampled steps, by its index."""
        return _by_layer(row for step in self.steps for row in step.weights)

    @cached_property
    def attention(self) -> frozenset[int]:
        """The indices of layers that only make or weigh scores by which another branch is summed:
        what they return passes softmax and is merged, with no weights on the way.
        """
        merged_layers: set[int] = set()
        scores: set[int] = set()
        for layer in reversed(self.layers):
            if layer.activation == "softmax" and layer.index in merged_layers:
                scores.add(layer.index)
            if not layer.weights and (len(layer.inputs) > 1 or layer.index in merged_layers):
                merged_layers.update(layer.inputs)
            if not layer.weights and layer.index in scores:
                scores.update(layer.inputs)
        return frozenset(scores)

    @cached_property
    def other_outputs(self) -> tuple["Training", ...]:
        """The same training as up to 15 further outputs see it, each with its own loss first."""
        further = self.losses[1:_MOST_OUTPUTS] if self.heads else ()
        return tuple(replace(self, losses=(loss,), whole=self.learning) for loss in further)

    @cached_property
    def updates(self) -> int:
        """Steps that changed something; of long runs a trace has only some."""
        counts = (x.step + 1 for x in self.steps)
        return max(counts, default=0) - sum(x.skipped for x in self.steps)

    @cached_property
    def cut(self) -> bool:
        """Whether a time limit, a signal or an exception stopped the run before its planned end."""
        plan = self.plan
        planned_updates = (plan.epochs or 0) * (plan.steps_per_epoch or 0) if plan else 0
        return not self.ended and not 0 < planned_updates <= self.updates

    @cached_property
    def rate(self) -> float | None:
        """The highest learning rate that was used or set."""
        recorded_rates = [step.rate for step in self.steps if step.rate is not None]
        rates = recorded_rates or list(self.optimizer.rates if self.optimizer else ())
        return max(rates, default=None)


def _by_layer(rows: Iterable[_Row]) -> dict[int, list[_Row]]:
    rows_by_layer: dict[int, list[_Row]] = {}
    for row in rows:
        rows_by_layer.setdefault(row.layer, []).append(row)
    return rows_by_layer


def kernel(layer: Layer) -> Weight | None:
    """The weight by which a layer learns what its units respond to."""
    return next((x for x in layer.weights if x.role == "kernel"), None)


def embeds(layer: Layer) -> bool:
    """Whether a layer looks up a vector for each code."""
    return any(x.role == "embedding" for x in layer.weights)


def nonlinear(layer: Layer) -> bool:
    """Whether a layer applies a function other than the identity."""
    return layer.activation not in _LINEAR


def recurrent(layer: Layer) -> bool:
    """Whether a layer has weights for its own last output: its gates saturate by design."""
    return any(x.role == "recurrent" for x in layer.weights)


def dropout_share(layer: Layer) -> float | None:
    """The share that a layer drops, as Keras or PyTorch calls it, or that a function drops of what
    it returns; None where nothing is dropped.
    """
    names = ("functional_dropout",) if kernel(layer) else ("rate", "p", "functional_dropout")
    share = next((layer.settings[x] for x in names if x in layer.settings), None)
    return share if isinstance(share, float) else None


def trainings(trace: TrainingTrace) -> tuple[Training, ...]:
    """One for each model that was trained, at most 24; one without layers where a program trains
    variables that no model holds.
    """
    models = trace.models or ((_NO_MODEL,) if trace.steps or trace.code else ())
    return tuple(_training(trace, model) for model in models[:_MOST])


def _training(trace: TrainingTrace, model: TrainedModel) -> Training:
    """The probe looks again and writes again: of one use, the last record counts."""
    alone = len(trace.models) <= 1

    def mine(records: tuple[_Part, ...]) -> tuple[_Part, ...]:
        return tuple(x for x in records if x.model == model.id or (alone and not x.model))

    optimizers = mine(trace.optimizers)
    names = {x.id for x in optimizers} | ({""} if alone else set())
    losses = {(x.name, x.line, x.layer): x for x in mine(trace.losses)}
    data = {x.part: x for x in mine(trace.data)}
    return Training(
        model=model,
        losses=tuple(losses.values()),
        optimizer=next(iter(optimizers), None),
        plan=next(reversed(mine(trace.plans)), None),
        data=data.get("train"),
        held_out=tuple(data[part] for part in ("validation", "evaluation") if part in data),
        steps=tuple(x for x in trace.steps if x.optimizer in names),
        epochs=mine(trace.epochs),
        in_turns=_in_turns(trace),
        ended=trace.end is not None and not trace.end.raised,
        heads=frozenset(x.layer for x in losses.values() if x.layer is not None),
        judged=_judged(trace) if alone else None,
        code=trace.code,
    )


def _judged(trace: TrainingTrace) -> float | None:
    losses = trace.evaluations[-1].losses if trace.evaluations else ()
    return losses[_MEAN] if len(losses) > _MEAN else next(iter(losses), None)


def _in_turns(trace: TrainingTrace) -> bool:
    """Whether several models take steps by turns, as a generator and its critic do."""
    changes = sum(a.optimizer != b.optimizer for a, b in pairwise(trace.steps))
    return len(trace.models) > 1 and 4 * changes > len(trace.steps)


# What a rule of the diagnosis is: data about it, and a check that yields signs.

Severity = Literal["code", "contract", "initial", "rate", "data", "dynamics", "style"]

WEIGHT: dict[Severity, float] = {
    "code": 1.02, "contract": 1.0, "initial": 0.98, "rate": 0.96, "data": 0.95, "dynamics": 0.92,
    "style": 0.5,
}  # fmt: skip
"""How much a class of rules counts in the order of findings: a training loop that is wrong and what
breaks the loss's contract come before what only shows in the curves.
"""

UNHARMED = 0.5
"""The confidence in what nobody means to write, where the run learned what there was all the same.
"""


@dataclass(frozen=True, slots=True)
class Sign:
    """What a check saw. `confidence` estimates how often such a sign names a fault. One that only
    the curves show (`symptom`) may be the effect of another fault. A `habit` did no harm in this
    run: it is advice. `line` is where the fault is, 0 for where its kind usually is.
    """

    fault: Fault
    confidence: float
    message: str
    layers: tuple[int, ...] = ()
    also: tuple[Fault, ...] = ()
    evidence: tuple[Measurement, ...] = ()
    change: Change | None = None
    direction: Literal["", "up", "down"] = ""
    symptom: bool = False
    habit: bool = False
    line: int = 0


Signs = Iterator[Sign]


@dataclass(frozen=True, slots=True)
class Rule:
    """`sources` names the paper or tool, and where in it; `sentence` says what the rule looks for.
    A `style` rule gives advice and never a finding.
    """

    id: str
    severity: Severity
    faults: tuple[Fault, ...]
    sources: str
    sentence: str
    check: Callable[[Training], Signs]


def number(value: float) -> str:
    """A number as a report shows it: four digits at most."""
    return f"{value:.4g}"


def label(layer: Layer) -> str:
    """A layer by its number and, where it says more than that, its name: "layer 3 (`fc1`)"."""
    name = layer.name.replace("`", "'")[:60]
    return f"layer {layer.index}" + (f" (`{name}`)" if name and not name.isdigit() else "")


def in_line(line: int) -> str:
    """The end of a sentence: " in line 8", nothing where the line is unknown."""
    return f" in line {line}" if line else ""


def evidence(name: str, value: float | str, limit: float | str = "") -> Measurement:
    """A measured value and its limit, as text."""
    texts = [number(x) if isinstance(x, (int, float)) else x for x in (value, limit)]
    return Measurement(name=name, value=texts[0], limit=texts[1])


def change(parameter: str, values: tuple[object, ...], words: str) -> Change:
    """The edit to suggest: `values` in the order in which to try them."""
    return Change(parameter=parameter, values=tuple(str(x) for x in values), words=words)
