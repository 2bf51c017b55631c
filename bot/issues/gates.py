"""The gates between a reading and a run: every place where something of a model's or a report's is
refused, changed or left out. Each says so, to the model and to the readers of the report.
"""

from typing import Literal

from bot.kernel.dialogue import Refusal
from prompts import load, shared

Part = Literal["reading", "amendment", "environment", "action", "program"]

GATES: dict[str, Part] = {
    "api": "reading",
    "api_absent": "reading",
    "package": "reading",
    "pin": "reading",
    "pin_quote": "reading",
    "pin_works": "reading",
    "quote": "reading",
    "row": "reading",
    "class": "reading",
    "message": "reading",
    "file": "reading",
    "file_unbound": "reading",
    "file_absent": "reading",
    "sign": "reading",
    "value_of": "reading",
    "overlap": "reading",
    "short_warning": "reading",
    "category": "reading",
    "number": "reading",
    "metric": "reading",
    "sign_if_right": "reading",
    "request": "reading",
    "unfounded": "reading",
    "same_reading": "reading",
    "amend_late": "amendment",
    "amend_same": "amendment",
    "package_name": "environment",
    "python": "environment",
    "stated_version": "environment",
    "not_installed": "environment",
    "withdrawn": "environment",
    "no_probes": "action",
    "after_program": "action",
    "undocumented": "action",
    "command": "action",
    "refute_program": "action",
    "refute_reading": "action",
    "refute_grounds": "action",
    "refute_call": "action",
    "refute_version": "action",
    "refute_reference": "action",
    "syntax": "program",
    "long": "program",
    "undefined": "program",
    "network": "program",
    "weights": "program",
    "gpu": "program",
    "patched": "program",
    "unrelated": "program",
    "constant": "program",
    "staged": "program",
    "no_twin": "program",
    "twin": "program",
}
"""What each gate stands before. What of a report is beyond a limit is in `BugReport.unread`."""

VOID = frozenset(
    {
        *("row", "class", "sign", "value_of", "overlap", "short_warning", "sign_if_right"),
        *("request", "unfounded", "metric"),
    }
)
"""Gates that leave nothing of a reading to look for: the model may answer once more."""


def refuse(gate: str, /, **values: object) -> Refusal:
    """The refusal of a gate, in the words of its prompt. Raises KeyError for an unknown gate."""
    if GATES[gate] == "program":
        return Refusal(gate=gate, says=load("act").fragment(f"objection_{gate}", **values))
    return Refusal(gate=gate, says=shared(f"gate_{gate}", **values))
