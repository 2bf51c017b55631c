"""BugReport + the sources at hand → ranked contexts: the code that bears on the report, each line with why it was taken."""

from __future__ import annotations

from bot.models.bug import BugReport
from bot.models.context import Context
from bot.models.issue import Issue
from bot.ports import Shelf


def contexts(bug: BugReport, issue: Issue, shelf: Shelf, budget_lines: int = 400) -> tuple[Context, ...]:
    """At most four contexts, the most promising first, of about `budget_lines` lines in all."""
    found = shelf.search(f"{issue.title} {' '.join(bug.api)}", budget_lines // 40)
    return (Context(rank=1, title="what the words of the report bear on", chunks=found),) if found else ()
