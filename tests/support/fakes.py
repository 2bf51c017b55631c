"""The fakes of the engine's and the App's ports, held to the same contract tests as the real
things.
"""

from bot.app.store import MEMORY, SqlStore, database
from bot.app.store.tables import reports
from bot.kernel.report import IssueReport
from tests.support.endpoint import FakeEndpoint
from tests.support.engine import FakeBuilder, FakeCommits, FrozenClock, ListListener, MemoryJournal
from tests.support.github import FakeGitHub
from tests.support.inline_queue import InlineQueue
from tests.support.model import ScriptedModel
from tests.support.source_index import FakeIndexer, FakeSourceIndex


class MemoryStore(SqlStore):
    """The real store on a database in memory; closed with its process."""

    def __init__(self, **options: object) -> None:
        super().__init__(MEMORY, **options)  # type: ignore[arg-type]

    def replace_report(self, run: str, report: IssueReport) -> None:
        """Replace a report without holding the run's lease."""
        with self._db.writing() as connection:
            connection.execute(
                self._db.upsert(reports, {"run": run, "body": database.json(report)})
            )


__all__ = [
    "FakeBuilder",
    "FakeCommits",
    "FakeEndpoint",
    "FakeGitHub",
    "FakeIndexer",
    "FakeSourceIndex",
    "FrozenClock",
    "InlineQueue",
    "ListListener",
    "MemoryJournal",
    "MemoryStore",
    "ScriptedModel",
]
