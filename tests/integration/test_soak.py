"""The soak sees what an App leaves behind, and a short one goes well."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from redis import Redis

from benchmarks.killing import adopted_orphans
from benchmarks.soak.leftovers import Places, more
from benchmarks.soak.sampling import look, sampled
from benchmarks.soak.stream import Plan, soak
from benchmarks.supervised import Supervised, free_port, reachable, redis
from benchmarks.whole_app import RunningApp
from bot.kernel.settings import host
from tests.support.stand_in import GitHubServer

LEAVES = "import subprocess; print(subprocess.Popen(['sleep', '31'], stdout=-3, stderr=-3).pid, flush=True)"
GROWS = "import time\ntime.sleep(0.5)\nkept = bytearray(64 << 20)\nfiles = [open('/dev/null') for _ in range(40)]\ntime.sleep(60)"


def _own(found: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """What is left behind, without control groups: other tests make and remove them meanwhile."""
    return {kind: names for kind, names in found.items() if kind != "control groups"}


@pytest.mark.redis
def test_each_kind_of_leftover_is_seen(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "cache" / "scratch").mkdir(parents=True)
    server = {"redis": redis(port, tmp_path, shutil.which("redis-server"))}
    with adopted_orphans(), Supervised(server, host(), tmp_path) as programs:
        assert reachable(port, 10)
        url = f"redis://127.0.0.1:{port}/0"
        app = RunningApp(GitHubServer(), programs, programs, "", url, {})
        places = Places(tmp_path, "process")
        before = places.seen(app)
        assert _own(more(places.seen(app), before)) == {}
        (tmp_path / "tmp" / "reprise-run-1").mkdir()
        (tmp_path / "cache" / "scratch" / "half").touch()
        Redis(port=port).set("reprise:grows", 1)
        done = subprocess.run(
            [sys.executable, "-c", LEAVES], capture_output=True, text=True, check=True
        )
        found = more(places.seen(app), before)
        os.kill(int(done.stdout), 9)
        os.waitpid(int(done.stdout), 0)
    assert _own(found) == {
        "processes": ("sleep 31",),
        "temporary files": ("reprise-run-1",),
        "files in the cache": ("half",),
        "Redis keys": ("reprise:grows",),
    }


def test_memory_and_open_files_are_seen_to_grow(tmp_path: Path) -> None:
    program = {"worker-1": [sys.executable, "-c", GROWS]}
    with (
        Supervised(program, host(), tmp_path) as programs,
        sampled(lambda at: look(programs, at), 0.1) as samples,
    ):
        end = time.monotonic() + 30  # a busy machine starts it late
        while time.monotonic() < end and (not samples or samples[-1].files["worker-1"] < 40):
            time.sleep(0.1)
    first, last = min(samples, key=lambda sample: sample.total_mb), samples[-1]
    assert last.total_mb - first.total_mb > 60
    assert last.files["worker-1"] - first.files["worker-1"] >= 20


@pytest.mark.bwrap
@pytest.mark.redis
@pytest.mark.nightly  # half a minute of deliveries
def test_a_short_soak_leaves_nothing_and_every_honest_report_is_answered_rightly() -> None:
    plan = Plan(minutes=0.5, rate=12, sandbox="bwrap", every_s=1.0, environ=host())
    outcome = soak(plan, print)
    assert [each for each in outcome.answers if each.honest and not each.right] == []
    assert (len(outcome.answers), outcome.refused) == (6, 0)
    assert (outcome.leftovers, outcome.restarts) == ({}, {})
    assert outcome.warm.memory_mb > 100
    assert all(each.seconds is not None for each in outcome.answers if each.comments)
