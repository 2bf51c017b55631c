"""The human view of a diagnosis bench."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.faults import FaultBench, FaultRow, ToolFigures
from bot.kernel.document import usage_text


def line(row: FaultRow) -> str:
    """One case in a line."""
    if row.error:
        return f"{row.id}: {row.error}"
    score = "healthy" if row.healthy else f"F3 {row.f3 or 0:.2f}"
    return f"{row.id}: {score}, found {', '.join(row.found) or 'nothing'} ({row.seconds:.0f} s)"


def faults_table(bench: FaultBench) -> Group:
    """One row a case, fault types, and each tool's rules beside the union."""
    cases = _table("id", "truth", "found", "recall", "precision", "F3", "seconds")
    for row in bench.cases:
        truth = "healthy" if row.healthy else " ".join(row.truth)
        numbers = map(_number, (row.recall, row.precision, row.f3, row.seconds))
        cases.add_row(row.id, truth, row.error or " ".join(row.found), *numbers)
    summary = bench.summary
    types = _table("fault", "true", "found", "wrong")
    for code, counts in summary.by_code.items():
        types.add_row(code, str(counts.true), str(counts.found), str(counts.wrong))
    parts: list[RenderableType] = [cases, Text(), types]
    if (figures_of_code := summary.code).programs:
        counts_text = (
            f"{figures_of_code.named} named, {figures_of_code.in_line} with the line, "
            f"{figures_of_code.first} first"
        )
        parts += [
            Text(),
            Text(f"Faults that are code: {figures_of_code.programs} programs, {counts_text}."),
        ]
    groups = {
        "rules": {"all": summary, **summary.tools},
        "framework": summary.by_framework,
        "family": summary.by_family,
    }
    for title, figures in groups.items():
        parts += [Text(), _figures(title, figures)] if figures else []
    said = [Text(f"{row.id}: {row.opinion}") for row in bench.cases if row.opinion]
    if said:
        parts += [Text(), *said, Text(usage_text(summary.usage))]
    return Group(*parts)


def _figures(title: str, figures: Mapping[str, ToolFigures]) -> Table:
    table = _table(title, "F3", "F3, alternatives", "healthy silent")
    for name, of in figures.items():
        table.add_row(name, *map(_number, (of.f3, of.f3_alternatives, of.healthy_silent)))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
