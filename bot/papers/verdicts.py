"""The verdict kinds of papers: a row for each, with all that is the same in every report of its
kind.
"""

from dataclasses import dataclass

from bot.kernel.paper import PaperVerdictKind


@dataclass(frozen=True, slots=True)
class PaperVerdictRow:
    """One kind. `title` is its name for readers, `tone` the colour of its headline; `next_step`
    is what to do at a terminal, `comment` on an issue.
    """

    title: str
    next_step: str = ""
    comment: str = ""
    tone: str = "inconclusive"
    exit_code: int = 3


PAPER_KINDS: dict[PaperVerdictKind, PaperVerdictRow] = {
    "reproduced": PaperVerdictRow("Number reproduced", tone="agrees", exit_code=0),
    "not_reproduced": PaperVerdictRow(
        "Number not reproduced",
        "Look at the contradictions first: they are what the repository does differently.",
        "Look at the contradictions first: they are what the repository does differently.",
        tone="differs",
    ),
    "inconclusive": PaperVerdictRow(
        "Inconclusive",
        "Raise --budget for more seeds, or choose another command with --command.",
        "For more seeds comment `/reproduce paper budget=4h`, for another command "
        "`/reproduce paper command=python train.py`.",
    ),
    "needs_info": PaperVerdictRow(
        "More is needed",
        "Add what is missing with --repo, --command, --claim or --data.",
        "Add what is missing to the issue or the repository, or name it (`claim=`, `command=`), "
        "then comment `/reproduce paper`.",
    ),
    "needs_hardware": PaperVerdictRow(
        "Other hardware needed",
        "Run it on a machine with this hardware (for a GPU, add --device gpu).",
        "If this host has a GPU, comment `/reproduce paper device=gpu`.",
    ),
    "setup_failed": PaperVerdictRow(
        "The environment could not be built",
        "Choose other versions with --with 'package==version' or --python.",
        "Choose other versions, such as `/reproduce paper python=3.11`.",
    ),
    "cancelled": PaperVerdictRow("Cancelled", "The same command with --out goes on from here."),
    "budget_reached": PaperVerdictRow(
        "Stopped at the budget",
        "Raise --budget and run it again.",
        "For more time comment `/reproduce paper budget=4h`; the host's limit for a run applies.",
    ),
}
