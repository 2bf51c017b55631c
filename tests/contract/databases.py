"""Databases for the store's tests: SQLite files, a PostgreSQL of our own, and two stores over
one of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from sqlalchemy import text

from bot.app.ports import AppStore
from bot.app.store import MEMORY, SqlStore
from tests.support.fakes import FrozenClock

NOW = 1_800_000_000.0


@dataclass
class PostgresServer:
    """A private cluster that listens on a socket in its own folder only. The server refuses
    root: it runs as postgres then.
    """

    folder: Path

    def call(self, program: str, *argv: str) -> None:
        """Run one of its programs."""
        known = max(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), default=program)
        who: dict[str, Any] = (
            {"user": "postgres", "group": "postgres", "extra_groups": ()}
            if os.geteuid() == 0
            else {}
        )
        with (self.folder / "log").open("ab") as log:
            streams = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL}
            command = (str(known), "--pgdata", str(self.folder / "data"), *argv)
            subprocess.run(command, check=True, cwd=self.folder, timeout=60, **streams, **who)

    def start(self) -> None:
        """Begin to listen."""
        settings = (
            "listen_addresses=''",
            f"unix_socket_directories={self.folder}",
            "fsync=off",
            "max_connections=200",
        )
        options = " ".join(f"-c {setting}" for setting in settings)
        self.call("pg_ctl", "--wait", "--options", options, "start")

    def stop(self) -> None:
        """Drop everybody."""
        self.call("pg_ctl", "--wait", "--mode=fast", "stop")

    def fresh(self) -> str:
        """The address of a new schema: a database of its own is three hundred files."""
        name = f"t{uuid4().hex[:12]}"
        with psycopg.connect(
            f"host={self.folder} user=postgres dbname=postgres", autocommit=True
        ) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        path = f"options=-csearch_path%3D{name}"
        return f"postgresql+psycopg://postgres@/postgres?host={self.folder}&{path}"


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Started for the tests, gone with them."""
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="reprise-pg-")))
    if os.geteuid() == 0:
        shutil.chown(server.folder, "postgres", "postgres")
    try:
        server.call("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(server.folder)


@dataclass
class Bench:
    """A store, the clock it goes by, and others over the same data (as further processes would
    have them).
    """

    store: AppStore
    clock: FrozenClock
    url: str = MEMORY
    others: list[AppStore] = field(default_factory=list)

    def another(self) -> AppStore:
        """One more store over the same data."""
        if self.url == MEMORY:
            return self.store
        self.others.append(SqlStore(self.url, clock=self.clock))
        return self.others[-1]

    def execute(self, statement: str, **parameters: Any) -> None:
        """Change the data behind the store's back, as an older release may have left them."""
        assert isinstance(self.store, SqlStore)
        with self.store._db.writing() as connection:
            connection.execute(text(statement), parameters)

    def limited(self, per_minute: int, per_hour: int) -> AppStore:
        """A store without gaps between writes, with caps of its own."""
        limits = {
            "write_gap_s": 0,
            "notify_gap_s": 0,
            "writes_per_minute": per_minute,
            "writes_per_hour": per_hour,
        }
        self.others.append(SqlStore(self.url, clock=self.clock, **limits))
        return self.others[-1]


@contextmanager
def bench_on(url: str) -> Iterator[Bench]:
    """A bench over a database."""
    clock = FrozenClock(NOW)
    bench = Bench(SqlStore(url, clock=clock), clock, url)
    try:
        yield bench
    finally:
        for store in (bench.store, *bench.others):
            store.close()
