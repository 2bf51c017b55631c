"""Values that a program was asked to print as one JSON line, and the predicates on them."""

import json
import math
import operator
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from bot.models.signature import ObservationSignature, Predicate

MARK = "REPRISE"
_NONFINITE = {name: float(name) for name in ("nan", "inf", "-inf", "infinity", "-infinity")}
_MOST_LINE = 20_000
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_IS = {"finite": math.isfinite, "nan": math.isnan}


def printed(lines: Iterable[str], name: str) -> list[Any]:
    """What a program printed under a name, in order: lines `REPRISE {"name": value}`."""
    found = []
    for line in lines:
        head, _, rest = line.strip().partition(" ")
        if head.rstrip(":") == MARK and len(rest) <= _MOST_LINE:
            with suppress(ValueError):  # this parser bounds the depth
                row = from_json(rest)
                found += [_value(row[name])] if isinstance(row, dict) and name in row else []
    return found


def holds(predicate: Predicate, seen: Any) -> bool:
    """Whether a value fits a predicate; a value of the wrong type does not."""
    wanted, op = predicate.value, predicate.op
    wanted = _value(list(wanted) if isinstance(wanted, tuple) else wanted)
    if op in {"==", "!="}:
        return _same(seen, wanted, predicate.rtol) is (op == "==")
    if op in {"contains", "lacks"}:
        fits = op == "contains" or isinstance(seen, str | list | dict)
        return fits and _contains(seen, wanted) is (op == "contains")
    if op == "type":
        both = isinstance(seen, str) and isinstance(wanted, str)
        return both and seen.rsplit(".", 1)[-1] == wanted.rsplit(".", 1)[-1]
    if op in _IS:
        return _number(seen) and _IS[op](seen)
    return _number(seen) and _number(wanted) and _COMPARE[op](seen, wanted)


def outcome(signature: ObservationSignature, lines: Iterable[str]) -> tuple[bool | None, str]:
    """Whether the reported (True) or the expected state (False) was printed, and the values.

    None when neither is clear.
    """
    values = printed(lines, signature.name)
    if not values:
        return None, f"the program did not print `{signature.name}`"
    shown = ", ".join(json.dumps(value)[:200] for value in values[:5])
    wrong = [holds(signature.wrong, value) for value in values]
    right = [holds(signature.right, value) for value in values]
    if any(wrong) and not any(right):
        return True, shown
    return (False if all(right) and not any(wrong) else None), shown


def words(predicate: Predicate) -> str:
    """A predicate as a clause."""
    plain = f"{predicate.op} {json.dumps(predicate.value)}"
    return f"is {predicate.op}" if predicate.op in _IS else plain


def _value(value: Any) -> Any:
    """A parsed value; JSON has no NaN or infinity, so programs print their names."""
    if isinstance(value, str):
        return _NONFINITE.get(value.strip().lower(), value)
    return [_value(item) for item in value] if isinstance(value, list) else value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(seen: Any, wanted: Any, rtol: float) -> bool:
    if isinstance(seen, bool) or isinstance(wanted, bool):
        return seen is wanted
    if _number(seen) and _number(wanted):
        both_nan = math.isnan(seen) and math.isnan(wanted)
        return both_nan or math.isclose(seen, wanted, rel_tol=rtol, abs_tol=1e-12)
    if isinstance(seen, list) and isinstance(wanted, list):
        alike = (_same(one, other, rtol) for one, other in zip(seen, wanted, strict=False))
        return len(seen) == len(wanted) and all(alike)
    return type(seen) is type(wanted) and bool(seen == wanted)


def _contains(seen: Any, wanted: Any) -> bool:
    if isinstance(seen, list):
        return any(_same(item, wanted, 1e-4) for item in seen)
    return isinstance(seen, str | dict) and isinstance(wanted, str) and wanted in seen
