"""The command line of the benchmarks: one file for each command."""

from __future__ import annotations

import typer

from benchmarks.commands.ablation import ablation
from benchmarks.commands.bodies import bodies
from benchmarks.commands.builds import builds
from benchmarks.commands.chaos import chaos
from benchmarks.commands.complaints import complaints
from benchmarks.commands.context import context
from benchmarks.commands.deliveries import deliveries
from benchmarks.commands.faults import faults
from benchmarks.commands.flaky import flaky
from benchmarks.commands.issues import issues
from benchmarks.commands.killing import killing
from benchmarks.commands.minimize import minimize
from benchmarks.commands.neutral import neutral
from benchmarks.commands.papers import papers
from benchmarks.commands.places import places
from benchmarks.commands.probe import probe
from benchmarks.commands.repairs import repairs
from benchmarks.commands.sandbox_starts import sandbox_starts
from benchmarks.commands.scale import scale
from benchmarks.commands.soak import soak
from benchmarks.commands.truth import truth
from benchmarks.webhook.command import webhook

# Commands import what is heavy inside their functions, as in `bot.cli`.

app = typer.Typer(
    help="Measure Reprise against known answers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    bodies,
    issues,
    faults,
    complaints,
    ablation,
    killing,
    deliveries,
    soak,
    scale,
    chaos,
    context,
    minimize,
    flaky,
    probe,
    repairs,
    papers,
    places,
    neutral,
    webhook,
    builds,
):
    app.command()(command)
app.command("sandbox")(sandbox_starts)
app.add_typer(truth, name="truth")
