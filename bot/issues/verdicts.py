"""The verdict kinds: a row for each, with all that is the same in every report of its kind."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["go", "muted", "other", "doubt", "warn"]


@dataclass(frozen=True, slots=True)
class Label:
    """A label as GitHub expects it: the colour as six hexadecimal digits, the description at most
    100 characters.
    """

    name: str
    colour: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictKind:
    """One kind. `title` is its name for readers, `tone` the colour of its page, `colour` that of
    its terminal output.

    `next_step` is for the command line and `comment` for an issue, "" where the report decides it.
    A kind without a `label` describes a host or a request, not the issue. `from_runs` is whether
    runs of the program decided it: then later comments link to it.
    """

    title: str
    tone: Tone
    colour: Literal["red", "green", "yellow"] = "yellow"
    exit_code: int = 3
    next_step: str = ""
    comment: str = ""
    label: Label | None = None
    from_runs: bool = False


_OTHER_VERSION = (
    "To try another version, comment for example `/reproduce torch=2.1.0`; `/reproduce help` lists "
    "the options."
)

KINDS: dict[str, VerdictKind] = {
    "reproduced": VerdictKind(
        title="Reproduced",
        tone="go",
        colour="red",
        exit_code=0,
        label=Label(
            "reprise: reproduced",
            "0e8a16",
            "Reprise observed the failure that the bug report describes",
        ),
        from_runs=True,
    ),
    "not_reproduced": VerdictKind(
        title="Not reproduced",
        tone="muted",
        colour="green",
        next_step="Compare the versions above with the reporter's, "
        "and try others with --with 'package==version' and --python.",
        comment=_OTHER_VERSION,
        label=Label(
            "reprise: not reproduced",
            "8c959f",
            "Reprise ran the program as described and it did not fail",
        ),
        from_runs=True,
    ),
    "different_failure": VerdictKind(
        title="A different failure",
        tone="other",
        next_step="Compare the two failures: the observed one may be another bug, "
        "or the environment may differ from the reporter's.",
        comment=_OTHER_VERSION,
        from_runs=True,
    ),
    "inconclusive": VerdictKind(
        title="Inconclusive",
        tone="doubt",
        next_step="Add what would settle it to the bug report (a complete program, the full "
        "traceback, exact versions), then run Reprise again.",
        comment="Add what would settle it to the issue (a complete program, the full "
        "traceback, exact versions), then comment `/reproduce`.",
        label=Label(
            "reprise: inconclusive",
            "8250df",
            "Reprise ran the program, and the runs were inconclusive",
        ),
        from_runs=True,
    ),
    "needs_info": VerdictKind(
        title="More information needed",
        tone="warn",
        next_step="Add the missing parts to the bug report, then run Reprise again.",
        comment="Add these to the issue, then comment `/reproduce`.",
        label=Label(
            "reprise: needs info", "d4a72c", "Information that only the reporter has is missing"
        ),
    ),
    "needs_hardware": VerdictKind(
        title="Other hardware needed",
        tone="warn",
        next_step="Run it on a machine with this hardware (for a GPU, add --device gpu).",
        comment="If this App's host has a GPU, comment `/reproduce device=gpu`.",
    ),
    "setup_failed": VerdictKind(
        title="The environment could not be built",
        tone="warn",
        comment=_OTHER_VERSION,
    ),
    "not_a_bug": VerdictKind(
        title="Not a bug report",
        tone="muted",
        next_step="If this is a bug, add a program that shows it, and its output.",
        comment="If this is a bug, add a program that shows it, and its output, then comment "
        "`/reproduce`.",
    ),
    "cancelled": VerdictKind(
        title="Cancelled",
        tone="muted",
        next_step="Run it again; finished environments are reused.",
        comment="To run it again, comment `/reproduce`.",
    ),
    "budget_reached": VerdictKind(
        title="Stopped at a limit",
        tone="warn",
        next_step="Raise --timeout, --max-cost, --max-tokens or --minutes and run it again.",
        comment="For a shorter run, comment `/reproduce runs=10`, or ask the App's operator "
        "to raise the limit.",
    ),
}
"""By the `kind` of their class in `bot.kernel.report`."""

LABELS: tuple[str, ...] = tuple(row.label.name for row in KINDS.values() if row.label)
"""All of them. A verdict with a label replaces the others; one without leaves them."""
