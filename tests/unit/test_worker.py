"""A worker: what it tells, what it survives, and the ways in which it stops."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from bot.app import worker
from bot.app.ports import PeriodicTask, Task
from bot.kernel.errors import TransientError
from tests.support.fakes import InlineQueue

ROOT = Path(__file__).resolve().parents[2]
TASK = Task(kind="run", id="r1", turn=2)


def until(holds, seconds=5.0):
    ends = monotonic() + seconds
    while not holds() and monotonic() < ends:
        sleep(0.01)
    return holds()


@contextmanager
def working(handle, queue, **options):
    stop = Event()
    thread = Thread(
        target=worker.run,
        args=(handle, queue),
        kwargs={"device": "cpu", "slots": 1, "stop": stop, **options},
        daemon=True,
    )
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(5)
        assert not thread.is_alive()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.INFO, "bot.app.worker")
    return lambda: [
        record.getMessage() for record in caplog.records if record.name == "bot.app.worker"
    ]


def test_each_task_is_told_when_taken_and_when_done(told):
    queue = InlineQueue()
    queue.offer(TASK)
    with working(lambda *_: None, queue):
        assert until(lambda: len(told()) == 3)
    lines = told()
    assert lines[:2] == ["worker started device=cpu slots=1", "task taken kind=run id=r1 turn=2"]
    assert lines[2].startswith("task done kind=run id=r1 turn=2 seconds=0.")
    assert lines[-1] == "worker stopped device=cpu"


def test_a_worker_for_one_run_waits_for_it_and_takes_no_other():
    queue, release, taken = InlineQueue(), Event(), []

    def handle(task, _stop):
        taken.append(task.id)
        assert release.wait(5)

    for name in ("r1", "r2"):
        queue.offer(Task(kind="run", id=name))
    options = {"device": "cpu", "slots": 1, "grace_s": 0.0, "once_s": 30.0}
    thread = Thread(target=worker.run, args=(handle, queue), kwargs=options)
    thread.start()
    assert until(lambda: taken)
    sleep(0.5)
    assert thread.is_alive()
    release.set()
    thread.join(5)
    assert not thread.is_alive()
    assert taken == ["r1"]
    assert queue.drain(lambda *_: None) == 1, "the other run waits for another worker"


def test_a_worker_for_one_run_ends_where_none_comes():
    began = monotonic()
    worker.run(lambda *_: None, InlineQueue(), device="gpu", slots=1, once_s=0.3)
    assert 0.3 <= monotonic() - began < 5


def test_an_error_is_told_without_secrets_and_the_next_task_is_handled(told):
    queue, seen = InlineQueue(), []
    errors = {
        "defect": ValueError("postgresql://me:hunter2-x@db"),
        "away": TransientError("no answer for hunter2-x"),
    }

    def handle(task, event):
        seen.append(task.id)
        if task.id in errors:
            raise errors[task.id]

    for name in (*errors, "fine"):
        queue.offer(Task(kind="run", id=name))
    with working(handle, queue, secrets=["hunter2-x"]):
        assert until(lambda: seen == ["defect", "away", "fine"])
    defect, away = [line for line in told() if line.startswith("task failed")]
    assert "Traceback" in defect
    assert "ValueError" in defect
    assert "Traceback" not in away
    assert "TransientError: no answer" in away
    assert "hunter2" not in "".join(told())


def test_periodic_jobs_go_on_after_an_error(told):
    done = []

    def fail():
        done.append("failed")
        raise OSError("no network for hunter2-x")

    ticks = [
        PeriodicTask("reap", 0.02, fail),
        PeriodicTask("prune", 0.02, lambda: done.append("pruned")),
    ]
    with working(lambda *_: None, InlineQueue(), ticks=ticks, secrets=["hunter2-x"]):
        assert until(lambda: done.count("failed") >= 3 and done.count("pruned") >= 3)
    failed = [line for line in told() if line.startswith("tick failed name=reap")]
    assert len(failed) >= 3
    assert "hunter2" not in "".join(failed)


def test_a_stop_ends_periodic_jobs_at_once():
    with working(lambda *_: None, InlineQueue(), ticks=[PeriodicTask("prune", 3600, lambda: None)]):
        sleep(0.1)
        began = monotonic()
    assert monotonic() - began < 10, "not an hour"


@pytest.mark.parametrize("grace_s", [0.0, 0.6])
def test_what_is_under_way_gets_its_grace_and_then_its_event(grace_s):
    queue, events = InlineQueue(), []
    queue.offer(TASK)

    def handle(task, event):
        events.append(event)
        assert event.wait(5)
        events.append(monotonic())

    with working(handle, queue, grace_s=grace_s) as stop:
        assert until(lambda: events)
        sleep(0.1)
        assert not events[0].is_set()
        stop.set()
        began = monotonic()
    assert grace_s - 0.1 <= events[1] - began < grace_s + 0.5


def test_an_error_of_the_queue_itself_is_raised():
    class Broken(InlineQueue):
        def work(self, handle, *, device, slots, stop):
            raise LookupError("no such queue")

    with pytest.raises(LookupError):
        worker.run(lambda *_: None, Broken(), device="cpu", slots=1, stop=Event())


PROCESS = """
import logging, signal, sys
from threading import Event
from time import sleep
from bot.app import worker
from bot.app.ports import Task
from bot.app.queue.local import LocalQueue
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
queue = LocalQueue()
queue.offer(Task(kind="run", id="r"))
def handle(task, event):
    if sys.argv[1] == "deaf":
        sleep(600)
    print("stopped" if event.wait(float(sys.argv[1])) else "ended by itself", flush=True)
before = signal.getsignal(signal.SIGTERM)
worker.run(handle, queue, device="cpu", slots=1, grace_s=30)
assert signal.getsignal(signal.SIGTERM) is before
"""


@pytest.mark.parametrize(
    ("lasts", "signals", "says", "status"),
    [
        ("1.0", [signal.SIGTERM], "ended by itself", 0),
        ("30", [signal.SIGTERM, signal.SIGTERM], "stopped", 0),
        ("30", [signal.SIGINT, signal.SIGTERM], "stopped", 0),
        ("deaf", [signal.SIGTERM, signal.SIGINT, signal.SIGTERM], None, -signal.SIGTERM),
    ],
)
def test_signals(lasts, signals, says, status):
    argv = [sys.executable, "-u", "-c", PROCESS, lasts]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        lines = iter(process.stdout.readline, "")
        assert any(line.startswith("task taken") for line in lines)
        for number in signals:
            process.send_signal(number)
            sleep(0.3)
        rest = list(lines)
        assert process.wait(5) == status
    assert (says is None) or f"{says}\n" in rest
    assert (rest[-1] == "worker stopped device=cpu\n") == (status == 0)
