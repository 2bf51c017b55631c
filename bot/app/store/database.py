"""One database, SQLite or PostgreSQL: connections, transactions that say what they are for,
errors people can act on, and texts made safe to store.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any
from urllib.parse import quote

from pydantic_core import PydanticSerializationError
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    StaticPool,
    Table,
    create_engine,
    event,
    exc as sa,
    func,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from bot.kernel.errors import TransientError, UserError
from bot.kernel.outside_text import rewritten
from bot.kernel.values import Record

# Makes outside text safe to store: no database refuses it, and its size is bounded.

MOST_LOG = 400_000
MOST_LINE = 1_000
MOST_ROW = 16 << 20
"""Characters of JSON in one row. Reports have 100 kB as a rule; one that is larger is hostile, and
each visit of its page would read it.
"""

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")


def text(value: str) -> str:
    """Text that every database accepts: PostgreSQL has no NUL, UTF-8 has no lone surrogate."""
    return _UNSTORABLE.sub("\ufffd", value)


def line(value: str) -> str:
    """Safe text for one status line, of bounded length."""
    return text(value[:MOST_LINE])


def log(value: str) -> str:
    """Safe text of a log. A long one keeps its beginning and its end, which show the causes."""
    if len(value) > MOST_LOG:
        half = MOST_LOG // 2
        cut = f"[... {len(value) - 2 * half} characters left out ...]"
        value = f"{value[:half]}\n{cut}\n{value[-half:]}"
    return text(value)


def json(record: Record) -> str:
    """A record as JSON. NUL is escaped there; lone surrogates are replaced. Raises UserError for
    more than `MOST_ROW`.
    """
    try:
        body = record.model_dump_json()
    except PydanticSerializationError:
        body = rewritten(record, partial(_LONE.sub, "\ufffd")).model_dump_json()
    if len(body) > MOST_ROW:
        raise UserError(
            f"The {type(record).__name__.lower()} has {len(body) >> 20} MiB; the database takes at "
            f"most {MOST_ROW >> 20} MiB.",
            "Shorten the bug report or what its program prints, then ask again.",
        )
    return body


# One database, SQLite or PostgreSQL: connections, transactions that say what they are for, and
# errors people can act on.

WAIT_S = 15.0
"""How long a transaction waits for another one, or for a connection."""

_WRITABLE = "Choose a folder that this user can write to, or set REPRISE_DATABASE_URL."
_FORMS = "Use sqlite:///PATH, or postgresql+psycopg://USER:PASSWORD@HOST/NAME."


class SharedClock:
    """Epoch seconds by the clock of the database, between two looks at it by the monotonic one of
    this process: so all processes agree, however wrong the clocks of their machines are, and one
    that jumps moves no lease. SQLite is on this machine and has no clock of its own.
    """

    def __init__(self, *, own: bool) -> None:
        self._own, self._ahead_s = own, time.time() - time.monotonic()

    def __call__(self) -> float:
        """The time now."""
        return time.time() if self._own else self._ahead_s + time.monotonic()

    def look(self, connection: Connection) -> None:
        """Set it by the database."""
        if not self._own:
            now = connection.execute(
                select(func.extract("epoch", func.clock_timestamp()))
            ).scalar_one()
            self._ahead_s = float(now) - time.monotonic()


class Database:
    """An engine and its two kinds of transactions; in memory when `url` is None. Safe to share
    between threads, not across a fork.
    """

    def __init__(self, url: str | None) -> None:
        self.in_memory = url is None
        self.url = make_url("sqlite://") if url is None else parse_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        # SQLite has one writer at a time; threads of one process wait here instead of polling.
        # In memory, all of them share one connection.
        self._gate = Lock()
        self.clock = SharedClock(own=self.sqlite)
        self._engine = _sqlite_engine(self.url) if self.sqlite else _postgres_engine(self.url)
        self._writer = self._engine.execution_options(writes=True)
        # PostgreSQL shows each statement what is committed, with or without a transaction around
        # it; without one, it is asked once instead of three times.
        alone = {} if self.sqlite else {"isolation_level": "AUTOCOMMIT"}
        self._reader = self._engine.execution_options(**alone)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that only reads; with SQLite, in one transaction."""
        with (
            self._alone(self.in_memory),
            self._translated_errors(),
            self._reader.begin() as connection,
        ):
            yield connection

    @contextmanager
    def writing(self, *, is_single: bool = False) -> Iterator[Connection]:
        """A transaction that writes. SQLite allows one at a time; PostgreSQL locks single rows, and
        is asked once for a single statement: that is a transaction by itself.
        """
        engine = self._reader if is_single and not self.sqlite else self._writer
        with self._alone(self.sqlite), self._translated_errors(), engine.begin() as connection:
            yield connection

    @contextmanager
    def _alone(self, needed: bool) -> Iterator[None]:
        if needed and not self._gate.acquire(timeout=WAIT_S):
            raise self._busy()
        try:
            yield
        finally:
            if needed:
                self._gate.release()

    def insert(self, table: Any) -> postgresql.Insert | sqlite.Insert:
        """An INSERT that can handle conflicts."""
        return sqlite.insert(table) if self.sqlite else postgresql.insert(table)

    def insert_once(
        self, table: Table, row: Mapping[str, Any]
    ) -> postgresql.Insert | sqlite.Insert:
        """An INSERT that leaves an existing row with the same primary key as it is."""
        return self.insert(table).values(**row).on_conflict_do_nothing()

    def upsert(self, table: Table, row: Mapping[str, Any]) -> postgresql.Insert | sqlite.Insert:
        """An INSERT that replaces an existing row with the same primary key."""
        key = list(table.primary_key)
        rest = {name: value for name, value in row.items() if table.c[name] not in set(key)}
        new = self.insert(table).values(**row)
        return new.on_conflict_do_update(index_elements=key, set_=rest)

    def lock(self, connection: Connection, name: str) -> None:
        """Lock a name until the end of the transaction."""
        if not self.sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(name))))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Database errors as ours, without the password and without the values of a statement."""
        try:
            yield
        except (sa.OperationalError, sa.InterfaceError, sa.InternalError) as error:
            raise self._away(self._words(error)) from None
        except sa.TimeoutError:
            raise self._busy() from None
        except sa.DatabaseError as error:
            if type(error.orig) is sqlite3.DatabaseError:
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
            return TransientError(
                f"The database does not answer: {words}.",
                "Check that PostgreSQL is running and accepts Reprise's login.",
            )
        if "locked" in words or "busy" in words:
            return self._busy()
        if re.search("unable to open|readonly", words):
            return UserError(
                f"The database file {self.url.database} cannot be written: {words}.",
                _WRITABLE,
            )
        return TransientError(
            f"The database file {self.url.database} failed: {words}.", "Check the disk it is on."
        )

    def _busy(self) -> TransientError:
        return TransientError(
            f"The database was busy for more than {WAIT_S:.0f} s.", "Reprise retries automatically."
        )


def parse_url(url: str) -> URL:
    """The address of a database. Raises UserError without showing it: it holds a password."""
    try:
        dsn = make_url(re.sub(r"^postgres(?:ql)?://", "postgresql+psycopg://", url.strip()))
        dsn.port  # noqa: B018
    except (sa.ArgumentError, ValueError):
        raise UserError("REPRISE_DATABASE_URL is not a database address.", _FORMS) from None
    if dsn.drivername not in {"sqlite", "sqlite+pysqlite", "postgresql+psycopg"}:
        raise UserError(
            f"REPRISE_DATABASE_URL names a database that is not supported: {dsn.drivername[:40]}.",
            _FORMS,
        )
    in_memory = dsn.database in {None, "", ":memory:"} or "memory" in str(dsn.query.get("mode", ""))
    if dsn.get_backend_name() == "sqlite" and (in_memory or dsn.host):
        raise UserError(
            "REPRISE_DATABASE_URL names no file. Reprise's processes share one.",
            _FORMS,
        )
    return dsn


def _postgres_engine(url: URL) -> Engine:
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=5,
        max_overflow=20,
        pool_timeout=WAIT_S,
        hide_parameters=True,
        connect_args={"connect_timeout": 10, "application_name": "reprise"},
    )


def _sqlite_engine(url: URL) -> Engine:
    """An engine that begins transactions itself, as SQLAlchemy advises: the driver begins none for
    a SELECT, and never an IMMEDIATE one.
    """
    if url.database is None:
        shared = {"check_same_thread": False}
        engine = create_engine(url, poolclass=StaticPool, connect_args=shared)
    else:
        engine = create_engine(
            url, pool_size=5, max_overflow=20, pool_timeout=WAIT_S, hide_parameters=True
        )
        event.listen(engine, "do_connect", partial(_create_private, url.database))
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _create_private(path: str, *_: object) -> None:
    """Create the file for its owner alone: it holds private issues."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise UserError(
            f"The database file {path} cannot be written: {error.strerror}.", _WRITABLE
        ) from None


def _prepare(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {int(WAIT_S * 1000)}")
    connection.execute("PRAGMA foreign_keys = ON")
    # In WAL mode only this survives a power cut after the commit.
    connection.execute("PRAGMA synchronous = FULL")
    _write_ahead(connection)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch a file to WAL once. SQLite ignores the busy timeout here."""
    end = time.monotonic() + WAIT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] not in {"wal", "memory"}:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
