"""A worker process that is killed in the middle of a repair: another one goes on with its trials and
makes none twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import time

import pytest

from bot.app.context import AppContext, HostPolicy
from bot.app.github.client import GitHubApp
from bot.app.ports import Task
from bot.app.store import SqlStore
from bot.app.worker import Service
from bot.kernel.run import RunState
from bot.training.repair.trials import TRIALS
from tests.integration.test_repair_pull_requests import Trainings, TrainingWorld, engine
from tests.support.fakes import InlineQueue
from tests.support.stand_in import GitHubServer
from tests.unit.test_repair import by_rate

ROOT = Path(__file__).resolve().parents[2]


class GitHubWrite(Trainings):
    """Trainings that are written down, so that a killed process has told of them."""

    def __init__(self, log: Path, last: int = 0) -> None:
        super().__init__(by_rate)
        self.log, self.last = log, last

    def __call__(self, spec):
        before = len(self.trials)
        done = super().__call__(spec)
        if len(self.trials) > before:
            text, part, seed = self.trials[-1]
            with self.log.open("a") as log:
                log.write(json.dumps([text.decode(), part, seed]) + "\n")
            if len(self.trials) == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
        return done


def worker(told: dict[str, str]) -> None:
    """One worker process: it takes the run, and dies in its training `last`."""
    github = GitHubApp(told["url"], int(told["app"]), told["key"], told["slug"], timeout_s=5)
    store, queue = SqlStore(told["store"], write_gap_s=0, notify_gap_s=0), InlineQueue()
    policy = HostPolicy(public_url="https://reprise.example", beat_s=0.02, lease_s=5.0)
    runs = engine(GitHubWrite(Path(told["log"]), int(told["last"])))
    queue.offer(Task(kind="run", id=told["run"]))
    queue.drain(Service(AppContext(store, queue, github, runs, policy)).handle)


@pytest.mark.parametrize("last", [1, pytest.param(7, marks=pytest.mark.nightly), 16])
def test_a_killed_process_loses_the_training_at_work_and_no_other(tmp_path, last):
    address, log = f"sqlite:///{tmp_path / 'app.db'}", tmp_path / "log"
    with GitHubServer(echo=False) as server:
        world = TrainingWorld(server)
        world.store = SqlStore(
            address, clock=lambda: time() + world.ahead, write_gap_s=0, notify_gap_s=0
        )
        asking, world.service = world.another(), world.another()
        world.service.handle = lambda task, stop: task.kind == "run" or asking.handle(task, stop)
        world.deliver("comment", "repair")
        (run,) = world.store.runs(states=(RunState.QUEUED,))
        app = server.state.app
        told = {
            "url": server.api_url, "app": app.id, "key": app.key, "slug": app.slug,
            "store": address, "log": str(log), "run": run.id, "last": last,
        }  # fmt: skip
        argv = (sys.executable, __file__, json.dumps(told))
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(argv, env=env, cwd=ROOT, timeout=120)
        assert done.returncode == -signal.SIGKILL
        assert len(world.store.entries(run.id, TRIALS)) == last - 1
        world.trainings = GitHubWrite(log)
        world.resume()
        assert "proven to help" in world.sticky()
        assert len(world.ours()) == 1
    trials = [tuple(json.loads(line)) for line in log.read_text().splitlines()]
    assert trials[last - 1] in trials[last:], "the one at work is made again"
    assert len(set(trials)) == len(trials) - 1


if __name__ == "__main__":
    worker(json.loads(sys.argv[1]))
