"""Why a model did not help, read off a finished report: which part of the path to look at. Rough
on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

Cause = Literal[
    "", "not asked", "not recorded", "limits", "environment", "signature", "index", "program"
]

TOLD: dict[str, str] = {
    "not asked": "no model was asked: rules decided, or none was at hand",
    "not recorded": "the run went where no answer was recorded",
    "limits": "a limit ended it",
    "environment": "the environment could not be built",
    "signature": "what was to count was missing or wrong",
    "index": "the file that matters was not among the sources shown",
    "program": "what counts and the sources were there, and no program showed it",
}
"""Each cause in words."""


def cause(
    report: dict[str, Any],
    *,
    right: bool | None,
    false: bool,
    touched: Sequence[str] = (),
    missed: int = 0,
) -> Cause:
    """The cause of one case from its report.json, "" when it is not wrong. `touched` are files
    that matter, `missed` how many answers a replay lacked.
    """
    if right is not False:
        return ""
    plan, kind = report.get("plan"), report["verdict"]["kind"]
    notes = " ".join(report.get("notes") or ())
    if missed:
        return "not recorded"
    if kind == "budget_reached":
        return "limits"
    if kind == "setup_failed" or "could not be built" in notes:
        return "environment"
    if plan is None:
        return "not asked"
    if false or not plan["claim"] or _nothing_to_count(report):
        return "signature"
    return "program" if _shown(plan["contexts"], touched) else "index"


def _nothing_to_count(report: dict[str, Any]) -> bool:
    """The model fixed nothing that can be checked, so that nothing was planned."""
    plan = report["plan"]
    return not plan["hypothesis"] and not plan["changes"] and report.get("signature") is None


def _shown(contexts: Sequence[str], touched: Sequence[str]) -> bool:
    """Whether one of the files was shown; without known files the index is not blamed."""
    if not touched:
        return True
    names = [
        path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in touched
    ]
    starts = [title.partition(": ")[0] for title in contexts]
    return any(
        start == name or start.startswith(name + ".")
        for start in starts
        for name in (*names, *touched)
    )
