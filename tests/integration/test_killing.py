"""Killing the real command line leaves no process, no container and no half-written report."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import killing
from benchmarks.containers import containers_of
from bot.kernel.settings import load
from sandbox.docker import DockerSandbox
from sandbox.port import Limits, RunSpec


def test_a_left_child_is_seen_even_when_its_parent_is_gone() -> None:
    """The finder of leaks finds one: a grandchild whose parent has ended."""
    script = "import subprocess; print(subprocess.Popen(['sleep', '30'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid, flush=True)"
    with killing.adopted_orphans():
        parent = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        orphan = int(parent.stdout)
        try:
            assert killing.descendants(os.getpid())[orphan] == "sleep 30"
        finally:
            os.kill(orphan, 9)
        os.waitpid(orphan, 0)
        assert orphan not in killing.descendants(os.getpid())


@pytest.mark.parametrize(
    ("text", "wrong"),
    [('{"verdict": {"kind": "reproduced"}}', False), ('{"verdict": {"ki', True), ("{}", True)],
)
def test_a_torn_report_is_told_from_a_whole_one(tmp_path: Path, text: str, wrong: bool) -> None:
    report = tmp_path / "report.json"
    assert killing.torn(report) == ""
    report.write_text(text)
    assert bool(killing.torn(report)) is wrong


@pytest.mark.index
@pytest.mark.parametrize(
    ("sandbox", "times"),
    [
        pytest.param(
            "process", 3, marks=pytest.mark.nightly
        ),  # the third while it builds, which is the same for every sandbox
        pytest.param("bwrap", 2, marks=pytest.mark.bwrap),
        pytest.param("docker", 2, marks=[pytest.mark.docker, pytest.mark.nightly]),
    ],
)
@pytest.mark.slow  # many kills, each with a run after it
def test_kills_leave_nothing_and_the_next_run_succeeds(sandbox: str, times: int) -> None:
    kills = list(
        killing.kill_runs(
            sandbox,
            times,
            containers_of(sandbox),
            seed=int(time.monotonic()),
            without="control,bisect,minimize",
            warm=load().cache_dir,
        )
    )
    assert [kill for kill in kills if not kill.clean] == []
    assert len(kills) == times


@pytest.mark.docker
def test_only_the_containers_of_the_asked_process_are_listed() -> None:
    """A container of this very process is seen while it runs, under our number and no other."""
    seen: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    ours = containers_of("docker")

    def look(_stream: str, _line: str) -> None:
        seen.append((ours(os.getpid()), ours(1)))

    DockerSandbox().run(
        RunSpec(("/bin/sh", "-c", "echo here; sleep 1"), limits=Limits(wall_s=30)), on_output=look
    )
    assert [(len(mine), others) for mine, others in seen] == [(1, ())]
