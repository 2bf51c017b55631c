"""The loss of a training run as rows of text for a terminal: braille dots, or asterisks."""

from collections.abc import Sequence

from bot.models.diagnosis import Curve
from bot.render.scales import Scale, number, scale

_ROWS, _WIDEST, _LABEL = 8, 72, 10
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a braille cell, by row and column."""


def curve_rows(curves: Sequence[Curve], width: int, *, ascii_only: bool = False) -> list[str]:
    """The training loss over the steps, with numbers on both axes; empty without one."""
    curve = next((one for one in curves if one.panel == "loss"), None)
    if curve is None or len(curve.points) < 2 or width < 3 * _LABEL:
        return []
    columns = min(width, _WIDEST) - _LABEL - 2
    up = scale(value for _, value in curve.points)
    grid = _grid(curve, up, (columns, _ROWS) if ascii_only else (2 * columns, 4 * _ROWS))
    rows = _starred(grid) if ascii_only else _braille(grid)
    bar = "|" if ascii_only else "\u2502"
    labels = _labels(up)
    named = [f"{labels.get(at, ''):>{_LABEL}} {bar}{row}" for at, row in enumerate(rows)]
    first, last = (number(round(curve.points[at][0])) for at in (0, -1))
    foot = f"{first}{last:>{max(columns - len(first), len(last) + 1)}}"
    log = ", log scale" if up.log else ""
    return [f"Loss of {curve.name}{log}", *named, f"{'step':>{_LABEL}}  {foot}"]


def _labels(up: Scale) -> dict[int, str]:
    middle = up.ticks[len(up.ticks) // 2]
    rows = {round((1 - up.at(value)) * (_ROWS - 1)): value for value in (up.low, middle, up.high)}
    return {row: number(value) for row, value in rows.items()}


def _grid(curve: Curve, up: Scale, size: tuple[int, int]) -> list[list[bool]]:
    """The dots of the curve, joined from column to column."""
    columns, rows = size
    grid = [[False] * columns for _ in range(rows)]
    across = Scale(curve.points[0][0], max(curve.points[-1][0], curve.points[0][0] + 1))
    before: int | None = None
    for step, value in curve.points:
        column = round(across.at(step) * (columns - 1))
        row = round((1 - up.at(value)) * (rows - 1))
        low, high = sorted((row, row if before is None else before))
        for each in range(low, high + 1):
            grid[each][column] = True
        before = row
    return grid


def _starred(grid: list[list[bool]]) -> list[str]:
    return ["".join("*" if dot else " " for dot in row).rstrip() for row in grid]


def _braille(grid: list[list[bool]]) -> list[str]:
    rows = []
    for top in range(0, len(grid), 4):
        cells = []
        for left in range(0, len(grid[0]), 2):
            bits = sum(
                _DOTS[row][column]
                for row in range(4)
                for column in range(2)
                if grid[top + row][left + column]
            )
            cells.append(chr(0x2800 + bits) if bits else " ")
        rows.append("".join(cells).rstrip())
    return rows
