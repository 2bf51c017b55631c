"""The labels a verdict may put on an issue: a closed list, each made when a repository first
needs it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """A label as GitHub expects it: the colour as six hexadecimal digits, the description at most
    100 characters.
    """

    name: str
    colour: str
    description: str


LABELS: dict[str, Label] = {
    "reproduced": Label(
        "reprise: reproduced",
        "0e8a16",
        "Reprise observed the failure that the bug report describes",
    ),
    "not_reproduced": Label(
        "reprise: not reproduced",
        "8c959f",
        "Reprise ran the program as described and it did not fail",
    ),
    "needs_info": Label(
        "reprise: needs info", "d4a72c", "Information that only the reporter has is missing"
    ),
    "inconclusive": Label(
        "reprise: inconclusive", "8250df", "Reprise ran the program, and the runs were inconclusive"
    ),
}
"""By verdict kind. The other kinds describe a host or a request, not the issue."""

OURS: tuple[str, ...] = tuple(label.name for label in LABELS.values())
"""All of them. A verdict with a label replaces the others; one without leaves them."""
