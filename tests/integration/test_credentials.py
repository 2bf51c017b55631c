"""Credentials that GitHub refuses, over a real store, queue, worker and adapter: what waited starts
when they are right again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from bot.app import worker
from bot.app.ports import ALARM_S, CREDENTIALS_ALARM
from bot.app.queue.local import LocalQueue
from bot.app.store import SqlStore
from bot.app.worker import Service
from bot.kernel.run import RunState
from tests.integration.test_pull_requests import NAME, QUIET, World
from tests.support.stand_in import GitHubServer

SOON_S = 12.0  # two looks of the reaper, on a busy machine


class Refused(World):
    """An App on a database file, in whose stead GitHub refuses everything at first."""

    def __init__(self, server: GitHubServer, path: Path) -> None:
        super().__init__(server)
        server.commit(NAME, {".github/reprise.yml": QUIET})
        self.store = SqlStore(f"sqlite:///{path}", write_gap_s=0, notify_gap_s=0)
        server.fail("error", "POST", "access_tokens", times=10_000, status=401)
        server.fail("error", "GET", "app/hook/deliveries", times=10_000, status=401)

    @contextmanager
    def working(self, reconcile_s: float = 3600.0) -> Iterator[None]:
        """A process that works, until the block ends."""
        self.queue = LocalQueue()
        self.queue.drain = lambda _handle: None
        service = Service(self.another().context, reconcile_s=reconcile_s)
        stop, slots = Event(), {"device": "cpu", "slots": 1}
        thread = Thread(
            target=worker.run,
            args=(service.handle, self.queue),
            kwargs={**slots, "ticks": service.ticks(), "stop": stop},
        )
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(30)

    @property
    def waits(self) -> bool:
        """Whether the delivery was refused and waits for another look."""
        alarm = self.store.shared(CREDENTIALS_ALARM, ALARM_S)
        return bool(alarm) and self.store.counts()["deliveries.waiting"] == 1

    @property
    def ended(self) -> bool:
        return [run.state for run in self.store.runs()] == [RunState.FINISHED]


def until(condition: Callable[[], bool], within_s: float) -> None:
    end = monotonic() + within_s
    while not condition():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.02)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Refused]:
    with GitHubServer(echo=False) as server:
        made = Refused(server, tmp_path / "reprise.db")
        yield made
        made.store.close()


def test_a_restart_with_the_right_key_starts_what_waited(world: Refused) -> None:
    with world.working():
        world.deliver("comment", "reproduce")
        until(lambda: world.waits, 30)
    world.server.clear_faults()
    with world.working():
        until(lambda: world.ended, SOON_S)


def test_the_first_answer_of_github_starts_what_waited(world: Refused) -> None:
    with world.working(reconcile_s=1.0):
        world.deliver("comment", "reproduce")
        until(lambda: world.waits, 30)
        world.server.clear_faults()
        until(lambda: world.ended, SOON_S)
    assert world.store.shared(CREDENTIALS_ALARM, ALARM_S) == ""
