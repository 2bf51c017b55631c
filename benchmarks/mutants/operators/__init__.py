"""The operators: each makes every mutant of a family that it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.mutants.family import Family
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.operators.activations import activations_added, activations_changed
from benchmarks.mutants.operators.losses import losses_changed
from benchmarks.mutants.operators.rewrites import rewritten
from benchmarks.mutants.operators.training import (
    batches_changed,
    epochs_changed,
    optimizers_changed,
    rates_changed,
)
from benchmarks.mutants.operators.weights import (
    biases_changed,
    regularizers_added,
    weights_changed,
)

Operator = Callable[[Family], Iterator[Mutant]]

OPERATORS: tuple[Operator, ...] = (
    rates_changed,
    epochs_changed,
    batches_changed,
    optimizers_changed,
    losses_changed,
    activations_changed,
    activations_added,
    weights_changed,
    biases_changed,
    regularizers_added,
    rewritten,
)


def mutants(family: Family) -> tuple[Mutant, ...]:
    """Every mutant of a family, each with another text."""
    every = (mutant for operator in OPERATORS for mutant in operator(family))
    return tuple({mutant.source: mutant for mutant in every}.values())
