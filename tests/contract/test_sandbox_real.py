"""What only a sandbox that runs something can be asked: its inside, its files, its processes,
its own failures.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from sandbox.port import Limits, Mount, RunSpec, SandboxError

INSIDE = """
import getpass, json, os, socket, sys, tempfile
fds = sorted(os.listdir('/proc/self/fd'))
listener = socket.create_server(('127.0.0.1', 0))
for name in ('localhost', socket.gethostname()):
    if len(sys.argv) > 1: socket.create_connection((name, listener.getsockname()[1]), 5).close()
print(json.dumps({
    'cwd': os.getcwd(), 'files': sorted(os.listdir('.')), 'env': dict(os.environ), 'uid': os.getuid(), 'temporary': tempfile.gettempdir(),
    'home': os.path.expanduser('~'), 'writable': [os.access(p, os.W_OK) for p in ('.', tempfile.gettempdir(), os.path.expanduser('~'))],
    'hostname': socket.gethostname(), 'user': getpass.getuser(), 'fds': fds,
}))
"""


def test_files_directory_and_environment(real, host_secret):
    done = real.run(INSIDE, files={"pkg/mod.py": b"x = 1"}, env={"MINE": "1"})
    assert done.exit_code == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["files"] == ["pkg", "program.py"]
    assert seen["writable"] == [True, True, True]
    assert seen["env"]["MINE"] == "1"
    assert host_secret not in json.dumps(seen["env"])
    assert set(seen["env"]) <= {
        "MINE", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "PATH", "LANG", "USER", "LOGNAME", "OMP_NUM_THREADS", "REPRISE_RUN", "PWD", "OLDPWD", "LC_CTYPE",
    }  # fmt: skip
    assert seen["uid"] != 0
    assert len(seen["fds"]) <= 4  # the three streams and the listing's own


def test_the_inside_is_the_same_with_walls(walled):
    spec = walled.spec(INSIDE)
    done = walled.sandbox.run(
        RunSpec(
            (*spec.argv, "names"),
            files=spec.files,
            env=spec.env,
            mounts=spec.mounts,
            limits=Limits(wall_s=20),
        )
    )
    assert done.exit_code == 0, done.stderr
    seen = json.loads(done.stdout)
    expected = {
        "cwd": "/repro",
        "temporary": "/tmp",
        "home": "/tmp/home",
        "hostname": "localhost",
        "user": "repro",
        "uid": 65534,
    }
    assert {name: seen[name] for name in expected} == expected


def test_a_mount_elsewhere_is_seen_there_read_only(walled, interpreter):
    source = "import sys\nprint(sys.prefix)\ntry: open('/python/lib/x.pth', 'w')\nexcept OSError as error: print(error.errno)"
    spec = RunSpec(
        ("/python/bin/python", "program.py"),
        files={"program.py": source.encode()},
        env={"LD_LIBRARY_PATH": "/python/lib"},
        mounts=(Mount(interpreter, "/python"),),
        limits=Limits(wall_s=20),
    )
    done = walled.sandbox.run(spec)
    assert done.stdout.split() == ["/python", "30"], done.stderr


def test_a_plain_process_refuses_to_pretend_a_mount(interpreter):
    from sandbox.process import ProcessSandbox

    with pytest.raises(SandboxError, match="own path"):
        ProcessSandbox().run(RunSpec(("/bin/true",), mounts=(Mount(interpreter, "/elsewhere"),)))


def test_a_missing_mount_is_the_sandbox_failing(real):
    with pytest.raises(SandboxError, match="does not exist"):
        real.run("pass", mounts=(Mount(Path("/no/such/folder")),))


def test_a_listener_that_raises_ends_the_run(real):
    def bad(stream: str, line: str) -> None:
        raise LookupError(line)

    with pytest.raises(LookupError):
        real.run("import time\nwhile True: print('x' * 1000, flush=True)", on_output=bad)


def test_runs_do_not_disturb_each_other(real):
    answers: dict[int, str] = {}

    def one(number: int) -> None:
        answers[number] = real.run(
            f"import time; time.sleep(0.5); open('n', 'w').write('{number}'); print(open('n').read())"
        ).stdout

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"{number}\n" for number in range(4)}


def test_a_file_may_not_grow_over_its_limit(real):
    source = "import errno\ntry:\n  with open('big', 'wb') as f:\n    for _ in range(64): f.write(bytes(1 << 20)); f.flush()\nexcept OSError as e: print(errno.errorcode[e.errno])"
    done = real.run(source, limits=Limits(wall_s=20, memory_mb=512, scratch_mb=256, file_mb=8))
    assert done.stdout == "EFBIG\n", done.stderr


def test_a_worker_killed_for_memory_does_not_make_a_good_end_bad(real):
    source = """
import os, sys
pid = os.fork()
if pid == 0:
    data = []
    while True: data.append(bytearray(8 << 20))
os.waitpid(pid, 0)
print('parent lives'); sys.exit(0)
"""
    done = real.run(source, limits=Limits(wall_s=20, memory_mb=256, scratch_mb=64, file_mb=32))
    assert (done.exit_code, done.oom, done.stdout) in {
        (0, False, "parent lives\n"),
        (None, True, ""),
    }  # polling ends the whole run


def test_forked_workers_share_their_memory(real):
    source = """
import os, time
data = bytearray(os.urandom(1 << 20) * 100)
pids = []
for _ in range(5):
    pid = os.fork()
    if pid == 0: time.sleep(1.5); os._exit(0)
    pids.append(pid)
print(sum(os.waitpid(pid, 0)[1] for pid in pids))
"""
    done = real.run(source, limits=Limits(wall_s=20, memory_mb=300, scratch_mb=64, file_mb=32))
    assert (done.exit_code, done.oom, done.stdout) == (0, False, "0\n")


def test_shared_memory_has_room_for_loader_workers(real):
    done = real.run("import os; s = os.statvfs('/dev/shm'); print(s.f_blocks * s.f_frsize >> 20)")
    assert int(done.stdout) >= 256


def test_a_gpu_is_given_or_refused_with_a_reason(walled):
    has_gpu = any(Path("/dev").glob("nvidia[0-9]*"))
    if has_gpu:
        assert (
            walled.run("import os; print(os.path.exists('/dev/nvidiactl'))", device="gpu").stdout
            == "True\n"
        )
    else:
        with pytest.raises(SandboxError, match="NVIDIA"):
            walled.run("pass", device="gpu")
