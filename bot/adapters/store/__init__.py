"""The store on SQLAlchemy: SQLite in one file, or PostgreSQL by address. Light to import: migrations load what they need."""

from __future__ import annotations

import time
from collections.abc import Callable

from bot.adapters.store.comments import Comments
from bot.adapters.store.database import Database
from bot.adapters.store.deliveries import Deliveries
from bot.adapters.store.figures import Figures
from bot.adapters.store.leases import Leases
from bot.adapters.store.migrate import bring_up, migrate
from bot.adapters.store.overdue import Overdue
from bot.adapters.store.results import Results
from bot.adapters.store.runs import Runs
from bot.adapters.store.writes import Writes

__all__ = ["SqlStore", "migrate"]


class SqlStore(Deliveries, Runs, Leases, Results, Overdue, Comments, Writes, Figures):
    """The Store port over a database, whose tables are made or upgraded first. `clock` tells epoch seconds; the gaps (seconds)
    and the caps are those of writes to GitHub, for each installation, over all processes that share the database.

    Raises UserError for an address or a database that cannot be used, TransientError while the database is away.
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
        self._db, self._clock = Database(url), clock
        self._gaps, self._caps = (write_gap_s, notify_gap_s), (writes_per_minute, writes_per_hour)
        try:
            bring_up(self._db)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Let go of connections."""
        self._db.close()
