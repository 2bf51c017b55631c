"""Three workers decide at once, over one database and one Redis: limits hold to the number, and
what is asked for twice runs once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from bot.adapters.queue.local import LocalQueue
from bot.adapters.queue.redis import RedisQueue
from bot.adapters.store import SqlStore
from bot.service.app import Service
from bot.service.app_context import AppContext
from bot.service.ports import Task
from tests.contract.databases import postgres_server
from tests.contract.test_queue_contract import Server
from tests.unit.test_service import App, command

KINDS = ("sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.redis]))
OPEN = "defaults:\n  proofs: []\n"


class Crowd(App):
    """Three workers, each with a store of its own, which start with everything delivered."""

    def __init__(self, url: str, queue: object, config: str) -> None:
        super().__init__(config=config)
        self.stores = [SqlStore(url, write_gap_s=0, notify_gap_s=0) for _ in range(3)]
        self.store, self.queue, self._stop = self.stores[0], queue, Event()
        self.queue.drain = lambda _handle: None

    def work(self) -> None:
        """Until nothing is left."""
        workers = []
        for store in self.stores:
            service = Service(AppContext(store, self.queue, self.hub, self._engine, self.house))
            told = {"device": "cpu", "slots": 2, "stop": self._stop}
            workers.append(Thread(target=self.queue.work, args=(service.handle,), kwargs=told))
        for worker in workers:
            worker.start()
        end = monotonic() + 60
        while monotonic() < end and any(
            self.store.counts()[name]
            for name in ("deliveries.waiting", "deliveries.handling", "runs.queued", "runs.running")
        ):
            sleep(0.05)
            for task in self.store.overdue(1.0):
                self.queue.offer(task)
        self._stop.set()
        for worker in workers:
            worker.join(10)


@pytest.fixture(params=KINDS)
def crowd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[object]:
    @contextmanager
    def made(config: str = OPEN) -> Iterator[Crowd]:
        with ExitStack() as stack:
            if request.param == "sqlite":
                url, queue = f"sqlite:///{tmp_path}/reprise.db", LocalQueue()
            else:
                url = stack.enter_context(postgres_server()).fresh()
                server = Server()
                stack.callback(server.stop)
                queue = RedisQueue(server.url)
            crowd = Crowd(url, queue, config)
            stack.callback(queue.close)
            for store in crowd.stores:
                stack.callback(store.close)
            yield crowd

    return made


def test_ten_issues_at_once_keep_to_a_quota_of_two(crowd) -> None:
    with crowd("quota:\n  repository: 2\ndefaults:\n  proofs: []\n") as app:
        for number in range(1, 11):
            app.deliver(number=number)
        app.work()
        assert [run.verdict for run in app.runs()] == ["reproduced"] * 2


def test_identical_commands_run_once_and_replies_are_counted(crowd) -> None:
    with crowd() as app:
        for _ in range(3):
            app.deliver("comment", command(seed=5), sender="max")
        for _ in range(30):
            app.deliver("comment", command("help"), sender="passer-by")
        app.work()
        assert len(app.runs()) <= 3
        same = [body for body in app.ours() if "already in progress" in body]
        finished = [run for run in app.runs() if run.verdict == "reproduced"]
        assert len(finished) + len(same) == 3
        helped = [body for body in app.ours() if "A command must be" in body]
        assert len(helped) == 20


def test_plans_keep_to_their_own_limit_and_one_plan_is_one_run(crowd) -> None:
    with crowd("quota:\n  plans: 3\n" + OPEN) as app:
        for number in range(8):
            app.deliver("comment", command(seed=number + 1), sender=f"stranger{number}")
        app.work()
        assert len(app.runs()) == 3


def test_an_opening_with_labels_runs_once(crowd) -> None:
    with crowd("triggers:\n  labels: [bug, crash]\n" + OPEN) as app:
        app.deliver()
        app.deliver("labeled", label="bug", sender="max")
        app.deliver("labeled", label="crash", sender="max")
        app.work()
        assert len(app.runs()) == 1


def test_one_body_under_many_ids_is_one(crowd) -> None:
    with crowd() as app:
        delivery = app.deliver("comment", command(seed=5), sender="max", digest="d" * 64)
        for number in range(10):
            guid = f"copy-{number:04}"
            app.store.claim([delivery.model_copy(update={"guid": guid})])
            app.queue.offer(Task(kind="delivery", id=guid))
        app.work()
        assert len(app.runs()) == 1
        assert len(app.ours()) == 1
