"""The verdict kinds of papers: a row for each, with all that is the same in every report of its
kind.
"""

from dataclasses import dataclass

from bot.kernel.paper import PaperNeed, PaperVerdict, PaperVerdictKind


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


@dataclass(frozen=True, slots=True)
class NeedRow:
    """What to do where something of a kind is missing: at a terminal, and on an issue."""

    next_step: str
    comment: str


PAPER_NEEDS: dict[PaperNeed, NeedRow] = {
    "paper": NeedRow(
        "Pass the paper itself: a file, a folder or its arXiv id.",
        "Add the paper's arXiv id to the issue, or its link to the README, then comment "
        "`/reproduce paper`.",
    ),
    "source": NeedRow(
        "Download its source in a browser, and pass the file.",
        "To try again, comment `/reproduce paper`; the operator of this host can name a mirror of "
        "arXiv (`REPRISE_ARXIV_URL`).",
    ),
    "number": NeedRow(
        "Pass its LaTeX source or HTML, whose tables are read cell by cell; a number in a sentence "
        "is read if a metric such as accuracy or RMSE stands beside it.",
        "A number is read from tables and from sentences that name a metric such as accuracy or "
        "RMSE. If the issue links another paper, write the right arXiv id first.",
    ),
    "repository": NeedRow(
        "Pass a clone of the paper's repository with --repo; --command runs any other all the "
        "same.",
        "Ask in the paper's repository; `/reproduce paper command=python train.py` runs this one "
        "all the same.",
    ),
    "command": NeedRow(
        "Name it with --command 'python train.py'.",
        "Comment `/reproduce paper command=python train.py` with the command that prints the "
        "number.",
    ),
    "data": NeedRow(
        "Mount what you have with --data PATH=DIR: PATH is where the program looks for it, DIR "
        "where it is.",
        "The operator of this host can provide it: see `data:` in `.github/reprise.yml`.",
    ),
}
"""What can be missing, a row for each kind."""

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


def next_step(verdict: PaperVerdict, *, of_issue: bool) -> str:
    """What to do after a verdict, at a terminal or on an issue."""
    row = PAPER_NEEDS[verdict.needs] if verdict.needs else PAPER_KINDS[verdict.kind]
    return row.comment if of_issue else row.next_step
