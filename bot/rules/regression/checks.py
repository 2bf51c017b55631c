"""What a regression test has to check: how the reported failure shows in the run that had it."""

import builtins
import math
import re
from dataclasses import dataclass
from typing import Any

from bot.models.attempt import Attempt, Failure
from bot.models.signature import (
    CrashSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    Predicate,
    WarningSignature,
)
from bot.rules.signatures import warned

_MOST_LINES = 8


@dataclass(frozen=True, slots=True)
class Check:
    """How a test fails: it raises `raises` by itself, or after the program the lines of `asserts`
    do, which see its `output` or the warnings that were `captured`. `says` is the failure for
    people, as the report or the run has it.
    """

    raises: str
    says: str
    asserts: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    sees: str = ""


def of(member: Member, shown: Attempt) -> Check | None:
    """The check for the signature that a run matched; None where no test can tell in time."""
    judgement, execution = shown.judgement, shown.execution
    if execution.signal is not None or execution.timed_out or execution.idle or execution.oom:
        return None
    match member:
        case CrashSignature():
            failure = judgement.failure
            return _raised(failure) if failure is not None else None
        case ObservationSignature():
            return _observed(member)
        case NonFiniteSignature():
            return _finite(member)
        case WarningSignature():
            return _warned(judgement.evidence)
        case _ if member.kind == "output":
            return _printed(judgement.evidence)
    return None


def _raised(failure: Failure) -> Check | None:
    says = f"{failure.exception}: {failure.message}"
    if failure.swallowed:
        first = " ".join(failure.message.strip().split("\n")[0].split())
        return _absent((first,), says) if first else None
    return Check(_importable(failure), says)


def _importable(failure: Failure) -> str:
    """The exception, or the nearest of its bases that every Python has."""
    for name in (failure.exception, *failure.bases):
        known = getattr(builtins, name.removeprefix("builtins."), None)
        if isinstance(known, type) and issubclass(known, BaseException):
            return known.__name__
    return "Exception"


def _printed(evidence: str) -> Check | None:
    lines = [" ".join(line.split()) for line in evidence.splitlines() if line.strip()]
    return _absent(tuple(lines[:_MOST_LINES]), lines[0]) if lines else None


def _absent(lines: tuple[str, ...], says: str) -> Check:
    """The output must not hold these lines, blanks aside."""
    asserts = (
        'printed = [" ".join(line.split()) for line in output.splitlines()]',
        f"reported = {_literal(list(lines))}",
        "assert not all(any(line in row for row in printed) for line in reported)",
    )
    return Check("AssertionError", says, asserts, sees="output")


def _finite(member: NonFiniteSignature) -> Check:
    words = "|".join(member.values)
    pattern = rf"(?<![\w.])-?(?:{words})(?:inity)?(?!\w)"
    asserts = (f'assert not re.search(r"{pattern}", output, re.IGNORECASE)',)
    says = f"{' or '.join(member.values)} was printed"
    return Check("AssertionError", says, asserts, ("import re",), "output")


def _warned(evidence: str) -> Check | None:
    """A check for a warning of Python's own; those of other loggers are not caught in a test."""
    line = evidence.splitlines()[0] if evidence else ""
    if not warned.is_placed(line):
        return None
    words = re.split(r"\b\w*Warning:\s*", line, maxsplit=1)[-1].strip()[:60]
    asserts = (
        f"reported = {_literal(words)}",
        "assert not [each for each in captured if reported in str(each.message)]",
    )
    return Check("AssertionError", line, asserts, sees="caught")


def _observed(member: ObservationSignature) -> Check:
    name = _literal(member.name)
    asserts = (
        "marked = [line for line in output.splitlines() if line.startswith('REPRISE')]",
        "printed = [json.loads(line.partition(' ')[2]) for line in marked]",
        f"values = [row[{name}] for row in printed if {name} in row]",
        f"assert values and all({_holds(member.right)} for value in values)",
    )
    imports = ("import json", "import math")
    return Check("AssertionError", member.says, asserts, imports, "output")


def _holds(predicate: Predicate) -> str:
    """A predicate on `value` as an expression."""
    wanted, op = predicate.value, predicate.op
    number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
    text = _literal(list(wanted) if isinstance(wanted, tuple) else wanted)
    match op:
        case "==" | "!=" if number:
            close = f"math.isclose(float(value), {text}, rel_tol={predicate.rtol})"
            return close if op == "==" else f"not {close}"
        case "==" | "!=":
            return f"value {op} {text}"
        case "contains" | "lacks":
            return f"{text} {'in' if op == 'contains' else 'not in'} value"
        case "type":
            return f'value.rsplit(".", 1)[-1] == {_literal(str(wanted).rsplit(".", 1)[-1])}'
        case "finite" | "nan":
            return f"math.is{op}(float(value))"
    return f"float(value) {op} {text}"


def _literal(value: Any) -> str:
    """A value as Python writes it, in plain ASCII."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return ascii(value)
