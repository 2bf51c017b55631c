"""Several processes over one database: what only one may have is had once, and what was
acknowledged outlives a kill.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from bot.app.store import SqlStore
from tests.contract.samples import delivery
from tests.contract.store_process import GAP_S, NOTIFY_GAP_S, PACED_S, SHARED
from tests.support.postgres import postgres_server

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 4


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], str]]:
    """Makes the address of an empty database."""
    if request.param == "postgres":
        with postgres_server() as server:
            yield server.fresh
    else:
        yield lambda: f"sqlite:///{tmp_path_factory.mktemp('store')}/reprise.db"


@pytest.fixture
def url(database: Callable[[], str]) -> str:
    return database()


def start(what: str, url: str, name: str) -> subprocess.Popen[str]:
    argv = (sys.executable, "-m", "tests.contract.store_process", what, url, name)
    return subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def together(what: str, url: str, starts: int = 1) -> list[list[tuple[str, ...]]]:
    """What each process said, all of them started at the same moments."""
    processes = [start(what, url, f"w{n}") for n in range(PROCESSES)]
    for _ in range(starts):
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES
    return [[tuple(line.split()) for line in each.splitlines()] for each in said]


@pytest.mark.slow  # processes that race for a while
def test_processes_that_want_the_same_get_it_once(database: Callable[[], str]) -> None:
    """Until it was a race, in which more than one got something: on a busy machine one may have
    it all before the others run.
    """
    assert any(raced(database()) for _ in range(5))


def raced(url: str) -> bool:
    said = together("race", url, starts=2)
    got = Counter(line for each in said for line in each)
    wrote = {line: got.pop(line) for line in list(got) if line[0] == "wrote"}
    every = range(SHARED)
    wanted = {("claimed", f"{kind}{n}") for kind in "de" for n in every} | {
        ("took", f"d{n}") for n in every
    }
    wanted |= {("added", str(n)) for n in every} | {("leased", str(issue)) for issue in range(3)}
    assert got == Counter(wanted)

    engine = create_engine(url)
    with engine.connect() as connection:
        booked = connection.execute(text("SELECT at, notifies FROM writes ORDER BY at")).all()
    engine.dispose()
    assert len(booked) == sum(wrote.values())
    assert all(later.at - earlier.at >= GAP_S - 1e-6 for earlier, later in pairwise(booked))
    loud = [row.at for row in booked if row.notifies]
    assert all(later - earlier >= NOTIFY_GAP_S - 1e-6 for earlier, later in pairwise(loud))
    assert len(booked) > PACED_S / GAP_S / 3
    return sum(any(line[0] != "wrote" for line in each) for each in said) > 1


def test_processes_never_offer_the_same_twice(url: str) -> None:
    store = SqlStore(url)
    guids = [f"d{n}" for n in range(200)]
    store.claim([delivery(guid) for guid in guids])
    for guid in guids:
        store.take_delivery(guid, "dead", 0)
    found = Counter(line for each in together("reap", url) for line in each)
    again = store.overdue(1000)
    store.close()
    assert set(found.values()) == {1}
    assert {line[1] for line in found} | {f"{task.id}/{task.turn}" for task in again} == {
        f"{guid}/1" for guid in guids
    }


def test_what_was_acknowledged_outlives_a_kill(url: str) -> None:
    acknowledged: list[str] = []
    chance = random.Random(7)
    for life in range(4):
        processes = [start("stream", url, f"life{life}-{n}") for n in range(2)]
        assert processes[0].stdout is not None
        for _ in range(12):  # it is at work, however busy the machine is
            acknowledged += processes[0].stdout.readline().split()
        time.sleep(chance.uniform(0.05, 0.4))
        for process in processes:
            process.send_signal(signal.SIGKILL)
        for process in processes:
            lines = process.communicate(timeout=30)[0].splitlines(keepends=True)
            acknowledged += [guid for line in lines if line.endswith("\n") for guid in line.split()]
    store = SqlStore(url)
    assert len(acknowledged) > 100
    seen = {
        guid
        for start_ in range(0, len(acknowledged), 500)
        for guid in store.seen(acknowledged[start_ : start_ + 500])
    }
    assert seen == set(acknowledged)
    assert all(store.take_delivery(guid, "w", 60) == delivery(guid) for guid in acknowledged[-20:])
    store.close()
    if url.startswith("sqlite"):
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
        engine.dispose()
