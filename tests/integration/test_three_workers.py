"""Three workers decide at once, over one database and one Redis: limits hold to the number, what
is asked for twice runs once, and neither a restarted Redis nor a killed worker loses anything.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from bot.app.context import AppContext
from bot.app.ports import Task
from bot.app.queue.local import LocalQueue
from bot.app.queue.redis import RedisQueue
from bot.app.store import SqlStore
from bot.app.worker import Service
from bot.kernel.errors import TransientError
from tests.contract.test_queue_contract import ROOT, Server
from tests.support.postgres import postgres_server
from tests.unit.test_service import FAILS, App, command

KINDS = ("sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.redis]))
OPEN = "defaults:\n  proofs: []\n"


class Crowd(App):
    """Three workers, each with a store of its own, which start with everything delivered."""

    def __init__(self, url: str, queue: object, config: str, **house: float) -> None:
        super().__init__(config=config, **house)
        self.stores = [SqlStore(url, write_gap_s=0, notify_gap_s=0) for _ in range(3)]
        self.store, self.queue, self._stop = self.stores[0], queue, Event()
        self.queue.drain = lambda _handle: None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Three workers while the block lasts."""
        workers = []
        for store in self.stores:
            service = Service(AppContext(store, self.queue, self.hub, self._engine, self.house))
            told = {"device": "cpu", "slots": 2, "stop": self._stop}
            workers.append(Thread(target=self.queue.work, args=(service.handle,), kwargs=told))
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            self._stop.set()
            for worker in workers:
                worker.join(20)
        assert not any(worker.is_alive() for worker in workers)

    def work(self, seconds: float = 60.0) -> None:
        """Until nothing is left."""
        with self.working():
            self.finish(seconds)

    def finish(self, seconds: float = 60.0) -> None:
        """Wait until nothing is left; what is overdue is offered again."""
        end = monotonic() + seconds
        while monotonic() < end and any(
            self.store.counts()[name]
            for name in ("deliveries.waiting", "deliveries.handling", "runs.queued", "runs.running")
        ):
            sleep(0.05)
            for task in self.store.overdue(1.0):
                with suppress(TransientError):
                    self.queue.offer(task)


@pytest.fixture(params=KINDS)
def crowd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[object]:
    @contextmanager
    def made(config: str = OPEN, **house: float) -> Iterator[Crowd]:
        with ExitStack() as stack:
            server = None
            if request.param == "sqlite":
                url, queue = f"sqlite:///{tmp_path}/reprise.db", LocalQueue()
            else:
                url = stack.enter_context(postgres_server()).fresh()
                server = Server()
                stack.callback(server.stop)
                queue = RedisQueue(server.url)
            crowd = Crowd(url, queue, config, **house)
            crowd.url, crowd.server = url, server
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


def waits(holds, seconds: float = 30.0) -> None:
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end
        sleep(0.02)


only_redis = pytest.mark.parametrize("crowd", KINDS[1:], indirect=True)


@only_redis
def test_a_redis_that_restarts_amid_two_hundred_deliveries_loses_and_doubles_nothing(crowd) -> None:
    with crowd() as app:
        for number in range(1, 201):
            app.deliver("comment", command("help"), sender=f"visitor-{number}", number=number)

        def restart() -> None:
            for most in (150, 75):
                waits(lambda most=most: app.store.counts()["deliveries.waiting"] < most)
                app.server.stop()
                sleep(0.7)
                app.server.start()
                restarted.append(most)

        restarted = []
        thread = Thread(target=restart)
        with app.working():
            thread.start()
            app.finish(120)
            thread.join()
        assert restarted == [150, 75]
        assert app.store.counts()["deliveries.waiting"] == 0
        assert [len(app.ours(number)) for number in range(1, 201)] == [1] * 200


def test_a_cancellation_reaches_a_run_within_five_seconds(crowd) -> None:
    def lasts(_spec):
        app.cancels[-1].wait(30)
        return FAILS

    with crowd(beat_s=1.0) as app:
        app.program = lasts
        app.deliver()
        with app.working():
            waits(lambda: app.worked)
            began = monotonic()
            app.deliver("comment", command("cancel"), sender="max")
            waits(lambda: app.cancels[-1].is_set(), 5.0)
            assert monotonic() - began < 5.0
            app.finish()
        assert [run.verdict for run in app.runs()] == ["cancelled"]


DOOMED = """
import sys, time
from threading import Event
from bot.app.queue.redis import RedisQueue
from bot.app.store import SqlStore
store = SqlStore(sys.argv[1])
def handle(task, event):
    if task.kind == "run":
        store.take_run(task.id, "doomed", 2.0)
        print(task.id, flush=True)
        time.sleep(600)
RedisQueue(sys.argv[2]).work(handle, device="cpu", slots=1, stop=Event())
"""


@only_redis
def test_the_run_of_a_killed_worker_is_taken_over(crowd) -> None:
    with crowd() as app:
        delivery = app.deliver()
        app.another().handle(Task(kind="delivery", id=delivery.guid), Event())
        argv = [sys.executable, "-c", DOOMED, app.url, app.server.url]
        with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as doomed:
            ids = [doomed.stdout.readline().strip()]
            doomed.kill()
        app.work()
        assert [run.id for run in app.runs()] == ids
        assert [run.verdict for run in app.runs()] == ["reproduced"]
        assert len(app.ours()) == 1
