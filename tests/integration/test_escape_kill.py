"""A runner killed at any moment leaves no process, no container and no directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

RUNNER = """
import sys
sys.path.insert(0, {root!r})
from sandbox.port import Limits, Mount, RunSpec
from sandbox.{kind} import {name}
from pathlib import Path
home = {home!r}
box = {name}()
source = "import os, sys, time\\nif os.fork() == 0:\\n  os.setsid()\\n  if os.fork(): os._exit(0)\\nprint('up', flush=True)\\ntime.sleep(120)"
while True:
    print('go', flush=True)
    box.run(RunSpec((home + '/bin/python', '-c', source, {mark!r}), env={{'LD_LIBRARY_PATH': home + '/lib'}}, mounts=(Mount(Path(home)),),
                    limits=Limits(wall_s=100, memory_mb=256, scratch_mb=48)), on_output=lambda stream, line: print(line, flush=True))
"""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A temporary directory of our own, which the run's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="reprise-scratch-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("delay", [None, 0.0, 0.05, 0.15, 0.3])
def test_a_killed_runner_leaves_nothing(real, interpreter, scratch, delay):
    """SIGKILL at the moment the program runs (None), or so long after the sandbox was called."""
    name = {"docker": "DockerSandbox", "bwrap": "BwrapSandbox", "process": "ProcessSandbox"}[
        real.kind
    ]
    mark = f"reprise-victim-{time.time_ns()}"
    text = RUNNER.format(
        root=str(Path(__file__).parents[2]),
        kind=real.kind,
        name=name,
        home=str(interpreter),
        mark=mark,
    )
    runner = subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert runner.stdout is not None
    assert runner.stdout.readline() == "go\n"
    if delay is None:
        assert runner.stdout.readline() == "up\n"
    else:
        time.sleep(delay)
    runner.kill()
    runner.wait()
    runner.stdout.close()
    end = time.monotonic() + 12
    while (left := remains(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []
    owned = owned_containers(runner.pid) if real.kind == "docker" else []
    while owned and time.monotonic() < end:
        time.sleep(0.1)
        owned = owned_containers(runner.pid)
    assert owned == []
    while left_in(scratch) and time.monotonic() < end:
        time.sleep(0.1)
    assert left_in(scratch) == []


def left_in(scratch: Path) -> list[Path]:
    """What is left but the few bytes with which Python's tempfile tries a folder, should the
    kill fall between its two calls.
    """
    probe = {b"blat", b""}
    return [
        path
        for path in scratch.iterdir()
        if not (path.is_file() and len(path.name) == 8 and path.read_bytes() in probe)
    ]


def owned_containers(pid: int) -> list[str]:
    """Containers labelled as this process's."""
    query = [
        "docker",
        "ps",
        "-a",
        "--filter",
        "label=reprise.owner",
        "--format",
        '{{.Label "reprise.owner"}}',
    ]
    listed = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
    return [line for line in listed if line.split("/")[2] == str(pid)]


def remains(mark: str) -> list[str]:
    """Processes with this mark on their command line, after a moment for the kernel to finish."""
    for _ in range(40):
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if mark.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                    found.append(path.parent.name)
            except OSError:
                continue
        if not found:
            return []
        time.sleep(0.05)
    return found
