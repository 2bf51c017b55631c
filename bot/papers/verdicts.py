"""The verdict kinds of papers: a row for each, with all that is the same in every report of its
kind.
"""

from dataclasses import dataclass

from bot.kernel.paper import PaperVerdictKind


@dataclass(frozen=True, slots=True)
class PaperVerdictRow:
    """One kind. `title` is its name for readers, `tone` the colour of its headline."""

    title: str
    next_step: str = ""
    tone: str = "inconclusive"
    exit_code: int = 3


PAPER_KINDS: dict[PaperVerdictKind, PaperVerdictRow] = {
    "reproduced": PaperVerdictRow("Number reproduced", tone="agrees", exit_code=0),
    "not_reproduced": PaperVerdictRow(
        "Number not reproduced",
        "Look at the contradictions first: they are what the repository does differently.",
        tone="differs",
    ),
    "inconclusive": PaperVerdictRow(
        "Inconclusive",
        "Raise --budget for more seeds, or choose another command with --command.",
    ),
    "needs_info": PaperVerdictRow(
        "More is needed", "Add what is missing with --repo, --command, --claim or --data."
    ),
    "needs_hardware": PaperVerdictRow(
        "Other hardware needed",
        "Run it on a machine with this hardware (for a GPU, add --device gpu).",
    ),
    "setup_failed": PaperVerdictRow(
        "The environment could not be built",
        "Choose other versions with --with 'package==version' or --python.",
    ),
    "cancelled": PaperVerdictRow("Cancelled", "The same command with --out goes on from here."),
    "budget_reached": PaperVerdictRow("Stopped at the budget", "Raise --budget and run it again."),
}
