"""The failure signature: what will count as the reported failure, frozen and hashed before anything runs."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from bot.models.base import Record


class CrashSignature(Record):
    """An exception: its class, its core phrase, the operand shapes in it, and the frame of the package at fault.

    `messages` are alternative wordings, normalised (`bot.rules.signatures.wording`); any one of them counts. `frame` is a path below
    site-packages, e.g. "torch/nn/modules/linear.py", or "" when the report does not show it. `checks` are source lines of the program
    whose failure counts (for bare assertions, which have no message).
    """

    kind: Literal["crash"] = "crash"
    exception: str
    messages: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    frame: str = ""
    function: str = ""
    checks: tuple[str, ...] = ()


class OutputSignature(Record):
    """Printed values: each chunk of `observed` lines stands together in the output and no chunk of `expected` does.

    Numbers agree within `rtol` (relative) or `atol`; NaN and infinities only with themselves.
    """

    kind: Literal["output"] = "output"
    observed: tuple[tuple[str, ...], ...]
    expected: tuple[tuple[str, ...], ...] = ()
    rtol: float = 1e-3
    atol: float = 1e-6


class NonFiniteSignature(Record):
    """A NaN or an infinity among the values the program prints for the reported quantity. `labels` are words of the printing line."""

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
    """No progress: the program still lives after `bound_s` seconds without output and, if `idle`, without using the processor."""

    kind: Literal["hang"] = "hang"
    bound_s: float
    idle: bool = True


AnySignature = Annotated[
    CrashSignature | OutputSignature | NonFiniteSignature | WarningSignature | HangSignature, Field(discriminator="kind")
]


def signature_hash(signature: Record) -> str:
    """SHA-256 of the canonical JSON of a signature, as published in every report."""
    return hashlib.sha256(signature.model_dump_json().encode()).hexdigest()
