"""The failure signature: what will count as the reported failure, frozen and hashed before anything runs."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from bot.models.base import Record


class CrashSignature(Record):
    """An exception: its class, its core phrase, the operand shapes in it, and the frame of the package at fault.

    `message` is as reported; how it is compared is in `bot.rules.signatures.wording`. `frame` is a path below site-packages,
    e.g. "torch/nn/modules/linear.py", or "" when the report does not show it. `checks` are source lines of the program whose
    failure counts (for bare assertions, which have no message).
    """

    kind: Literal["crash"] = "crash"
    exception: str
    message: str = ""
    shapes: tuple[str, ...] = ()
    frame: str = ""
    function: str = ""
    checks: tuple[str, ...] = ()


class OutputSignature(Record):
    """Printed values: each chunk of `observed` lines stands together in the output and no chunk of `expected` does.

    Numbers agree within `rtol` (relative) or `atol`; NaN and infinities only with themselves. With `within_line` the values
    come from a sentence of the report ("returns nan instead of 1.0") and a part of a printed line is enough.
    """

    kind: Literal["output"] = "output"
    observed: tuple[tuple[str, ...], ...]
    expected: tuple[tuple[str, ...], ...] = ()
    within_line: bool = False
    rtol: float = 1e-3
    atol: float = 1e-6


class NonFiniteSignature(Record):
    """A NaN or an infinity among the values the program prints for the reported quantity. `labels` are words of the printing
    line.
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
    """No progress: the program still lives after `bound_s` seconds without output and, if `idle`, without using the
    processor.
    """

    kind: Literal["hang"] = "hang"
    bound_s: float
    idle: bool = True


Member = Annotated[
    CrashSignature | OutputSignature | NonFiniteSignature | WarningSignature | HangSignature, Field(discriminator="kind")
]


class AlternativesSignature(Record):
    """Several ways in which the report shows one failure; any of them counts."""

    kind: Literal["any"] = "any"
    members: tuple[Member, ...]


AnySignature = Annotated[
    CrashSignature | OutputSignature | NonFiniteSignature | WarningSignature | HangSignature | AlternativesSignature,
    Field(discriminator="kind"),
]


def signature_hash(signature: Record) -> str:
    """SHA-256 of the canonical JSON of a signature, as published in every report."""
    return hashlib.sha256(signature.model_dump_json().encode()).hexdigest()
