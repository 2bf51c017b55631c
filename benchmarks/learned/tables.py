"""The human view of the comparison."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from benchmarks.learned.comparison import Comparison


def comparison_table(result: Comparison) -> Group:
    """Cases, then each method's figures, fault types and families."""
    methods = tuple(result.methods)
    summary = _table("method", "recall", "precision", "F3", "F3, alternatives", "healthy silent")
    for name, bench in result.methods.items():
        of = bench.summary
        figures = (of.recall, of.precision, of.f3, of.f3_alternatives, of.healthy_silent)
        summary.add_row(name, *map(_number, figures))
    parts: list[Table | Text] = [
        _cases(result),
        _means("fault", result.by_code, methods),
        _means("family", _by_family(result), methods),
        summary,
        Text(_directions(result)),
    ]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def _cases(result: Comparison) -> Table:
    table = _table("id", "truth", *(f"{name}" for name in result.methods))
    for rows in zip(*(bench.cases for bench in result.methods.values()), strict=True):
        truth = "healthy" if rows[0].healthy else " ".join(rows[0].truth)
        found = [f"{_number(row.f3)} {' '.join(row.found)}".strip() for row in rows]
        table.add_row(rows[0].id, truth, *found)
    return table


def _by_family(result: Comparison) -> dict[str, dict[str, float | None]]:
    families = {x for bench in result.methods.values() for x in bench.summary.by_family}
    return {
        family: {name: of.summary.by_family[family].f3 for name, of in result.methods.items()}
        for family in sorted(families)
    }


def _means(
    word: str, groups: Mapping[str, Mapping[str, float | None]], methods: tuple[str, ...]
) -> Table:
    table = _table(word, *methods)
    for name, means in groups.items():
        table.add_row(name, *(_number(means.get(method)) for method in methods))
    return table


def _directions(result: Comparison) -> str:
    told = (f"{name} {right} of {of}" for name, (right, of) in result.directions.items())
    return f"Direction of a wrong learning rate: {', '.join(told)}"


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
