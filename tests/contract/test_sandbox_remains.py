"""What is left when things go wrong from outside: dead owners, killed guards, killed containers;
and what the base image is called.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from sandbox import bwrap, docker as hull, janitor, process
from sandbox.cache import Cache, Inbox
from sandbox.guard import tree
from sandbox.port import Limits, RunSpec, SandboxError, SandboxUnavailable
from sandbox.process import ProcessSandbox
from sandbox.select import choose

BASE = Path(__file__).parents[2] / "deploy" / "base"
SLEEPER = RunSpec(
    ("/bin/sh", "-c", "echo up; sleep 60 & sleep 60"), limits=Limits(wall_s=90, scratch_mb=16)
)


def test_the_image_is_named_by_its_content():
    content = (BASE / "packages.txt").read_bytes() + (BASE / "finish.sh").read_bytes()
    assert f"reprise-base:trixie-{hashlib.sha256(content).hexdigest()[:12]}" == hull.BASE_IMAGE


def test_an_owner_is_alive_until_its_process_is_not():
    assert janitor.alive(janitor.me()) is True
    boot, space, _, began = janitor.me().split("/")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    its = f"{boot}/{space}/{child.pid}/{janitor.started(child.pid)}"
    assert janitor.alive(its) is True
    child.communicate(b"\n")
    assert janitor.alive(its) is False
    assert (
        janitor.alive(f"{boot}/{space}/{os.getpid()}/{int(began) + 1}") is False
    )  # the number was given to another process
    assert janitor.alive(f"{boot}/1/2/3") is None
    assert janitor.alive(f"of-another-machine/{space}/4194999/1") is None
    assert janitor.alive("nonsense") is None


@pytest.mark.docker
def test_a_sweep_takes_what_the_dead_left_and_nothing_else():
    sandbox = hull.DockerSandbox()
    client = sandbox.client()
    boot, space, *_ = janitor.me().split("/")

    def make(whose: str) -> str:
        return client.api.create_container(
            hull.BASE_IMAGE,
            ["true"],
            labels={janitor.OWNER: whose, hull.DEADLINE: str(int(time.time()) + 600)},
        )["Id"]

    dead, living, foreign = (
        make(f"{boot}/{space}/4194999/1"),
        make(janitor.me()),
        make(f"{boot}/1/2/3"),
    )
    try:
        assert sandbox.sweep() >= 1
        left = {one["Id"] for one in client.api.containers(all=True)}
        assert dead not in left
        assert {living, foreign} <= left
    finally:
        for one in (living, foreign):
            client.api.remove_container(one, force=True)


@pytest.mark.docker
def test_a_container_killed_from_outside_is_no_result():
    sandbox = hull.DockerSandbox()

    def shoot(_: str, __: str) -> None:
        found = sandbox.client().api.containers(
            filters={"label": f"{janitor.OWNER}={janitor.me()}"}
        )
        threading.Thread(
            target=lambda: [sandbox.client().api.kill(one["Id"]) for one in found]
        ).start()

    with pytest.raises(SandboxError, match="without a result"):
        sandbox.run(SLEEPER, on_output=shoot)
    assert (
        sandbox.client().api.containers(
            all=True, filters={"label": f"{janitor.OWNER}={janitor.me()}"}
        )
        == []
    )


@pytest.mark.docker
def test_a_missing_image_says_what_to_do():
    sandbox = hull.DockerSandbox("reprise-base:never-built")
    with pytest.raises(SandboxUnavailable, match=re.escape("build.sh")):
        sandbox.run(RunSpec(("/bin/true",)))
    health = sandbox.check()
    assert not health.works
    assert "build.sh" in health.fix


def test_a_daemon_that_is_not_there_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    health = hull.DockerSandbox().check()
    assert not health.works
    assert "daemon" in health.fix


@pytest.fixture
def scratch(monkeypatch):
    """A temporary directory of our own, which the run's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="reprise-scratch-"))
    folder.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    folder.rmdir()  # fails when something is left in it


def test_a_killed_guard_takes_the_run_with_it(scratch):
    """From outside only: the caller then ends what the guard can no longer end."""
    before = set(tree.descendants(os.getpid()))

    def shoot(_: str, __: str) -> None:
        for pid in set(tree.descendants(os.getpid())) - before:
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:3] == [b"-I", b"-S"]:
                os.kill(pid, 9)

    with pytest.raises(SandboxError, match="it was killed by signal 9"):
        ProcessSandbox().run(SLEEPER, on_output=shoot)
    assert [pid for pid in Path("/proc").glob("[0-9]*") if _mentions(pid, str(scratch))] == []


# Each process starts the next one and ends: what is listed is gone when it is looked at, and what
# is there is not listed.
CHAINS = "f() { sleep 0.02; f & }; f & f & f & echo up; sleep 60"


def test_processes_that_start_the_next_and_end_are_all_ended():
    for turn in range(6):
        token = f"{os.getpid():08x}{turn:08x}"
        program = subprocess.Popen(
            ["/bin/sh", "-c", CHAINS],
            env={"PATH": "/usr/bin:/bin", "REPRISE_RUN": token},
            stdout=subprocess.PIPE,
        )
        assert program.stdout.read(3) == b"up\n"
        process.end_run(token)
        time.sleep(0.1)  # what slipped through has gone on by now
        left = [pid for pid in Path("/proc").glob("[0-9]*") if _mentions(pid, token)]
        process.end_run(token)
        program.communicate()
        assert left == []


def _mentions(process: Path, text: str) -> bool:
    try:
        return text.encode() in (process / "environ").read_bytes()
    except OSError:
        return False


def test_a_sweep_takes_an_unlocked_scratch_directory(scratch):
    folder = process.scratch("0123456789abcdef")
    folder.mkdir()
    (folder / "work").mkdir()
    assert ProcessSandbox().sweep() >= 1
    assert not folder.exists()


INBOX = """
import sys
from pathlib import Path
from sandbox.cache import Inbox
inbox = Inbox(Path(sys.argv[1]))
inbox.put("0.json", b"{}")
print(inbox.path, flush=True)
input()
"""


def test_a_sweep_of_the_cache_takes_the_inbox_of_the_dead_and_no_other(tmp_path):
    mine = Inbox(tmp_path)
    mine.put("0.json", b"{}")
    child = subprocess.Popen(
        [sys.executable, "-c", INBOX, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        its = Path(child.stdout.readline().strip())
        assert Cache(tmp_path).sweep() == 0
        assert (its / "0.json").exists()
        child.kill()
    assert Cache(tmp_path).sweep() == 1
    assert not its.exists()
    assert [each.name for each in (tmp_path / "locks").iterdir()] == [f"{mine.path.name}.lock"], (
        "nor is its lock left"
    )
    assert (mine.path / "0.json").read_bytes() == b"{}"
    mine.close()
    assert not mine.path.exists()


def test_the_filter_is_well_formed_for_both_machines():
    for machine in ("x86_64", "aarch64"):
        filtered = bwrap.filter_program(machine)
        assert len(filtered) % 8 == 0
        assert 0 < len(filtered) // 8 < 4096
    assert bwrap.filter_program("riscv64") == b""


@pytest.mark.docker
def test_auto_takes_the_strongest():
    assert choose("auto").name == "docker"


@pytest.mark.bwrap
def test_auto_falls_back_to_bwrap_and_never_to_a_process(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert choose("auto").name == "bwrap"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"docker: .*bwrap: "):
        choose("auto")


def test_a_process_is_taken_when_asked():
    assert choose("process").name == "process"


@pytest.mark.docker
def test_the_overhead_command_prints_its_figures():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sandbox", "--runs", "1", "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=BASE.parents[1],
    )
    assert '"ratio"' in done.stdout
