"""The operators: each makes every mutant of a family that it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.mutants.family import Family
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.operators.activations import activations_added, activations_changed
from benchmarks.mutants.operators.code_loops import (
    batches_left,
    batches_repeated,
    calls_dropped,
    clipping_added,
    modes_changed,
    reset_moved,
    schedules_moved,
    step_moved,
)
from benchmarks.mutants.operators.code_models import (
    axes_swapped,
    dropout_forced,
    graphs_cut,
    layers_hidden,
    losses_summed,
    optimizers_blinded,
    parameters_frozen,
    shapes_left,
)
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

CODE_OPERATORS: tuple[Operator, ...] = (
    calls_dropped,
    reset_moved,
    step_moved,
    schedules_moved,
    clipping_added,
    modes_changed,
    batches_repeated,
    batches_left,
    parameters_frozen,
    optimizers_blinded,
    layers_hidden,
    graphs_cut,
    losses_summed,
    axes_swapped,
    shapes_left,
    dropout_forced,
)
"""Those whose faults are code; they know programs of PyTorch."""


def mutants(family: Family, operators: tuple[Operator, ...] = OPERATORS) -> tuple[Mutant, ...]:
    """Every mutant of a family, each with another text."""
    every = (mutant for operator in operators for mutant in operator(family))
    return tuple({mutant.source: mutant for mutant in every}.values())
