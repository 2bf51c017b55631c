"""One statement on SQLite in the caller's own thread: at once, or not at all; nobody is waited for but the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

_EVERY = 500  # commits after which the log is carried over into the database: about 13 MB of it
_ROUNDS = 3


class AtOnce:
    """A connection of its own, from `connect`, behind the `gate` of all that write in this process.

    Who commits elsewhere now and then carries the log over into the database, and takes ten times as long. Here a thread does
    it, beside the next commits.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], gate: Lock) -> None:
        self._connect = connect
        self._gate = gate
        self._connection: sqlite3.Connection | None = None
        self._commits = 0
        self._carrier: ThreadPoolExecutor | None = None

    def run(self, sql: str, values: Sequence[Any]) -> list[Any] | None:
        """The rows of one statement that is committed with it. None: it did not happen, because somebody else writes or the
        database fails; whoever waits for it will learn why.
        """
        if not self._gate.acquire(blocking=False):
            return None
        try:
            rows: list[Any] = self._opened().execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                self._drop()
            return None
        except sqlite3.Error:
            self._drop()
            return None
        finally:
            self._gate.release()
        self._commits += 1
        if self._commits % _EVERY == 0:
            self._carry()
        return rows

    def close(self) -> None:
        """Let go of the connection and the thread."""
        if self._carrier is not None:
            self._carrier.shutdown(wait=True)
        with self._gate:
            self._drop()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA wal_autocheckpoint = 0")
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _carry(self) -> None:
        if self._carrier is None:
            self._carrier = ThreadPoolExecutor(1, "checkpoint")
        self._carrier.submit(self._checkpoint)

    def _checkpoint(self) -> None:
        """Carry all of the log over: only then does it begin anew, and grow no further. Each round takes what came in during
        the one before; when there is always something, nobody in this process writes during the last and shortest one.
        """
        connection, before = self._connect(), -1
        try:
            for _ in range(_ROUNDS):
                if (now := _carried(connection)) == before:
                    return
                before = now
            with self._gate:
                _carried(connection)
        except sqlite3.Error:
            return  # the next one makes up for it, and whoever writes in another way says what is wrong
        finally:
            connection.close()


def _carried(connection: sqlite3.Connection) -> int:
    """Copy what nobody reads any more from the log; how long the log was. Nobody waits meanwhile, writers go on."""
    _, logged, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(logged)
