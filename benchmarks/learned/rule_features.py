"""What the rules say of a program and of a layer, as features beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from benchmarks.learned.features import Features
from bot.models.diagnosis import FaultType, Finding

_FAULTS: tuple[str, ...] = get_args(FaultType)


def of_findings(findings: Sequence[Finding], layer: int | None = None) -> Features:
    """How certain the rules are of each fault, in a layer or anywhere."""
    at = "" if layer is None else f"({layer})"
    sure = dict.fromkeys(("any", *_FAULTS), 0.0)
    for finding in findings:
        for fault in (finding.fault, *finding.also):
            if layer is None or f"{fault}{at}" in finding.codes:
                sure[fault] = max(sure[fault], finding.confidence)
                sure["any"] = max(sure["any"], finding.confidence)
    return {f"rules.{fault}": confidence for fault, confidence in sure.items()}
