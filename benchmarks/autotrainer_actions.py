"""AutoTrainer's table of repairs (its method "balance") as edits of hyperparameters: for each
symptom the actions in the order in which it tries them.

Left out as no hyperparameter stands for them: lower rates on a plateau, noise on the inputs and
thresholded ReLU. Batch normalisation comes after dense layers alone, and gradients are clipped by
their norm where the program is not clipping them by value. Its repairs for over-fitting (l2,
dropout, early stopping) are left out too: its monitor counts that and never reports it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.published_tools.autotrainer import Symptom
from bot.kernel.training_types import Hyperparameter, HyperparameterKind, Loss, Patch
from bot.program import hyperparameters
from bot.program.text import canonical_number
from bot.training.diagnosis.learning import BINARY, ENTROPIES
from bot.training.diagnosis.loss_contract import width
from bot.training.repair import search

_INITIALIZERS = (
    "he_uniform", "lecun_uniform", "glorot_normal", "glorot_uniform", "he_normal", "lecun_normal"
)  # fmt: skip
_OPTIMIZERS = ("sgd", "adam", "nadam", "adamax", "rmsprop")
_CLASSES = ("categorical_crossentropy", "sparse_categorical_crossentropy", "cross_entropy")
_TWO = ("binary_crossentropy", "bce", "bce_logits")


@dataclass(frozen=True)
class PresentValues:
    """The hyperparameters with their present values, what the loss is fed, and chance."""

    found: Sequence[Hyperparameter]
    loss: Loss | None
    chance: random.Random

    def of(self, kind: HyperparameterKind) -> list[Hyperparameter]:
        """Those of a kind."""
        return [one for one in self.found if one.kind == kind]

    @property
    def optimizer(self) -> str:
        """The first one's name."""
        return next((one.value for one in self.of("optimizer")), "")

    @property
    def default_rate(self) -> float:
        """What the tool begins from."""
        return 0.01 if self.optimizer == "sgd" else 0.001


Action = Callable[[PresentValues, int], Patch]
"""The edits of the n-th try of an action, from 0; none where it cannot be done."""


def _edits(parameters: Iterable[Hyperparameter], *values: str) -> Patch:
    """Each hyperparameter with the first of the values that can be written for it."""
    chosen = [
        (one, next((x for x in values if hyperparameters.writable(one, x)), one.value))
        for one in parameters
    ]
    return tuple(search.edit(one, value) for one, value in chosen if value != one.value)


def _started(now: PresentValues, kernel: str, bias: str) -> Patch:
    """Initial values of hidden layers. PyTorch draws as LeCun does by default, and both
    frameworks know fewer functions for biases.
    """
    kernels = _edits(now.of("kernel_initializer")[:-1], kernel, "default")
    biases = now.of("bias_initializer")[:-1]
    return (*kernels, *_edits(biases, bias, "random_uniform"))


def _activated(name: str, kernel: str, bias: str) -> Action:
    def act(now: PresentValues, _: int) -> Patch:
        return (*_edits(now.of("activation")[:-1], name), *_started(now, kernel, bias))

    return act


def _normalised(now: PresentValues, _: int) -> Patch:
    return _edits(now.of("layers"), "batch_norm_after")


def _clipped(now: PresentValues, _: int) -> Patch:
    absent = [one for one in now.of("clipping") if one.value == "none"]
    return _edits(absent, f"{now.chance.uniform(9, 10):.2f}")


def _initialised(now: PresentValues, _: int) -> Patch:
    return _started(now, now.chance.choice(_INITIALIZERS), now.chance.choice(_INITIALIZERS))


def _leaky(now: PresentValues, at: int) -> Patch:
    return _edits(now.of("activation")[:-1], ("leaky_relu", "elu")[at])


def _optimized(now: PresentValues, name: str) -> Patch:
    """Another optimizer with its default rate."""
    rate = 0.01 if name == "sgd" else 0.001
    changed = _edits(now.of("optimizer"), name)
    return (*changed, *_edits(now.of("learning_rate"), canonical_number(rate))) if changed else ()


def _adam(now: PresentValues, _: int) -> Patch:
    return _optimized(now, "adam")


def _another(now: PresentValues, _: int) -> Patch:
    return _optimized(now, now.chance.choice([x for x in _OPTIMIZERS if x != now.optimizer]))


def _slower(now: PresentValues, at: int) -> Patch:
    return _edits(now.of("learning_rate"), canonical_number(now.default_rate * 0.1**at))


def _faster(now: PresentValues, at: int) -> Patch:
    return _edits(now.of("learning_rate"), canonical_number(now.default_rate * 10.0**at))


def _batches(now: PresentValues, at: int) -> Patch:
    return _edits(now.of("batch_size"), str(32 * 2**at))


def _momentum(now: PresentValues, _: int) -> Patch:
    """Only where the program's own optimizer is SGD: a momentum is written for no other."""
    given = now.of("momentum") if now.optimizer == "sgd" else ()
    return _edits(given, f"{now.chance.uniform(0.01, 0.9):.2f}")


def _last_activation(now: PresentValues, _: int) -> Patch:
    loss = now.loss
    if loss is None:
        return ()
    class_name = "softmax" if width(loss) != 1 else "sigmoid"
    name = class_name if loss.name in ENTROPIES | BINARY else "linear"
    return _edits(now.of("activation")[-1:], name)


def _loss(now: PresentValues, _: int) -> Patch:
    loss = now.loss
    if loss is None:
        return ()
    if loss.activation in ("softmax", "sigmoid", "log_softmax"):
        return _edits(now.of("loss"), *(_CLASSES if width(loss) > 2 else _TWO))
    return _edits(now.of("loss"), now.chance.choice(("mse", "mae")))


def _scaled(now: PresentValues, _: int) -> Patch:
    return _edits(now.of("preprocessing"), "min-max")


_selu = _activated("selu", "lecun_uniform", "lecun_uniform")
_relu = _activated("relu", "he_uniform", "zeros")
_tanh = _activated("tanh", "he_uniform", "zeros")

ACTIONS: dict[Symptom, tuple[tuple[Action, int], ...]] = {
    "data": ((_scaled, 1),),
    "activation": ((_last_activation, 1),),
    "loss": ((_loss, 1),),
    "vanish": ((_selu, 1), (_relu, 1), (_normalised, 1)),
    "explode": ((_selu, 1), (_relu, 1), (_clipped, 2), (_tanh, 1), (_normalised, 1)),
    "dying_relu": ((_selu, 1), (_normalised, 1), (_initialised, 3), (_leaky, 2)),
    "unstable": ((_adam, 1), (_slower, 3), (_batches, 4), (_momentum, 3), (_initialised, 3)),
    "not_converging": ((_another, 3), (_faster, 3), (_initialised, 3)),
}  # fmt: skip
"""For each symptom the actions with how often each is tried."""
