"""Facts of the code around a training in PyTorch: calls, parameters and modes, as one record."""

from . import (
    reading,
    source,
    still_terms,
    torch_attention,
    torch_calls,
    torch_modes,
    torch_own,
    torch_parameters,
    torch_rows,
    torch_terms,
    torch_uses,
)
from .core import STATE, contained
from .records import WRITER
from .torch_calls import CALLS

_EARLY = 25


def install(torch):
    """Follow the calls and the modes of a program."""
    torch_calls.install(torch)
    torch_modes.install(torch)
    torch_uses.install(torch)
    torch_attention.install()


def end_step(optimizer, optimizer_state):
    """A step has ended, of which something is written down."""
    is_sampled = optimizer_state.sampled
    optimizer_state.use = torch_calls.end_step(optimizer, optimizer_state.id, is_sampled=is_sampled)
    if not optimizer_state.sampled:
        return
    torch_terms.end_step(optimizer)
    torch_modes.look()
    if torch_parameters.is_due(optimizer_state.steps):
        torch_parameters.look()
    if STATE.steps == _EARLY:  # for a program that is killed
        write()


@contained("facts of the code")
def finish():
    """Tell what is known at the end."""
    if not STATE.steps and CALLS.totals.get("backward"):
        torch_parameters.look()
    if CALLS.totals.get("step") or CALLS.totals.get("backward"):
        write()


def write():
    """Write down what is known now."""
    WRITER.put(
        "code",
        **torch_calls.fields(),
        **torch_parameters.fields(),
        **torch_modes.fields(),
        **torch_uses.fields(),
        mentions=source.mentions(),
        facts={
            "graph_sizes": [float(size) for _, size in sorted(CALLS.graph_sizes.items())],
            "kept_graphs": CALLS.kept_graphs,
            "looks": CALLS.looks,
            "divided": CALLS.divided,
            "batch_loops": source.loops_over_batches(),
            "loss_line": source.line_of_loss(torch_calls.line_of("backward")),
            **torch_attention.facts(),
            **torch_own.facts(),
            **torch_parameters.repeated(),
            **torch_parameters.twins(),
            **torch_rows.facts(),
            **torch_terms.facts(),
            **torch_calls.restored(),
            **source.roots(),
            **source.unused_ends(),
            **reading.facts(),
            **still_terms.facts(),
            **STATE.facts,
        },
    )
