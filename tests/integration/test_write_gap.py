"""Writes of several processes and threads, as GitHub sees them arrive: one a second, and one that
notifies people every three, however late a request is sent.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.adapters.store import SqlStore
from tests.contract.databases import postgres_server
from tests.integration.write_process import THREADS
from tests.support.stand_in import GitHubServer, gaps

ROOT = Path(__file__).resolve().parents[2]
NAME, PROCESSES, COUNT = "acme/lib", 3, 2


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        with postgres_server() as server:
            yield server.fresh()
    else:
        yield f"sqlite:///{tmp_path}/reprise.db"


@pytest.mark.slow  # twelve writes, six of them three seconds apart
def test_writes_arrive_as_far_apart_as_is_promised(database: str) -> None:
    SqlStore(database).close()
    with GitHubServer(echo=False) as server:
        server.state.repository(NAME)
        server.state.issue(NAME, "title", "body", number=1)
        installation = server.state.covering(NAME)
        assert installation is not None
        command = (sys.executable, "-m", "tests.integration.write_process")
        argv = (*command, database, NAME, str(installation.id), str(COUNT))
        env = {**os.environ, **server.settings()}
        processes = [subprocess.Popen(argv, cwd=ROOT, env=env) for _ in range(PROCESSES)]
        assert [process.wait(300) for process in processes] == [0] * PROCESSES
        assert len(server.writes) == PROCESSES * THREADS * COUNT
        loud = [entry for entry in server.writes if entry.path.endswith("/comments")]
        assert min(gaps(server.writes)) >= 1.0
        assert min(gaps(loud)) >= 3.0
