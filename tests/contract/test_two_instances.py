"""Two Reprise on one machine: a sweep of one takes nothing of the other, nor one run of the next."""

from __future__ import annotations

import io
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import guard_client, port, process
from sandbox.cache import Inbox
from sandbox.docker import AttachedContainer
from sandbox.guard import host, tree
from sandbox.port import Limits, RunSpec
from sandbox.process import Pipes
from tests.contract.conftest import Bench

SWEEPING = """
import sys
from pathlib import Path
from bot.app import bootstrap
from bot.kernel.settings import Settings
from tests.contract.conftest import KINDS
home = Path(sys.argv[2])
settings = Settings(cache_dir=home / "cache", runs_dir=home / "runs")
while True:
    bootstrap.sweep(KINDS[sys.argv[1]](), settings)
    print("swept", flush=True)
"""
APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@pytest.fixture
def shared() -> Iterator[Path]:
    """The temporary folder of both, which the run's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="reprise-shared-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("apart", [False, True], ids=["beside", "in a container"])
def test_another_instance_that_sweeps_takes_nothing_of_a_run(
    real: Bench, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    if apart and os.geteuid():
        pytest.skip("needs root for a process namespace")
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    argv = [*(APART if apart else ()), sys.executable, "-c", SWEEPING, real.kind, str(tmp_path)]
    env = {**os.environ, "TMPDIR": str(shared)}
    root = Path(__file__).parents[2]
    sweeper = subprocess.Popen(argv, env=env, cwd=root, stdout=subprocess.PIPE, text=True)
    inbox = Inbox(shared / "cache")
    inbox.put("0.json", b"{}")
    try:
        assert sweeper.stdout is not None
        assert sweeper.stdout.readline() == "swept\n"
        limits = Limits(wall_s=60, scratch_mb=16)
        spec = RunSpec(("/bin/sh", "-c", "echo $((6 * 7))"), limits=limits)
        told = [real.sandbox.run(spec).stdout for _ in range(6)]
        assert sweeper.poll() is None, "it swept all the time"
    finally:
        sweeper.kill()
        sweeper.communicate()
    assert told == ["42\n"] * 6
    assert (inbox.path / "0.json").read_bytes() == b"{}"
    inbox.close()


class Delayed(socket.socket):
    """A socket whose reader loses the processor between taking its descriptor and reading."""

    def recv(self, size: int, flags: int = 0) -> bytes:
        descriptor = self.fileno()
        time.sleep(0.003)
        return os.read(descriptor, size)

    def recv_into(self, buffer: memoryview, nbytes: int = 0, flags: int = 0) -> int:  # type: ignore[override]
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def container(message: bytes) -> tuple[guard_client.Channel, Callable[[], None]]:
    """The streams of a container that has sent a message and left, and how they are closed."""
    ours, its = socket.socketpair()
    its.sendall(b"\x01\0\0\0" + len(message).to_bytes(4, "big") + message)
    its.close()
    attached = AttachedContainer(Delayed(fileno=ours.detach()))
    return attached, attached.close


def guard(message: bytes) -> tuple[guard_client.Channel, Callable[[], None]]:
    """The same of a guard on this host."""
    reader, writer = os.pipe()
    os.write(writer, message)
    os.close(writer)
    out = os.fdopen(reader, "rb")
    return Pipes(io.BytesIO(), out), out.close


@pytest.mark.parametrize(("left", "times"), [(guard, 4000), (container, 100)])
def test_the_reader_of_a_run_that_ended_takes_nothing_of_the_next(
    left: Callable[[bytes], tuple[guard_client.Channel, Callable[[], None]]], times: int
) -> None:
    """Its descriptor gets the number of the one that was just closed."""
    for turn in range(times):
        message = f"the result of run {turn}".encode()
        channel, close = left(message)
        inbox, over = queue.Queue[bytes](maxsize=256), threading.Event()
        arguments = (channel, inbox, over)
        threading.Thread(target=guard_client._pump, args=arguments, daemon=True).start()
        try:
            assert inbox.get(timeout=10) == message
        finally:
            over.set()
            close()


def test_a_number_that_went_to_another_process_is_not_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list of what is below a process is old when its end comes."""
    innocent = subprocess.Popen(["/bin/sleep", "60"])
    parent = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 60 & echo; wait"], stdout=subprocess.PIPE, text=True
    )
    with innocent, parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        (below,) = tree.descendants(parent.pid)
        old = iter([[below, innocent.pid], []])
        with monkeypatch.context() as listing:
            listing.setattr(tree, "descendants", lambda _: next(old))
            assert tree.kill_tree(parent.pid)
        assert parent.wait(10) is not None
        assert innocent.poll() is None
        assert tree._fields(innocent.pid)[0] != "T", "nor was it stopped"
        innocent.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root")
def test_an_empty_control_group_is_its_guards_while_that_lives() -> None:
    group = host.Group(port.token())
    if not group.make(64, 256, 1.0):
        pytest.skip("no control groups here")
    token = Path(group.dirs[0]).name
    try:
        assert token not in process.abandoned_groups(0.0)
        while group.locks:
            os.close(group.locks.pop())
        assert token in process.abandoned_groups(0.0)
    finally:
        group.remove()
