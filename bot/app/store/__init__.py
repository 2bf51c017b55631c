"""The store on SQLAlchemy: SQLite in one file or in memory, or PostgreSQL by address."""

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from bot.app.store.database import Database
from bot.app.store.deliveries import (
    SqlComments,
    SqlDecisions,
    SqlDeliveries,
    SqlShared,
    SqlSweeps,
    SqlWriteRate,
)
from bot.app.store.maintenance import SqlErasing, SqlMaintenance, SqlUsage
from bot.app.store.runs import SqlLeases, SqlResults, SqlRuns
from bot.app.store.tables import REVISION, metadata
from bot.kernel.errors import UserError

_FOLDER = Path(__file__).with_name("migrations")

MEMORY = "memory"
"""In place of an address: a new store in this process's memory, for dry runs and tests."""


def bring_up(database: Database) -> None:
    """Upgrade an open database. Alembic is loaded only when there is something to do."""
    if database.in_memory:
        with database.writing() as connection:
            metadata.create_all(connection)
        return
    with database.reading() as connection:
        database.clock.look(connection)
        if _revision(connection) == REVISION:
            return
    with database.writing() as connection:
        database.lock(connection, "reprise-migrate")
        if _revision(connection) != REVISION:  # another process may have been faster
            _upgrade(connection)


def _revision(connection: Connection) -> str:
    """The migration a database is at, "" before the first."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or ""


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    revision = _revision(connection)
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision and revision not in revisions:
        raise UserError(
            "The database was made by a newer version of Reprise "
            f"(its tables are at {revision[:40]}, ours at {REVISION}).",
            "Upgrade Reprise, or set REPRISE_DATABASE_URL to another database.",
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


class SqlStore(
    SqlDeliveries,
    SqlRuns,
    SqlLeases,
    SqlResults,
    SqlMaintenance,
    SqlComments,
    SqlSweeps,
    SqlWriteRate,
    SqlUsage,
    SqlDecisions,
    SqlShared,
    SqlErasing,
):
    """Every store port over one database, whose tables are created or upgraded first. `clock`
    returns epoch seconds, by default those of the database; the gaps (seconds) and caps limit
    writes to GitHub for each installation, across all processes that share the database.

    Raises UserError for an address or a database that cannot be used, TransientError while the
    database is unreachable.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] | None = None,
        write_gap_s: float = 1.0,
        notify_gap_s: float = 3.0,
        writes_per_minute: int = 80,
        writes_per_hour: int = 500,
    ) -> None:
        self._db = Database(None if url == MEMORY else url)
        self._clock = clock or self._db.clock
        self._gaps, self._caps = (write_gap_s, notify_gap_s), (writes_per_minute, writes_per_hour)
        try:
            bring_up(self._db)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        self._db.close()
