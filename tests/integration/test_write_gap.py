"""Writes of several processes and threads, as GitHub sees them arrive: a gap apart, and three gaps
when they notify people, however late a request is sent. A gap is a second, here a quarter of one.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.app.store import SqlStore
from tests.integration.write_process import THREADS
from tests.support.postgres import postgres_server
from tests.support.stand_in import GitHubServer, gaps

ROOT = Path(__file__).resolve().parents[2]
NAME, PROCESSES, COUNT, GAP_S = "acme/lib", 3, 2, 0.25
ON_THE_WAY_S = 0.02
"""By how much one write may be later on its way than the next, on a busy machine."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        with postgres_server() as server:
            yield server.fresh()
    else:
        yield f"sqlite:///{tmp_path}/reprise.db"


@pytest.mark.slow  # three processes import the client of GitHub
def test_writes_arrive_as_far_apart_as_is_promised(database: str) -> None:
    SqlStore(database).close()
    with GitHubServer(echo=False) as server:
        server.state.repository(NAME)
        server.state.issue(NAME, "title", "body", number=1)
        installation = server.state.covering(NAME)
        assert installation is not None
        command = (sys.executable, "-m", "tests.integration.write_process")
        argv = (*command, database, NAME, str(installation.id), str(COUNT), str(GAP_S))
        env = {**os.environ, **server.settings()}
        processes = [subprocess.Popen(argv, cwd=ROOT, env=env) for _ in range(PROCESSES)]
        assert [process.wait(300) for process in processes] == [0] * PROCESSES
        assert len(server.writes) == PROCESSES * THREADS * COUNT
        loud = [entry for entry in server.writes if entry.path.endswith("/comments")]
        assert min(gaps(server.writes)) >= GAP_S - ON_THE_WAY_S
        assert min(gaps(loud)) >= 3 * GAP_S - ON_THE_WAY_S


def test_the_promise_is_one_write_a_second_and_three_for_those_that_notify() -> None:
    defaults = inspect.signature(SqlStore).parameters
    assert defaults["write_gap_s"].default == 1.0
    assert defaults["notify_gap_s"].default == 3.0
