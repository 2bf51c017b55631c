"""What every queue must do, in one process and on Redis; and what a queue on Redis must survive."""

from __future__ import annotations

import pickle
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, sleep

import pytest
from redis import Redis

from bot.app.ports import Task
from bot.app.queue import redis as queue_module
from bot.app.queue.local import LocalQueue
from bot.app.queue.redis import RedisQueue
from bot.kernel.errors import TransientError, UserError
from tests.support.fakes import FrozenClock, InlineQueue

ROOT = Path(__file__).resolve().parents[2]
SOON_S = 5.0


def run(name="a", turn=0, device="cpu"):
    return Task(kind="run", id=name, turn=turn, device=device)


def until(holds, seconds=SOON_S):
    """Wait until something holds; whether it came to that."""
    ends = monotonic() + seconds
    while not holds():
        if monotonic() > ends:
            return False
        sleep(0.01)
    return True


class Server:
    """A redis-server of our own, without a disk."""

    def __init__(self, *options):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.options = options
        self.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/3"

    def client(self, **options):
        return Redis(port=self.port, db=3, **options)

    def start(self):
        argv = [
            "redis-server",
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            "/tmp",
            *self.options,
        ]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        assert until(self._answers), "redis-server does not answer"

    def _answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture(params=["inline", "local", pytest.param("redis", marks=pytest.mark.redis)])
def queue(request):
    made = {"inline": InlineQueue, "local": LocalQueue}
    queue = (
        made[request.param]()
        if request.param in made
        else RedisQueue(request.getfixturevalue("server").url)
    )
    yield queue
    queue.close()


@pytest.fixture
def remote(server):
    queue = RedisQueue(server.url)
    yield queue
    queue.close()


class Worker:
    """Works on a queue in a thread; tasks whose id starts with "slow" last until they are
    aborted or `go` is set.
    """

    def __init__(self, queue, device="cpu", slots=2):
        self.taken, self.ended, self.aborted, self.peak = [], [], [], 0
        self.go, self.stop, self._lock = Event(), Event(), Lock()
        self.thread = Thread(
            target=queue.work,
            args=(self.handle,),
            kwargs={"device": device, "slots": slots, "stop": self.stop},
        )

    def handle(self, task, event):
        with self._lock:
            self.taken.append(task)
            self.peak = max(self.peak, len(self.taken) - len(self.ended))
        try:
            if task.id.startswith("broken"):
                raise ZeroDivisionError("a defect of the handler")
            while task.id.startswith("slow") and not self.go.is_set():
                if event.wait(0.01):
                    self.aborted.append(task)
                    break
        finally:
            with self._lock:
                self.ended.append(task)

    def has(self, *tasks, seconds=SOON_S):
        return until(lambda: Counter(self.taken) >= Counter(tasks), seconds)


@contextmanager
def working(queue, **options):
    worker = Worker(queue, **options)
    worker.thread.start()
    try:
        yield worker
    finally:
        worker.go.set()
        worker.stop.set()
        worker.thread.join(10)
        assert not worker.thread.is_alive()


# --- every queue


def test_what_is_offered_is_handed_on_once(queue):
    tasks = [run("a"), run("b", 4), Task(kind="delivery", id="4f5a:ü 1")]
    queue.offer(tasks[0])
    with working(queue) as worker:
        for task in tasks[1:]:
            queue.offer(task)
        assert worker.has(*tasks)
        sleep(0.5)
    assert Counter(worker.taken) == Counter(tasks)


def test_a_delay_is_kept(queue):
    with working(queue) as worker:
        began = monotonic()
        queue.offer(run("later"), delay_s=1.5)
        queue.offer(run("now"))
        assert worker.has(run("now"), seconds=1.4)
        assert worker.has(run("later"))
        assert 1.49 <= monotonic() - began < 6.0


def test_the_same_turn_offered_twice_while_it_waits_is_one(queue):
    queue.offer(run())
    queue.offer(run())
    with working(queue) as worker:
        assert worker.has(run())
        sleep(0.5)
    assert worker.taken == [run()]


def test_of_two_offers_the_earlier_counts(queue):
    for first, second in ((60.0, 0.0), (0.0, 60.0)):
        queue.offer(run(f"first {first}"), delay_s=first)
        queue.offer(run(f"first {first}"), delay_s=second)
    with working(queue) as worker:
        assert worker.has(run("first 60.0"), run("first 0.0"))
        sleep(0.3)
    assert len(worker.taken) == 2


def test_a_new_turn_is_handed_on_while_the_first_is_under_way(queue):
    with working(queue) as worker:
        for turn in (0, 1):
            queue.offer(run("slow", turn))
            assert worker.has(run("slow", turn))
        assert worker.ended == []


def test_what_is_done_can_be_offered_again(queue):
    with working(queue) as worker:
        for done in (
            [run("a", 0)],
            [run("a", 0), run("a", 1)],
            [run("a", 0), run("a", 1), run("a", 1)],
        ):
            queue.offer(done[-1])
            assert until(partial(lambda expected: worker.ended == expected, done))


def test_the_same_turn_offered_while_it_is_under_way_disturbs_nobody(queue, caplog):
    with working(queue, slots=3) as worker:
        queue.offer(run("slow"))
        assert worker.has(run("slow"))
        queue.offer(run("slow"))
        queue.offer(run("other"))
        assert worker.has(run("other"))
        sleep(0.3)
        assert run("slow") not in worker.ended
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
    assert set(worker.ended) == {run("slow"), run("other")}


def test_two_workers_share_the_work(queue):
    tasks = [run(f"slow {number}") for number in range(6)] + [
        run(f"{number}") for number in range(200)
    ]
    with working(queue, slots=3) as one, working(queue, slots=3) as two:
        for task in tasks[:6]:
            queue.offer(task)
        assert until(
            lambda: len(one.ended) == len(two.ended) == 0 and len(one.taken) == len(two.taken) == 3
        )
        for task in tasks[6:]:
            queue.offer(task)
        one.go.set()
        two.go.set()
        assert until(lambda: len(one.ended) + len(two.ended) >= len(tasks))
        sleep(0.3)
    assert Counter(one.taken + two.taken) == Counter(tasks)


def test_an_abort_reaches_the_turn_that_is_under_way_and_nobody_else(queue):
    with working(queue, slots=3) as worker:
        tasks = [run("slow", 0), run("slow", 1), run("slow other")]
        for task in tasks:
            queue.offer(task)
        assert worker.has(*tasks)
        queue.abort(run("slow", 7))
        queue.abort(run("slow", 1))
        assert until(lambda: worker.ended == [run("slow", 1)], 2.0)
        sleep(0.3)
        assert worker.aborted == [run("slow", 1)]
        assert worker.ended == [run("slow", 1)]


def test_an_abort_of_the_unknown_is_quiet_and_what_waits_stays(queue):
    queue.offer(run("a"))
    for name in ("a", "b"):
        queue.abort(run(name))
    with working(queue) as worker:
        queue.abort(run("b"))
        queue.offer(run("b"))
        assert worker.has(run("a"), run("b"))
    assert worker.aborted == []


def test_devices_are_kept_apart_and_deliveries_need_none(queue):
    delivery = Task(kind="delivery", id="d", device="gpu")
    tasks = [run("c"), run("g", device="gpu"), delivery]
    for task in tasks:
        queue.offer(task)
    with working(queue, device="gpu") as gpu:
        assert gpu.has(tasks[1])
        sleep(0.3)
        with working(queue) as cpu:
            assert cpu.has(tasks[0], delivery)
    assert gpu.taken == [tasks[1]]
    assert Counter(cpu.taken) == Counter([tasks[0], delivery])


def test_slots_bound_what_is_under_way(queue):
    tasks = [run(f"slow {number}") for number in range(7)]
    for task in tasks:
        queue.offer(task)
    with working(queue, slots=3) as worker:
        assert until(lambda: len(worker.taken) == 3)
        sleep(0.4)
        assert len(worker.taken) == 3
        worker.go.set()
        assert worker.has(*tasks)
    assert worker.peak == 3


def delivery(name):
    return Task(kind="delivery", id=name)


def test_a_delivery_does_not_wait_behind_runs(queue):
    with working(queue, slots=1) as worker:
        queue.offer(run("slow"))
        assert worker.has(run("slow"))
        queue.offer(run("next"))
        for turn in range(3):
            queue.offer(delivery(f"cancel {turn}"))
            assert worker.has(delivery(f"cancel {turn}"), seconds=1.0)
        assert run("next") not in worker.taken
        assert worker.ended == [delivery(f"cancel {turn}") for turn in range(3)]


def test_deliveries_do_not_take_the_place_of_runs(queue):
    with working(queue, slots=1) as worker:
        slow = [delivery(f"slow {number}") for number in range(6)]
        for task in slow:
            queue.offer(task)
        assert worker.has(*slow[:4])
        queue.offer(run("a"))
        assert worker.has(run("a"), seconds=1.0)
        assert worker.taken.count(slow[4]) == 0


def test_a_few_deliveries_at_once_in_the_order_in_which_they_were_offered(queue):
    tasks = [
        delivery(f"slow {number * 7 % 40}") for number in range(40)
    ]  # an order that is not that of their names
    for task in tasks:
        queue.offer(task)
    with working(queue, slots=1) as worker:
        assert until(lambda: len(worker.taken) == 4)
        sleep(0.4)
        assert Counter(worker.taken) == Counter(tasks[:4])
        worker.go.set()
        assert worker.has(*tasks)
    assert worker.peak == 4
    late = [worker.taken.index(task) - place for place, task in enumerate(tasks)]
    assert max(map(abs, late)) < 4  # those under way at once may overtake each other


def test_an_abort_reaches_a_run_from_a_delivery(queue):
    with working(queue, slots=1) as worker:
        queue.offer(run("slow"))
        assert worker.has(run("slow"))
        sleep(0.3)
        queue.offer(delivery("cancel"))
        assert worker.has(delivery("cancel"), seconds=1.0)
        queue.abort(run("slow"))
        assert until(lambda: worker.aborted == [run("slow")], 2.0)


def test_an_error_of_the_handler_is_told_and_the_work_goes_on(queue, caplog):
    with working(queue, slots=1) as worker:
        for task in (run("broken"), run("broken too"), run("fine")):
            queue.offer(task)
        assert worker.has(run("fine"))
    told = [record for record in caplog.records if record.exc_info]
    assert [record.exc_info[0] for record in told] == [ZeroDivisionError] * 2
    assert all("broken" in record.getMessage() for record in told)


def test_a_stop_waits_for_what_is_under_way_and_takes_nothing_more(queue):
    with working(queue, slots=1) as worker:
        queue.offer(run("slow"))
        assert worker.has(run("slow"))
        queue.offer(run("next"))
        worker.stop.set()
        sleep(0.5)
        assert worker.thread.is_alive()
        worker.go.set()
        worker.thread.join(3)
        assert not worker.thread.is_alive()
    assert (worker.ended, worker.aborted) == ([run("slow")], [])
    with working(queue) as another:
        assert another.has(run("next"))


# --- in the caller's own thread


def test_a_drain_hands_on_what_is_offered_meanwhile_and_ignores_delays():
    queue, seen = InlineQueue(), []

    def handle(task, event):
        seen.append(task.id)
        if task.id == "a":
            queue.offer(run("c"))
            queue.offer(run("d"), delay_s=900)
            queue.abort(run("a"))
            assert event.is_set()

    queue.offer(run("b"), delay_s=60)
    queue.offer(run("a"))
    assert [task.id for task in queue.waiting] == ["a", "b"]
    assert queue.drain(handle) == 4
    assert seen == ["a", "c", "b", "d"]
    assert queue.waiting == ()


def test_a_drain_with_a_clock_hands_on_what_is_due():
    clock, seen = FrozenClock(), []
    queue = InlineQueue(clock)
    queue.offer(run("a"), delay_s=60)
    assert queue.drain(lambda task, _: seen.append(task.id)) == 0
    clock.advance(61)
    assert queue.drain(lambda task, _: seen.append(task.id)) == 1
    assert seen == ["a"]


def test_a_drain_lets_errors_through_and_does_not_go_on_for_ever():
    queue = InlineQueue()
    queue.offer(run("a"))
    with pytest.raises(ZeroDivisionError):
        queue.drain(lambda *_: 1 / 0)
    queue.offer(run("b"))
    with pytest.raises(RuntimeError, match="after 50"):
        queue.drain(lambda task, _: queue.offer(task, 30), most=50)


# --- on Redis


@pytest.mark.redis
def test_redis_may_restart_again_and_again(server, remote):
    with working(remote, slots=3) as worker:
        remote.offer(run("slow"))
        assert worker.has(run("slow"))
        for turn in range(1, 4):
            server.stop()
            began = monotonic()
            with pytest.raises(TransientError):
                remote.offer(run("lost", turn))
            assert monotonic() - began < 5.0
            sleep(0.7)
            server.start()
            remote.offer(run("a", turn))
            assert worker.has(run("a", turn))
        assert worker.ended.count(run("slow")) == 0
        remote.offer(run("slow", 9))
        assert worker.has(run("slow", 9))
        remote.abort(run("slow", 9))
        assert until(lambda: worker.aborted == [run("slow", 9)], 2.0)


@pytest.mark.redis
def test_a_worker_that_starts_without_redis_waits_for_it(server, remote):
    server.stop()
    with working(remote) as worker:
        sleep(0.5)
        server.start()
        remote.offer(run())
        assert worker.has(run())


@pytest.mark.redis
def test_work_is_found_behind_more_jobs_in_progress_than_arq_reads_at_once(server, remote):
    for number in range(150):  # of workers elsewhere
        remote.offer(run(f"busy-{number}"))
        server.client().psetex(f"arq:in-progress:run:busy-{number}:0", 60_000, b"1")
    remote.offer(run("waits"))
    with working(remote) as worker:
        assert worker.has(run("waits"))
    assert worker.taken == [run("waits")]


@pytest.mark.redis
def test_a_free_place_takes_the_next_job_without_waiting_for_a_poll(server, remote, monkeypatch):
    monkeypatch.setattr(queue_module, "_POLL_S", 3.0)
    tasks = [run(f"r{number}") for number in range(5)]
    for task in tasks:
        remote.offer(task)
    with working(remote, slots=1) as worker:
        assert worker.has(*tasks, seconds=4.0)  # with a poll between two it would be 12
    assert worker.taken == tasks


@pytest.mark.redis
def test_an_emptied_redis_loses_what_waited_and_nothing_else(server, remote):
    with working(remote, slots=1) as worker:
        remote.offer(run("slow"))
        assert worker.has(run("slow"))
        remote.offer(run("lost"))
        with server.client() as client:
            client.flushall()
        remote.offer(run("kept"))
        worker.go.set()
        assert worker.has(run("kept"))
    assert worker.taken == [run("slow"), run("kept")]


DOOMED = """
import os, sys, time
from threading import Event
from bot.app.queue.redis import RedisQueue
def handle(task, event):
    os.write(1, (task.id + "\\n").encode())  # two threads that print may share a line
    time.sleep(600)
RedisQueue(sys.argv[1]).work(handle, device="cpu", slots=2, stop=Event())
"""


@pytest.mark.redis
def test_what_a_killed_worker_had_is_taken_at_once_under_a_new_turn(server, remote):
    with subprocess.Popen(
        [sys.executable, "-c", DOOMED, server.url], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as doomed:
        for name in ("a", "b"):
            remote.offer(run(name))
        assert {doomed.stdout.readline().strip() for _ in "ab"} == {"a", "b"}
        remote.offer(run("waiting"))
        doomed.kill()
        doomed.wait()
    with working(remote, slots=1) as worker:
        assert worker.has(run("waiting"))
        remote.offer(run("a", 1))
        assert worker.has(run("a", 1), seconds=1.0)
        remote.offer(run("b", 0))
        assert worker.has(run("b", 0), seconds=1.0)
    assert len(worker.taken) == 3
    with server.client() as client:  # what a scaler counts
        assert client.zrange("arq:queue:cpu", 0, -1) == [b"run:b:0"]


MALFORMED = {
    "garbage": b"\xff\x00garbage",
    "pickled": pickle.dumps({"f": "cpu", "a": (), "k": {}, "t": None, "et": 1}),
    "no object": b"[]",
    "without a task": b'{"f": "cpu", "a": [], "k": {}, "t": null, "et": 1}',
    "of a newer version": b'{"f": "cpu", "a": [{"kind": "run", "id": "a", "colour": "red"}], '
    b'"k": {}, "t": null, "et": 1}',
    "another function": b'{"f": "mail", "a": [], "k": {}, "t": null, "et": 1}',
    "too deep": b"[" * 2_000,
}


@pytest.mark.redis
def test_what_is_no_task_of_ours_is_told_and_dropped(server, remote, caplog):
    with server.client() as client:
        for name, raw in MALFORMED.items():
            client.set(f"arq:job:{name}", raw)
            client.zadd("arq:queue:cpu", {name: 1})
        client.zadd("arq:queue:cpu", {"without a job": 1})
        remote.offer(run("fine"))
        with working(remote, slots=1) as worker:
            assert worker.has(run("fine"))
            assert until(lambda: not client.exists("arq:queue:cpu"))
            assert client.keys("arq:[ijr]*") == []
    assert worker.taken == [run("fine")]
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert [name for name in (*MALFORMED, "without a job") if name not in told] == []


@pytest.mark.redis
def test_a_redis_that_is_silent_holds_nobody_up(server, remote):
    remote.offer(run())
    server.process.send_signal(signal.SIGSTOP)
    try:
        for most in (3.0, 0.5):  # the second one is not even tried
            began = monotonic()
            with pytest.raises(TransientError):
                remote.offer(run())
            assert monotonic() - began < most
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert until(lambda: quietly(remote))


def quietly(queue):
    try:
        queue.offer(run())
    except TransientError:
        return False
    return True


@pytest.mark.redis
def test_a_password_is_in_no_error(caplog):
    server = Server("--requirepass", "right-one")
    try:
        for url in (
            f"redis://:wr0ng-one@127.0.0.1:{server.port}/0",
            f"redis://:wr0ng-one@127.0.0.1:{server.port + 1}/0",
        ):
            queue = RedisQueue(url)
            with pytest.raises(TransientError) as raised:
                queue.offer(run())
            with working(queue):
                sleep(0.3)
            queue.close()
            assert "wr0ng" not in f"{raised.value} {raised.value.fix} {caplog.text}"
        assert "does not answer" in caplog.text
        queue = RedisQueue(f"redis://:right%2Done@127.0.0.1:{server.port}/0")
        queue.offer(run())
        with working(queue) as worker:
            assert worker.has(run())
        queue.close()
    finally:
        server.stop()


@pytest.mark.parametrize(
    "url", ["redis://:pa/ss@localhost:6379/0", "http://localhost", "redis://localhost:port"]
)
def test_an_address_that_is_none_is_told_without_its_password(url):
    with pytest.raises(UserError) as raised:
        RedisQueue(url)
    assert "pa" not in str(raised.value).replace("cannot", "")
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
