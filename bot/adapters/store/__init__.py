"""The store on SQLAlchemy: SQLite in one file or in memory, or PostgreSQL by address."""

import time
from collections.abc import Callable

from bot.adapters.store.database import Database
from bot.adapters.store.deliveries import SqlDeliveries
from bot.adapters.store.github_writes import SqlComments, SqlWriteRate
from bot.adapters.store.leases import SqlLeases, SqlResults
from bot.adapters.store.maintenance import SqlMaintenance, SqlUsage
from bot.adapters.store.migrate import bring_up, migrate
from bot.adapters.store.runs import SqlRuns

__all__ = ["MEMORY", "SqlStore", "migrate"]

MEMORY = "memory"
"""In place of an address: a new store in this process's memory, for dry runs and tests."""


class SqlStore(
    SqlDeliveries,
    SqlRuns,
    SqlLeases,
    SqlResults,
    SqlMaintenance,
    SqlComments,
    SqlWriteRate,
    SqlUsage,
):
    """Every store port over one database, whose tables are created or upgraded first. `clock`
    returns epoch seconds; the gaps (seconds) and caps limit writes to GitHub for each
    installation, across all processes that share the database.

    Raises UserError for an address or a database that cannot be used, TransientError while the
    database is unreachable.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] = time.time,
        write_gap_s: float = 1.0,
        notify_gap_s: float = 3.0,
        writes_per_minute: int = 80,
        writes_per_hour: int = 500,
    ) -> None:
        self._db, self._clock = Database(None if url == MEMORY else url), clock
        self._gaps, self._caps = (write_gap_s, notify_gap_s), (writes_per_minute, writes_per_hour)
        try:
            bring_up(self._db)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._db.close()
