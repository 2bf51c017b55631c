"""What the public lists of escapes try (docs/escape-suite.md) and one probe can find out: it looks
at everything that a run can touch, and each test says what it may find.
"""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox import bwrap
from sandbox.port import Limits, Mount
from tests.contract.conftest import Bench, bench_of

ROOMY = Limits(wall_s=60, memory_mb=512, scratch_mb=64, file_mb=32)
ORIGINAL = b"the same for every run\n" * 400
_, REFUSED, *_ = bwrap.MACHINES.get(platform.machine(), (0, {}))
CALLS = {name: number for name, number in {**REFUSED, **bwrap.BOTH}.items() if name != "ptrace"}
DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}
SCRATCH = ("/repro", "/tmp", "/dev/shm", "/dev/mqueue")
# Of documentation and link-local ranges: without a route, all addresses beyond loopback are alike.
AWAY = {
    "a metadata service": ("AF_INET", "SOCK_STREAM", ["169.254.0.1", 80]),
    "an API server": ("AF_INET", "SOCK_STREAM", ["192.0.2.1", 443]),
    "a resolver": ("AF_INET", "SOCK_DGRAM", ["192.0.2.53", 53]),
    "a proxy": ("AF_INET6", "SOCK_STREAM", ["2001:db8::1", 3128]),
}
PROBE = r"""
import ctypes, errno, fcntl, json, mmap, os, socket, stat, threading, time
with open('asked.json') as handle: asked = json.load(handle)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p

def call(number):
    failed = libc.syscall(number, *[ctypes.c_long(0)] * 6) < 0
    return errno.errorcode[ctypes.get_errno()] if failed else 'done'

def works(action):
    try: action(); return True
    except (OSError, ValueError): return False

def opens(path, flags): return works(lambda: os.close(os.open(path, flags | os.O_NONBLOCK)))

def connect(family, kind, address):
    with socket.socket(getattr(socket, family), getattr(socket, kind)) as one:
        one.settimeout(2)
        one.connect(tuple(address))
        one.send(b'x')

def reason(action):
    try: action(); return 'reached'
    except OSError as error: return errno.errorcode.get(error.errno, 'time')

def entries(top, depth=12):
    try: found = list(os.scandir(top))
    except OSError: return
    for one in found:
        yield one
        if depth and one.is_dir(follow_symlinks=False) and one.path not in ('/proc', '/sys'):
            yield from entries(one.path, depth - 1)

special, writable = [], []
for one in entries(asked['top']):
    if one.is_symlink(): continue
    if one.is_dir(follow_symlinks=False):
        new = one.path + '/x'
        if opens(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY): writable.append(one.path); os.unlink(new)
        continue
    kind = stat.S_IFMT(os.lstat(one.path).st_mode)  # of what is mounted there
    if kind != stat.S_IFREG: special.append([one.path, kind])
    elif os.access(one.path, os.W_OK) and opens(one.path, os.O_WRONLY): writable.append(one.path)
interfaces = [os.path.join(top, name) for base in ('/proc', '/sys') for top, folders, names in os.walk(base) if not top[6:].split('/')[0].isdigit() for name in names]
processes = ['/proc/' + name for name in os.listdir('/proc') if name.isdigit()]
shared = asked['shared']

def merge_into_the_page_cache():
    reader, writer = os.pipe()
    size = fcntl.fcntl(writer, 1032)
    os.write(writer, bytes(size)); os.read(reader, size)
    source = os.open(shared, os.O_RDONLY)
    os.splice(source, writer, 1, offset_src=0)
    os.write(writer, b'overwritten')

def race_for_the_private_copy():
    source, end = os.open(shared, os.O_RDONLY), time.monotonic() + 0.3
    area = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_PRIVATE, source, ctypes.c_long(0))
    def forget():
        while time.monotonic() < end: libc.madvise(ctypes.c_void_p(area), ctypes.c_size_t(4096), 4)
    other = threading.Thread(target=forget); other.start()
    with open('/proc/self/mem', 'r+b', buffering=0) as memory:
        while time.monotonic() < end:
            memory.seek(area); memory.write(b'overwritten')
    other.join()

found = {
    'calls': {name: call(number) for name, number in asked['calls'].items()},
    'descriptors': {name: os.readlink('/proc/self/fd/' + name) for name in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + name)},
    'folder': os.getcwd(), 'variables': sorted(os.environ),
    'namespaces': {name: os.readlink('/proc/self/ns/' + name) for name in ('ipc', 'mnt', 'net', 'pid', 'uts')},
    'entered': [name for name in ('ipc', 'mnt', 'net', 'pid', 'uts') if opens('/proc/1/ns/' + name, os.O_RDONLY) and libc.setns(os.open('/proc/1/ns/' + name, os.O_RDONLY), 0) == 0],
    'away': {name: reason(lambda to=to: connect(*to)) for name, to in asked['away'].items()},
    'raw': reason(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    'tokens': [path for path in ('/var/run/secrets', '/run/secrets') if os.path.exists(path)],
    'special': special, 'writable': writable,
    'interfaces': [path for path in interfaces if os.path.isfile(path) and not os.path.islink(path) and opens(path, os.O_WRONLY)],
    'programs': [path for path in processes if opens(path + '/exe', os.O_WRONLY)],
    'terminal': opens('/dev/tty', os.O_RDWR), 'groups': works(lambda: os.mkdir('/sys/fs/cgroup/x')),
    'shared memory': open('/proc/sysvipc/shm').read().count('\n') - 1,
    'changed': [name for name, action in {
        'open': lambda: os.close(os.open(shared, os.O_RDWR)), 'truncate': lambda: os.truncate(shared, 0), 'mode': lambda: os.chmod(shared, 0o777),
        'rename': lambda: os.rename(shared, shared + '.old'), 'remove': lambda: os.unlink(shared), 'time': lambda: os.utime(shared),
        'beside': lambda: os.close(os.open(shared + '.new', os.O_CREAT | os.O_WRONLY)), 'link': lambda: os.link(shared, '/tmp/link'),
    }.items() if works(action)],
}
for attack in (merge_into_the_page_cache, race_for_the_private_copy): works(attack)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A file of this host that runs are shown, in a folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="reprise-shared-"))
    folder.chmod(0o755)
    (folder / "file").write_bytes(ORIGINAL)
    (folder / "file").chmod(0o666)
    yield folder / "file"
    shutil.rmtree(folder)


def probed(bench: Bench, shared: Path, **other: object) -> Mapping[str, Any]:
    asked = {"calls": CALLS, "away": AWAY, "shared": str(shared), "top": "/", **other}
    done = bench.run(
        PROBE,
        files={"asked.json": json.dumps(asked).encode()},
        mounts=(Mount(shared.parent),),
        limits=ROOMY,
    )
    assert done.exit_code == 0, done
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


def own_namespaces() -> dict[str, str]:
    names = ("ipc", "mnt", "net", "pid", "uts")
    return {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in names}


@pytest.fixture(scope="module")
def found(walled: Bench, shared: Path) -> Mapping[str, Any]:
    """What a run finds, one for each sandbox with walls."""
    return probed(walled, shared)


def test_the_probe_finds_what_a_plain_process_exposes(interpreter, shared):
    """Else the tests below could not fail."""
    found = probed(bench_of("process", interpreter), shared, calls={}, away={}, top="/run")
    assert found["namespaces"] == own_namespaces()
    assert {"open", "truncate"} <= set(found["changed"])
    assert shared.read_bytes() == b""
    shared.write_bytes(ORIGINAL)


def test_no_call_that_reaches_for_the_kernel_is_let_through(found):
    assert {name: why for name, why in found["calls"].items() if why != "EPERM"} == {}
    assert {"bpf", "init_module", "open_by_handle_at", "setns", "mount", "keyctl"} <= set(CALLS)


def test_a_run_shares_no_namespace_with_the_host(found):
    assert set(own_namespaces().values()) & set(found["namespaces"].values()) == set()
    assert found["entered"] == []
    assert found["shared memory"] == 0


def test_no_address_beyond_loopback_has_a_route(found):
    assert set(found["away"]) == set(AWAY)
    assert set(found["away"].values()) <= {"ENETUNREACH", "EADDRNOTAVAIL"}
    assert found["raw"] in ("EPERM", "EACCES")


def test_no_socket_pipe_or_disk_of_the_host_is_in_sight(found):
    names = {path.rpartition("/")[2] for path, kind in found["special"]}
    assert names - DEVICES == set()
    assert {kind for _, kind in found["special"]} == {0o020000}  # character devices


def test_only_the_runs_own_folders_can_be_written(found):
    assert [path for path in found["writable"] if not path.startswith(SCRATCH)] == []
    assert {"/tmp", "/repro"} <= set(found["writable"])


def test_no_interface_of_the_kernel_can_be_written(found):
    # A trigger for pressure tells only who set it.
    assert [path for path in found["interfaces"] if not path.startswith("/proc/pressure/")] == []
    assert not found["groups"]


def test_no_descriptor_of_the_host_is_left_open(found):
    inherited = {name: target for name, target in found["descriptors"].items() if int(name) > 2}
    assert inherited == {}
    assert found["folder"] == "/repro"
    assert not found["terminal"]


def test_no_program_that_runs_can_be_overwritten(found):
    assert found["programs"] == []


def test_a_run_has_no_token_and_no_variable_but_its_own(found):
    usual = {"HOME", "TMPDIR", "PATH", "LANG", "USER", "LOGNAME", "OMP_NUM_THREADS", "PWD"}
    assert set(found["variables"]) - usual == {"LD_LIBRARY_PATH"}
    assert found["tokens"] == []


def test_a_file_that_runs_share_stays_as_it_is(found, shared):
    """Also after the races of Dirty COW and Dirty Pipe, which only an old kernel loses."""
    assert found["changed"] == []
    assert shared.read_bytes() == ORIGINAL
    assert [each.name for each in shared.parent.iterdir()] == ["file"]
