"""What hostile programs try in a workspace, whose files outlive them, and what is left of one when
its runner or its guard is killed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from sandbox.guard import tree
from sandbox.port import Limits, SandboxError
from tests.integration.test_escape_kill import left_in, owned_containers, remains, scratch
from tests.support import unprivileged

__all__ = ["scratch"]
SMALL = Limits(wall_s=20, memory_mb=256, scratch_mb=64, file_mb=48)


def test_links_lead_nowhere_in_either_direction(walled):
    with tempfile.TemporaryDirectory(prefix="reprise-outside-") as name:
        outside = Path(name)
        outside.chmod(0o777)
        (outside / "secret").write_text("sesame")
        source = f"""
import os
os.symlink({name!r}, 'folder'); os.symlink({name + "/secret"!r}, 'file'); os.symlink('/etc/passwd', 'etc')
os.mkfifo('pipe'); os.mkdir('deep'); os.symlink('../..', 'deep/up')
"""
        with walled.open() as space:
            assert walled.exec(space, source).exit_code == 0
            assert space.get("**", "folder/*", "deep/up/**").artifacts == {}
            for path in ("folder/new", "deep/up/new", "pipe/new"):
                with pytest.raises(SandboxError):
                    space.put({path: b"x"})
            space.put({"file": b"mine", "pipe": b"mine"})
            assert space.get("**").artifacts == {"file": b"mine", "pipe": b"mine"}
        assert [path.name for path in outside.iterdir()] == ["secret"]
        assert (outside / "secret").read_text() == "sesame"


def test_a_program_that_will_not_end_ends_with_its_call(real):
    mark = f"reprise-survivor-{os.getpid()}-{real.kind}"
    source = f"""
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, '-c', 'import time\\nfor _ in range(400): time.sleep(.05); open("later", "a").write("x")', {mark!r}])
    os._exit(0)
time.sleep(0.4)
"""
    with real.open(limits=SMALL) as space:
        assert real.exec(space, source).exit_code == 0
        assert remains(mark) == []
        first = space.get("later").artifacts
        time.sleep(0.3)
        assert space.get("later").artifacts == first


def test_the_files_of_all_programs_share_one_limit(walled):
    fill = """
import os
try:
    with open(str(os.urandom(4).hex()), 'wb') as file:
        for _ in range(24): file.write(bytes(1 << 20))
except OSError: pass
print(sum(entry.stat().st_blocks * 512 for entry in os.scandir()) >> 20)
"""
    with walled.open(limits=SMALL) as space:
        sizes = [int(walled.exec(space, fill).stdout or 0) for _ in range(4)]
        assert sizes[0] == 24
        assert max(sizes) <= 64
        assert walled.exec(space, "print('on')").stdout in ("on\n", "")


@pytest.mark.bwrap
def test_nor_does_a_worker_without_root_give_more(interpreter):
    fill = """
import os
try:
    with open('/tmp/' + os.urandom(4).hex(), 'wb') as file:
        for _ in range(12): file.write(bytes(1 << 20))
except OSError: pass
print(sum(entry.stat().st_blocks * 512 for entry in os.scandir('/tmp')) >> 20, os.getuid())
"""
    with tempfile.TemporaryDirectory(prefix="reprise-nobody-") as folder:
        done = unprivileged.run(
            interpreter, Path(folder), "", [fill] * 4, memory_mb=512, scratch_mb=32
        )
    assert [end["stdout"] for end in done["ends"]] == [
        "12 65534\n", "24 65534\n", "32 65534\n", "32 65534\n",
    ]  # fmt: skip


def test_a_memory_bomb_takes_no_more_than_its_program(walled):
    bomb = "data = []\nwhile True: data.append(bytearray(8 << 20))"
    with walled.open(limits=SMALL) as space:
        space.put({"kept": b"1"})
        done = walled.exec(space, bomb)
        assert (done.oom, done.signal) == (True, 9)
        again = walled.exec(space, "print(open('kept').read())")
        assert (again.oom, again.stdout) == (False, "1\n")


def test_no_program_of_a_workspace_has_a_network(walled):
    source = """
import socket
for to in (('127.0.0.1', PORT), ('1.0.0.0', 80)):
    try: socket.create_connection(to, 1); print('reached', to)
    except OSError: print('no')
"""
    with socket.create_server(("127.0.0.1", 0)) as server, walled.open() as space:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 2).close()
        for _ in range(2):
            assert walled.exec(space, source.replace("PORT", str(port))).stdout == "no\nno\n"


def test_what_packs_a_workspace_is_not_what_a_program_left_there(walled, tmp_path):
    source = """
import os
for name in ('tar', 'cp', 'sh'):
    open(name, 'w').write('#!/bin/sh\\ntouch owned'); os.chmod(name, 0o755)
for name in ('--checkpoint=1', '--checkpoint-action=exec=sh sh', '-rf'): open(name, 'w').close()
"""
    with walled.open() as space:
        assert walled.exec(space, source).exit_code == 0
        space.snapshot(tmp_path / "archive")
        assert space.get("owned").artifacts == {}
    assert b"ustar" in (tmp_path / "archive").read_bytes()


def test_a_link_in_the_tree_stays_a_link(walled):
    with tempfile.TemporaryDirectory(prefix="reprise-tree-") as name:
        root = Path(name)
        root.chmod(0o755)
        (root / "passwd").symlink_to("/etc/hostname")
        (root / "up").symlink_to("..")
        with walled.open(start=root) as space:
            assert space.get("**").artifacts == {}
            done = walled.exec(space, "import os; print(os.readlink('passwd'), os.readlink('up'))")
            assert done.stdout == "/etc/hostname ..\n"


RUNNER = """
import sys, time
sys.path.insert(0, {root!r})
from tests.contract.conftest import bench_of
from sandbox.port import Limits
from pathlib import Path
bench = bench_of({kind!r}, Path({home!r}))
with bench.open(limits=Limits(wall_s=100, memory_mb=256, scratch_mb=48)) as space:
    space.put({{'a': b'1'}})
    print('open', flush=True)
    if {busy}:
        space.exec(({home!r} + '/bin/python', '-c', 'import os, time; os.fork() or os.setsid(); print(1, flush=True); time.sleep(100)', {mark!r}),
                   on_output=lambda stream, line: print(line, flush=True))
    time.sleep(100)
"""


@pytest.mark.parametrize("busy", [True, False])
def test_a_killed_runner_leaves_nothing_of_a_workspace(real, interpreter, scratch, busy):
    mark = f"reprise-workspace-{time.time_ns()}"
    root, home = str(Path(__file__).parents[2]), str(interpreter)
    text = RUNNER.format(root=root, kind=real.kind, home=home, busy=busy, mark=mark)
    env = {**os.environ, "TMPDIR": str(scratch)}
    argv = [sys.executable, "-c", text]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "open\n"
        assert not busy or runner.stdout.readline() == "1\n"
        runner.kill()
    end = time.monotonic() + 12

    def left() -> list[object]:
        containers = owned_containers(runner.pid) if real.kind == "docker" else []
        return [*remains(mark), *containers, *left_in(scratch)]

    while left() and time.monotonic() < end:
        time.sleep(0.1)
    assert left() == []


@pytest.mark.parametrize("kind", [pytest.param("bwrap", marks=pytest.mark.bwrap), "process"])
def test_a_killed_guard_takes_its_workspace_with_it(kind, interpreter, scratch, monkeypatch):
    from tests.contract.conftest import bench_of

    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    bench = bench_of(kind, interpreter)
    before = set(tree.descendants(os.getpid()))
    with bench.open() as space:
        space.put({"a": b"1"})
        for pid in set(tree.descendants(os.getpid())) - before:
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:3] == [b"-I", b"-S"]:
                os.kill(pid, 9)
        with pytest.raises(SandboxError, match="killed by signal 9"):
            space.get("*")
    assert left_in(scratch) == []
