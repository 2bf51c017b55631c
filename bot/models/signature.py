"""The failure signature: what will count as the reported failure, frozen and hashed before
anything runs.
"""

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from bot.models.base import Record


class Place(Record):
    """A line of a quoted traceback: `file` is a path below site-packages, or "" for the program's
    own.
    """

    file: str = ""
    function: str = ""
    line: int | None = None
    code: str = ""


class CrashSignature(Record):
    """An exception: its class, its whole message, the operand shapes in it, and where it arose.

    `exception` is "" where the report quotes words without a class. `message` is as reported; how
    it is compared is in `bot.rules.signatures.wording`. `frame` is a path below site-packages, e.g.
    "torch/nn/modules/linear.py", or "" when the report does not show it; `places` are all lines of
    the quoted traceback, outermost first. `checks` are source lines of the program whose failure
    counts (for bare assertions and remarks on a statement, which have no message).
    """

    kind: Literal["crash"] = "crash"
    exception: str
    message: str = ""
    shapes: tuple[str, ...] = ()
    frame: str = ""
    function: str = ""
    places: tuple[Place, ...] = ()
    checks: tuple[str, ...] = ()


class OutputSignature(Record):
    """Printed values: each chunk of `observed` lines stands together in the output and no chunk
    of `expected` does. They are as reported but for blanks; how they are compared is in
    `bot.rules.signatures.values`.

    Numbers agree within `rtol` (relative) or `atol`; NaN and infinities only with themselves. With
    `within_line` the values come from a sentence of the report ("returns nan instead of 1.0") and a
    part of a printed line is enough.
    """

    kind: Literal["output"] = "output"
    observed: tuple[tuple[str, ...], ...]
    expected: tuple[tuple[str, ...], ...] = ()
    within_line: bool = False
    rtol: float = 1e-3
    atol: float = 1e-6


class NonFiniteSignature(Record):
    """A NaN or an infinity among the values the program prints for the reported quantity.
    `labels` are words of the printing line.
    """

    kind: Literal["nonfinite"] = "nonfinite"
    values: tuple[Literal["nan", "inf"], ...]
    labels: tuple[str, ...] = ()


class WarningSignature(Record):
    """A warning of this category and wording, at least `at_least` times."""

    kind: Literal["warning"] = "warning"
    category: str = ""
    message: str
    at_least: int = 1


class HangSignature(Record):
    """No progress: the program still lives after `bound_s` seconds without output and, if
    `idle`, without using the processor.
    """

    kind: Literal["hang"] = "hang"
    bound_s: float
    idle: bool = True


class Predicate(Record):
    """A condition on one value. `value` is JSON; comparisons of numbers allow `rtol`. "type"
    compares the name of a type, "contains" holds for text and lists, "finite" and "nan" need no
    value.
    """

    op: Literal["==", "!=", "<", "<=", ">", ">=", "contains", "lacks", "type", "finite", "nan"]
    value: bool | int | float | str | tuple[bool | int | float | str | None, ...] | None = None
    rtol: float = 1e-4


class ObservationSignature(Record):
    """A silent failure as a predicate over a value that the program computes and prints in one
    JSON line `REPRISE {"<name>": value}`: `wrong` holds when the report is right, `right` when
    the library does what it should. A value for which neither or both hold decides nothing.
    `api` are dotted names of the package that the value must come from; `says` is the reported
    claim in one sentence, for people.
    """

    kind: Literal["observation"] = "observation"
    name: str
    says: str
    wrong: Predicate
    right: Predicate
    api: tuple[str, ...]


Member = Annotated[
    CrashSignature
    | OutputSignature
    | NonFiniteSignature
    | WarningSignature
    | HangSignature
    | ObservationSignature,
    Field(discriminator="kind"),
]


class AlternativesSignature(Record):
    """Several ways in which the report shows one failure; any of them counts."""

    kind: Literal["any"] = "any"
    members: tuple[Member, ...]


AnySignature = Annotated[
    CrashSignature
    | OutputSignature
    | NonFiniteSignature
    | WarningSignature
    | HangSignature
    | ObservationSignature
    | AlternativesSignature,
    Field(discriminator="kind"),
]


def members_of(signature: AnySignature) -> tuple[Member, ...]:
    """The signatures of which any one counts."""
    return signature.members if isinstance(signature, AlternativesSignature) else (signature,)


def signature_hash(signature: Record) -> str:
    """SHA-256 of the canonical JSON of a signature, as published in every report."""
    return hashlib.sha256(signature.model_dump_json().encode()).hexdigest()
