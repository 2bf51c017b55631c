"""One database, SQLite or PostgreSQL: connections, transactions that say what they are for, and errors people can act on."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy import exc as sa

from bot.adapters.store.at_once import AtOnce
from bot.errors import TransientError, UserError

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert as PgInsert
    from sqlalchemy.dialects.sqlite import Insert as LiteInsert

WAIT_S = 15.0
"""How long a transaction waits for another one, or for a connection."""

_FORMS = "Use sqlite:///PATH, or postgresql+psycopg://USER:PASSWORD@HOST/NAME."


class Database:
    """An engine and its two kinds of transactions. Safe to share between threads; not across a fork."""

    def __init__(self, url: str) -> None:
        self.url = parsed(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._gate = Lock()  # SQLite has one writer at a time; within a process they need not find out by polling
        self._engine = _lite(self.url) if self.sqlite else _postgres(self.url)
        self._writer = self._engine.execution_options(writes=True)
        self.at_once = AtOnce(self._apart, self._gate) if self.sqlite else None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._told(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes. On SQLite nobody else writes meanwhile; on PostgreSQL rows are locked one by one."""
        if not self.sqlite:
            with self._told(), self._writer.begin() as connection:
                yield connection
            return
        if not self._gate.acquire(timeout=WAIT_S):
            raise self._busy()
        try:
            with self._told(), self._writer.begin() as connection:
                yield connection
        finally:
            self._gate.release()

    def insert(self, table: Any) -> PgInsert | LiteInsert:
        """An INSERT that can say what to do on conflict."""
        if self.sqlite:
            from sqlalchemy.dialects.sqlite import insert as lite

            return lite(table)
        from sqlalchemy.dialects.postgresql import insert as postgres

        return postgres(table)

    def lock(self, connection: Connection, name: str) -> None:
        """Until the end of the transaction, nobody else is past this line with the same name."""
        if not self.sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(_key(name))))

    def close(self) -> None:
        """Let go of connections."""
        if self.at_once is not None:
            self.at_once.close()
        self._engine.dispose()

    def _apart(self) -> sqlite3.Connection:
        """A connection to the file, prepared like all others, which the pool knows nothing of."""
        try:
            pooled = self._engine.raw_connection()
        except sa.DBAPIError as error:
            raise sqlite3.OperationalError(str(error.orig)) from None
        connection = pooled.driver_connection
        pooled.detach()
        assert isinstance(connection, sqlite3.Connection)
        return connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the database says, without its password and without the values of a statement."""
        try:
            yield
        except (sa.OperationalError, sa.InterfaceError, sa.InternalError) as error:
            raise self._away(self._words(error)) from None
        except sa.TimeoutError:
            raise self._busy() from None
        except sa.DatabaseError as error:
            if isinstance(error.orig, sqlite3.DatabaseError) and type(error.orig) is sqlite3.DatabaseError:
                raise UserError(
                    f"The database file {self.url.database} is unusable: {self._words(error)}.",
                    "Restore it from a backup, or move it away and start with an empty one.",
                ) from None
            raise

    def _words(self, error: sa.DBAPIError) -> str:
        words = (str(error.orig).strip() or type(error.orig).__name__).splitlines()[0].rstrip(".")
        password = str(self.url.password or "")
        for secret in {password, quote(password, safe="")} - {""}:
            words = words.replace(secret, "[redacted]")
        return words[:300]

    def _away(self, words: str) -> TransientError | UserError:
        if not self.sqlite:
            return TransientError(f"The database does not answer: {words}.", "Check that PostgreSQL runs and lets Reprise in.")
        if "locked" in words or "busy" in words:
            return self._busy()
        if re.search("unable to open|readonly", words):
            return UserError(
                f"The database file {self.url.database} cannot be written: {words}.",
                "Give this user a folder that it may write to, or set REPRISE_DATABASE_URL.",
            )
        return TransientError(f"The database file {self.url.database} failed: {words}.", "Check the disk it is on.")

    def _busy(self) -> TransientError:
        return TransientError(f"The database was busy for more than {WAIT_S:.0f} s.", "It is tried again by itself.")


def parsed(url: str) -> URL:
    """The address of a database. Raises UserError without showing it: it holds a password."""
    try:
        made = make_url(re.sub(r"^postgres(?:ql)?://", "postgresql+psycopg://", url.strip()))
        made.port  # noqa: B018
    except (sa.ArgumentError, ValueError):
        raise UserError("REPRISE_DATABASE_URL is no address of a database.", _FORMS) from None
    if made.drivername not in {"sqlite", "sqlite+pysqlite", "postgresql+psycopg"}:
        raise UserError(f"REPRISE_DATABASE_URL names a database that is not supported: {made.drivername[:40]}.", _FORMS)
    in_memory = made.database in {None, "", ":memory:"} or "memory" in str(made.query.get("mode", ""))
    if made.get_backend_name() == "sqlite" and (in_memory or made.host):
        raise UserError("REPRISE_DATABASE_URL names no file: threads and processes share the database.", _FORMS)
    return made


def _postgres(url: URL) -> Engine:
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=5,
        max_overflow=20,
        pool_timeout=WAIT_S,
        hide_parameters=True,
        connect_args={"connect_timeout": 10, "application_name": "reprise"},
    )


def _lite(url: URL) -> Engine:
    """Transactions are begun by us, as SQLAlchemy advises: the driver begins none for a SELECT, and never an IMMEDIATE one."""
    assert url.database is not None
    engine = create_engine(url, pool_size=5, max_overflow=20, pool_timeout=WAIT_S, hide_parameters=True)

    @event.listens_for(engine, "do_connect")
    def private(*_: object) -> None:
        """Private issues are kept here: a new file is its owner's alone, and so are its companions."""
        try:
            os.close(os.open(str(url.database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise UserError(
                f"The database file {url.database} cannot be written: {error.strerror}.",
                "Give this user a folder that it may write to, or set REPRISE_DATABASE_URL.",
            ) from None

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(WAIT_S * 1000)}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # in WAL mode only this survives a power cut after the commit
        _write_ahead(connection)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """WAL, once a file. SQLite does not wait for others here, whatever the busy timeout is."""
    end = time.monotonic() + WAIT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), signed=True)
