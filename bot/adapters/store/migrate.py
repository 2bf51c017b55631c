"""Brings a database to the tables this version works with; several processes may do so at once."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from bot.adapters.store.database import Database
from bot.adapters.store.tables import REVISION, metadata
from bot.errors import UserError

_FOLDER = Path(__file__).with_name("migrations")


def migrate(url: str) -> None:
    """Make or upgrade the tables. Raises UserError when they are those of a newer version."""
    database = Database(url)
    try:
        bring_up(database)
    finally:
        database.close()


def bring_up(database: Database) -> None:
    """Upgrade an open database. Alembic is loaded only when there is something to do."""
    if database.in_memory:
        with database.writing() as connection:
            metadata.create_all(connection)
        return
    with database.reading() as connection:
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
    found = _revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found and found not in known:
        raise UserError(
            "The database was made by a newer version of Reprise "
            f"(its tables are at {found[:40]}, ours at {REVISION}).",
            "Upgrade Reprise, or set REPRISE_DATABASE_URL to another database.",
        )
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
