"""Values that a program was asked to print as one JSON line, and the predicates they are held against."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from bot.models.signature import ObservationSignature, Predicate

MARK = "REPRISE"
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "infinity": math.inf, "-infinity": -math.inf}
_MOST_LINE = 20_000

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda seen, wanted: seen < wanted,
    "<=": lambda seen, wanted: seen <= wanted,
    ">": lambda seen, wanted: seen > wanted,
    ">=": lambda seen, wanted: seen >= wanted,
}


def printed(lines: Iterable[str], name: str) -> list[Any]:
    """What a program printed under a name, in order: lines `REPRISE {"name": value}`."""
    found = []
    for line in lines:
        head, _, rest = line.strip().partition(" ")
        if head.rstrip(":") != MARK or len(rest) > _MOST_LINE:
            continue
        try:
            row = json.loads(rest)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and name in row:
            found.append(_value(row[name]))
    return found


def holds(predicate: Predicate, seen: Any) -> bool:
    """Whether a value fits a predicate; one of another type than the predicate is about does not."""
    wanted = _value(list(predicate.value) if isinstance(predicate.value, tuple) else predicate.value)
    match predicate.op:
        case "==":
            return _same(seen, wanted, predicate.rtol)
        case "!=":
            return not _same(seen, wanted, predicate.rtol)
        case "contains":
            return _contains(seen, wanted)
        case "lacks":
            return isinstance(seen, str | list | dict) and not _contains(seen, wanted)
        case "type":
            return isinstance(seen, str) and isinstance(wanted, str) and seen.rsplit(".", 1)[-1] == wanted.rsplit(".", 1)[-1]
        case "finite":
            return _number(seen) and math.isfinite(seen)
        case "nan":
            return _number(seen) and math.isnan(seen)
        case _:
            return _number(seen) and _number(wanted) and _COMPARE[predicate.op](seen, wanted)


def outcome(signature: ObservationSignature, lines: Iterable[str]) -> tuple[bool | None, str]:
    """True when the reported state was printed, False when the right one was, None when neither is clear; with the values."""
    values = printed(lines, signature.name)
    shown = ", ".join(json.dumps(value)[:200] for value in values[:5])
    if not values:
        return None, f"the program did not print `{signature.name}`"
    wrong = [holds(signature.wrong, value) for value in values]
    right = [holds(signature.right, value) for value in values]
    if any(wrong) and not any(right):
        return True, shown
    if all(right) and not any(wrong):
        return False, shown
    return None, shown


def words(predicate: Predicate) -> str:
    """A predicate as a clause."""
    if predicate.op in {"finite", "nan"}:
        return f"is {predicate.op}"
    return f"{predicate.op} {json.dumps(predicate.value)}"


def _value(value: Any) -> Any:
    """JSON has no NaN: programs print its name."""
    if isinstance(value, str):
        return _NONFINITE.get(value.strip().lower(), value)
    if isinstance(value, list):
        return [_value(each) for each in value]
    return value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(seen: Any, wanted: Any, rtol: float) -> bool:
    if isinstance(seen, bool) or isinstance(wanted, bool):
        return seen is wanted
    if _number(seen) and _number(wanted):
        return (math.isnan(seen) and math.isnan(wanted)) or math.isclose(seen, wanted, rel_tol=rtol, abs_tol=1e-12)
    if isinstance(seen, list) and isinstance(wanted, list):
        return len(seen) == len(wanted) and all(_same(one, other, rtol) for one, other in zip(seen, wanted, strict=True))
    return type(seen) is type(wanted) and bool(seen == wanted)


def _contains(seen: Any, wanted: Any) -> bool:
    if isinstance(seen, str):
        return isinstance(wanted, str) and wanted in seen
    if isinstance(seen, list):
        return any(_same(each, wanted, 1e-4) for each in seen)
    return isinstance(seen, dict) and isinstance(wanted, str) and wanted in seen
