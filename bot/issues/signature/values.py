"""Comparing printed values: lines token by token, numbers within a tolerance; and the one
JSON line of a check.
"""

import json
import math
import operator
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from bot.issues.signature.wording import strip_ansi
from bot.kernel.bug import ObservationSignature, Predicate

# Comparing printed values: lines token by token, numbers within a tolerance, NaN and infinities
# only with themselves.

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf(?:inity)?|nan)(?![\w])", re.IGNORECASE
)
_SHAPE = re.compile(r"\b(?:(?:torch\.)?Size|TensorShape)\(\[([\d,]*)\]\)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_MOST_LINES = 5000

Chunk = tuple[str, ...]


def clean_display(line: str) -> str:
    """A line as a person reads it: without escapes, blanks joined."""
    return " ".join(strip_ansi(line).split())


def clean(line: str) -> str:
    """A line made comparable: without escapes, addresses and superfluous spaces; a shape as the
    tuple that people write for it. Spaces next to brackets and commas do not count.
    """
    text = _ADDRESS.sub("<addr>", strip_ansi(line))
    text = re.sub(r"\bDeviceArray(?=\()", "Array", text)  # as JAX calls it since 0.4
    text = re.sub(r"\s*([\[\](){},:=])\s*", r"\1", text)
    return " ".join(_SHAPE.sub(_as_tuple, text).split())


def _as_tuple(shape: re.Match[str]) -> str:
    sizes = shape[1]
    return f"({sizes},)" if sizes.isdigit() else f"({sizes})"


def lines(text: str) -> list[str]:
    """The non-blank lines of an output, cleaned; a progress bar's carriage returns end lines
    too.
    """
    return list(map(clean, nonempty_lines(text)))


def nonempty_lines(text: str) -> list[str]:
    """The same lines as a person reads them."""
    return list(filter(None, map(clean_display, re.split(r"[\r\n]+", text)[:_MOST_LINES])))


def clean_chunks(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    """Chunks with their lines made comparable."""
    return tuple(tuple(map(clean, chunk)) for chunk in chunks)


def chunks(text: str) -> tuple[Chunk, ...]:
    """The paragraphs of a pasted output, as a person reads their lines; those that are only an
    ellipsis are left out.
    """
    paragraphs = re.split(r"\n\s*\n", text.replace("\r\n", "\n"))
    chunk_list = (
        tuple(line for line in nonempty_lines(paragraph) if line not in {"...", "\u2026"})
        for paragraph in paragraphs
    )
    return tuple(filter(None, chunk_list))


def same_number(one: float, other: float, rtol: float, atol: float) -> bool:
    """Equal within either tolerance; NaN equals NaN, an infinity equals itself."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=rtol, abs_tol=atol)


def same_line(one: str, other: str, rtol: float, atol: float) -> bool:
    """Whether two cleaned lines say the same: equal text between numbers, and equal numbers."""
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=False)
    return one == other or (
        skeleton(one) == skeleton(other)
        and all(_same_text_number(a, b, rtol, atol) for a, b in pairs)
    )


def _same_text_number(one: str, other: str, rtol: float, atol: float) -> bool:
    if set(".en").isdisjoint((one + other).lower()):
        return int(one) == int(other)
    return same_number(float(one), float(other), rtol, atol)


def values_hold(
    chunk: Chunk, output: list[str], rtol: float, atol: float, slack: int = 3
) -> tuple[int, int] | None:
    """Where an output contains a chunk: (first, past last) line, or None.

    Its lines must occur in order, with at most `slack` foreign lines between them (a log, a
    warning), or all together in another order, which libraries do not promise. A line with the same
    words and another value is not foreign: then the output does not contain the chunk.
    """
    for start in range(len(output)):
        end, size = _in_order(chunk, output, start, rtol, atol, slack), start + len(chunk)
        if end is not None or _permuted(chunk, output[start:size], rtol, atol):
            return start, size if end is None else end
    return None


def _in_order(
    chunk: Chunk, output: list[str], start: int, rtol: float, atol: float, slack: int
) -> int | None:
    at, foreign = start, 0
    for place, expected_line in enumerate(chunk):
        while at < len(output) and not same_line(output[at], expected_line, rtol, atol):
            if place == 0 or foreign == slack or skeleton(output[at]) == skeleton(expected_line):
                return None
            at, foreign = at + 1, foreign + 1
        if at == len(output):
            return None
        at += 1
    return at


def _permuted(chunk: Chunk, window: list[str], rtol: float, atol: float) -> bool:
    rest = list(chunk)
    for line in window:
        hit = next(
            (expected_line for expected_line in rest if same_line(line, expected_line, rtol, atol)),
            None,
        )
        if hit is None:
            return False
        rest.remove(hit)
    return not rest


def skeleton(line: str) -> str:
    """A cleaned line with its numbers left out."""
    return _NUMBER.sub("#", line)


def number_pattern(line: str) -> str:
    """A cleaned line with only how its numbers are written: whole ones as `#`, others as `#.`."""
    return _NUMBER.sub(lambda match: "#." if set(match[0].lower()) & set(".en") else "#", line)


def count(line: str) -> int:
    """How many numbers a line contains."""
    return len(_NUMBER.findall(line))


def numbers(line: str) -> tuple[float, ...]:
    """The numbers of a line, in their order."""
    return tuple(map(float, _NUMBER.findall(line)))


def nonfinite(line: str) -> frozenset[str]:
    """The kinds of non-finite numbers in a line: "nan", "inf"."""
    return frozenset(
        number.lower().lstrip("+-")[:3]
        for number in _NUMBER.findall(line)
        if number[-1].lower() in "nfy"
    )


def within(value: str, output: list[str], rtol: float, atol: float) -> int | None:
    """The first line of the output that contains a short value as a whole word (numbers within
    tolerance), or None.
    """
    clean_value = clean(value)
    word = re.compile(r"(?<!\w)" + re.escape(clean_value) + r"(?!\w)")
    numeric = _NUMBER.fullmatch(clean_value)
    for index, line in enumerate(output):
        numbers = _NUMBER.findall(line) if numeric else ()
        near = any(_same_text_number(clean_value, number, rtol, atol) for number in numbers)
        if near or (not numeric and word.search(line)):
            return index
    return None


# Values that a program was asked to print as one JSON line, and the predicates on them.

MARK = "REPRISE"
_NONFINITE = {name: float(name) for name in ("nan", "inf", "-inf", "infinity", "-infinity")}
_MOST_LINE = 20_000
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_IS = {"finite": math.isfinite, "nan": math.isnan}


def printed_values(lines: Iterable[str], name: str) -> list[Any]:
    """What a program printed under a name, in order: lines `REPRISE {"name": value}`."""
    values = []
    for line in lines:
        head, _, rest = line.strip().partition(" ")
        if head.rstrip(":") == MARK and len(rest) <= _MOST_LINE:
            with suppress(ValueError):  # this parser bounds the depth
                row = from_json(rest)
                values += [_value(row[name])] if isinstance(row, dict) and name in row else []
    return values


def check_holds(predicate: Predicate, value: Any) -> bool:
    """Whether a value fits a predicate; a value of the wrong type does not."""
    bound, op = predicate.value, predicate.op
    bound = _value(list(bound) if isinstance(bound, tuple) else bound)
    if op in {"==", "!="}:
        return _same(value, bound, predicate.rtol) is (op == "==")
    if op in {"contains", "lacks"}:
        fits = op == "contains" or isinstance(value, str | list | dict)
        return fits and _contains(value, bound) is (op == "contains")
    if op == "type":
        both = isinstance(value, str) and isinstance(bound, str)
        return both and value.rsplit(".", 1)[-1] == bound.rsplit(".", 1)[-1]
    if op in _IS:
        return _number(value) and _IS[op](value)
    return _number(value) and _number(bound) and _COMPARE[op](value, bound)


def outcome(signature: ObservationSignature, lines: Iterable[str]) -> tuple[bool | None, str]:
    """Whether the reported (True) or the expected state (False) was printed, and the values.

    None when neither is clear.
    """
    values = printed_values(lines, signature.name)
    if not values:
        return None, f"the program did not print `{signature.name}`"
    listing = ", ".join(json.dumps(value)[:200] for value in values[:5])
    wrong = [check_holds(signature.wrong, value) for value in values]
    right = [check_holds(signature.right, value) for value in values]
    if any(wrong) and not any(right):
        return True, listing
    return (False if all(right) and not any(wrong) else None), listing


def all_same(values: list[Any], others: list[Any], rtol: float = 1e-4) -> bool:
    """Whether as many values were printed twice and each is the other's."""
    return len(values) == len(others) and all(
        _same(value, other, rtol) for value, other in zip(values, others, strict=True)
    )


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


def _same(value: Any, expected_value: Any, rtol: float) -> bool:
    if isinstance(value, bool) or isinstance(expected_value, bool):
        return value is expected_value
    if _number(value) and _number(expected_value):
        both_nan = math.isnan(value) and math.isnan(expected_value)
        return both_nan or math.isclose(value, expected_value, rel_tol=rtol, abs_tol=1e-12)
    if isinstance(value, list) and isinstance(expected_value, list):
        alike = (_same(one, other, rtol) for one, other in zip(value, expected_value, strict=False))
        return len(value) == len(expected_value) and all(alike)
    return type(value) is type(expected_value) and bool(value == expected_value)


def _contains(value: Any, expected_value: Any) -> bool:
    if isinstance(value, list):
        return any(_same(item, expected_value, 1e-4) for item in value)
    return (
        isinstance(value, str | dict)
        and isinstance(expected_value, str)
        and expected_value in value
    )
