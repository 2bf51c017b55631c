"""A PostgreSQL of our own, which is gone with the block."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg


@dataclass
class PostgresServer:
    """A private cluster that listens on a socket in its own folder only. The server refuses
    root: it runs as postgres then. Only a `durable` one waits for the disk.
    """

    folder: Path
    durable: bool = False

    def call(self, program: str, *argv: str) -> None:
        """Run one of its programs."""
        known = max(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), default=program)
        who: dict[str, Any] = (
            {"user": "postgres", "group": "postgres", "extra_groups": ()}
            if os.geteuid() == 0
            else {}
        )
        with (self.folder / "log").open("ab") as log:
            streams: dict[str, Any] = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL}
            command = (str(known), "--pgdata", str(self.folder / "data"), *argv)
            subprocess.run(command, check=True, cwd=self.folder, timeout=60, **streams, **who)

    def start(self) -> None:
        """Begin to listen."""
        settings = (
            "listen_addresses=''",
            f"unix_socket_directories={self.folder}",
            f"fsync={'on' if self.durable else 'off'}",
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
def postgres_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Started for the tests, gone with them."""
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="reprise-pg-")), durable)
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
