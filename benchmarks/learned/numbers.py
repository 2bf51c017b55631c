"""Numbers that are safe to learn from: an unknown or impossible value is 0, none is far from it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

LIMIT = 6.0


def known(values: Iterable[float | None]) -> list[float]:
    """The finite numbers among values."""
    return [x for x in values if x is not None and math.isfinite(x)]


def middle(values: Iterable[float | None]) -> float | None:
    """The median of the finite numbers."""
    seen = known(values)
    return median(seen) if seen else None


def most(values: Iterable[float | None]) -> float:
    """The largest of the finite numbers, 0 when there is none."""
    return max(known(values), default=0.0)


def clipped(value: float | None, limit: float = LIMIT) -> float:
    """A number between -limit and limit."""
    if value is None or math.isnan(value):
        return 0.0
    return max(-limit, min(limit, value))


def decades(value: float | None, unit: float | None = 1.0) -> float:
    """How many powers of ten a size lies over a unit; a size of 0 lies far below."""
    if value is None or unit is None or math.isnan(value) or not 0 < abs(unit) < math.inf:
        return 0.0
    if math.isinf(value):
        return LIMIT
    return clipped(math.log10(abs(value) / abs(unit))) if value else -LIMIT


def one_of(name: str, value: str, names: Iterable[str]) -> dict[str, float]:
    """One feature for each name, 1 where it is the value's."""
    return {f"{name}.{each}": float(value == each) for each in names}
