"""The human view of a repair bench."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.repairs import RepairBench, RepairRow


def line(row: RepairRow) -> str:
    """One row, as progress."""
    if row.error:
        return f"{row.id} {row.arm}: {row.error}"
    patch = "; ".join(row.patch) or "no patch"
    return (
        f"{row.id} {row.arm}: rate {_number(row.improvement_rate)} "
        f"({_number(row.before)} → {_number(row.after)}, key {_number(row.truth)}), "
        f"{'significant' if row.significant else 'not significant'}, {row.trainings} trainings, "
        f"{row.seconds:.0f} of {row.budget_s:.0f} s: {patch}"
    )


def repairs_table(whole: RepairBench) -> RenderableType:
    """The figures by arm."""
    table = Table(title="Repairs")
    heads = (
        "arm", "cases", "median rate", "mean rate", "significant", "edits / key's", "recovered",
        "complexity", "stability", "trainings", "false claims",
    )  # fmt: skip
    for head in heads:
        table.add_column(head, justify="right")
    for arm, x in whole.summary.items():
        table.add_row(
            arm, str(x.cases), f"{x.median_improvement_rate:.2f}", f"{x.mean_improvement_rate:.2f}",
            f"{x.significant_share:.0%}", f"{x.edits_ratio:.2f}", f"{x.recovered:.2f}",
            f"{x.complexity:.2f}", f"{x.stability:.3g}", f"{x.trainings:.1f}", str(x.false_claims),
        )  # fmt: skip
    errors = [Text(f"{row.id} {row.arm}: {row.error}") for row in whole.cases if row.error]
    return Group(table, *errors)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"
