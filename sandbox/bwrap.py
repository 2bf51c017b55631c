"""Bubblewrap: namespaces without a daemon; nothing of the host is visible but its programs and
libraries, read-only.
"""

import platform
import shutil
import struct
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from shlex import split
from threading import Event

from typing_extensions import override

from sandbox import port, process
from sandbox.port import (
    Health,
    OnOutput,
    RunResult,
    RunSpec,
    Sandbox,
    SandboxUnavailable,
    Workspace,
    WorkspaceSpec,
)
from sandbox.workspace import RunnerWorkspace, run_once

# A small seccomp filter for bubblewrap: refuses system calls that reach for the kernel rather
# than for the run's own work, and every socket family but those that programs need.

# Numbers from the kernel's tables (arch/x86/entry/syscalls, include/uapi/asm-generic/unistd.h);
# from 424 on both agree.
BOTH = {
    "pidfd_getfd": 438, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
}  # fmt: skip
X86_64 = {
    "ptrace": 101, "syslog": 103, "vhangup": 153, "pivot_root": 155, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
    "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
    "perf_event_open": 298, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "finit_module": 313, "kexec_file_load": 320,
    "bpf": 321, "userfaultfd": 323, "process_vm_readv": 310, "process_vm_writev": 311,
}  # fmt: skip
AARCH64 = {
    "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "reboot": 142, "settimeofday": 170,
    "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225, "perf_event_open": 241, "open_by_handle_at": 265,
    "clock_adjtime": 266, "setns": 268, "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
# machine: (audit architecture, refused calls, clone, socket, socketpair)
MACHINES = {
    "x86_64": (0xC000003E, X86_64, 56, 41, 53),
    "aarch64": (0xC00000B7, AARCH64, 220, 198, 199),
}
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16  # the last for interfaces and addresses only
FAMILIES = (UNIX, INET, INET6)
ROUTE = 0
CLONE3, NEW_USER_NAMESPACE, X32 = 435, 0x10000000, 0x40000000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
FIRST, THIRD = 16, 32  # where the lower halves of a call's arguments lie
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
LOAD, JUMP_EQ, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


def _line(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("<HBBI", code, yes, no, value)


def filter_program(machine: str = "") -> bytes:
    """The filter as the kernel takes it, or b"" on a machine it was not written for."""
    machine_calls = MACHINES.get(machine or platform.machine())
    if machine_calls is None:
        return b""
    architecture, refused_calls, clone, socket, pair = machine_calls
    lines = [
        _line(LOAD, 4),
        _line(JUMP_EQ, architecture, yes=1),
        _line(RETURN, REFUSE | EPERM),
        _line(LOAD, 0),
        _line(JUMP_GE, X32, no=1),
        _line(RETURN, REFUSE | EPERM),
        _line(
            JUMP_EQ, CLONE3, no=1
        ),  # its flags lie in memory a filter cannot read; libc falls back to clone
        _line(RETURN, REFUSE | ENOSYS),
    ]
    for number in sorted({*refused_calls.values(), *BOTH.values()}):
        lines += [_line(JUMP_EQ, number, no=1), _line(RETURN, REFUSE | EPERM)]
    sockets = _families()
    lines += [
        _line(JUMP_EQ, socket, yes=1),
        _line(JUMP_EQ, pair, no=len(sockets)),
        *sockets,
        _line(JUMP_EQ, clone, no=3),
        _line(LOAD, FIRST),
        _line(JUMP_SET, NEW_USER_NAMESPACE, no=1),
        _line(RETURN, REFUSE | EPERM),
        _line(RETURN, ALLOW),
    ]
    return b"".join(lines)


def _families() -> list[bytes]:
    """Allow a socket of a known family, and of netlink the one that lists interfaces."""
    filters = [
        _line(JUMP_EQ, family, yes=len(FAMILIES) - at + 3) for at, family in enumerate(FAMILIES)
    ]
    return [
        _line(LOAD, FIRST),
        *filters,
        _line(JUMP_EQ, NETLINK, no=2),
        _line(LOAD, THIRD),
        _line(JUMP_EQ, ROUTE, yes=1),
        _line(RETURN, REFUSE | EAFNOSUPPORT),
        _line(RETURN, ALLOW),
    ]


ISOLATION = (
    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --unshare-net "
    "--die-with-parent --new-session --cap-drop ALL "
    f"--uid {port.RUN_UID} --gid {port.RUN_UID} --hostname {port.HOSTNAME}"
)
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = ("/usr/local/etc", "/usr/etc")
"""What this machine's own software is configured with, where /usr is shown."""
ESSENTIALS = (
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/usr/share/zoneinfo",
)
PROTECTS = (
    (
        "the host's files except its programs and libraries, its network, processes, environment "
        "variables and privileges"
    ),
    "memory, processors, number of processes, disk, wall and idle time",
    "processes left running after the end",
)
EXPOSES = (
    "the kernel interface, apart from refused system calls and socket families",
    "the names and versions of what is installed under /usr",
)
FIX = (
    "install bubblewrap (apt-get install bubblewrap) and allow user namespaces (sysctl "
    "user.max_user_namespaces, AppArmor)"
)


# The only account inside, and names that resolve without a network.
_FILES = [
    ["/etc/passwd", f"{port.USER}:x:{port.RUN_UID}:{port.RUN_UID}::{port.HOME}:/bin/sh\n"],
    ["/etc/group", f"{port.USER}:x:{port.RUN_UID}:\n"],
    ["/etc/hosts", f"127.0.0.1 {port.HOSTNAME}\n::1 {port.HOSTNAME}\n"],
]


class BwrapSandbox(Sandbox):
    """Runs a program in namespaces of its own."""

    name = "bwrap"

    @override
    def check(self) -> Health:
        problem = port.trial(self)
        filter_text = (
            "a seccomp filter" if filter_program() else "no seccomp filter for this machine"
        )
        detail = f"{process.holder()}; {filter_text}"
        return Health(not problem, problem or detail, FIX, PROTECTS, EXPOSES)

    @override
    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        return run_once(process.HostGuard(self._job, 0.0), spec, cancel, on_output)

    @override
    def open(self, spec: WorkspaceSpec) -> Workspace:
        return RunnerWorkspace(process.HostGuard(self._job, spec.total_s), spec)

    def _job(self, spec: RunSpec, token: str, total_s: float) -> dict[str, object]:
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxUnavailable(f"bubblewrap is not installed: {FIX}")
        scratch = process.scratch(token)
        return port.job(spec, self.name, total_s) | {
            "bwrap": program,
            "options": options(spec, scratch if total_s else None),
            "scratch": str(scratch),
            "data": _FILES,
            "seccomp": filter_program().hex(),
        }

    @override
    def sweep(self) -> int:
        return process.sweep_runs()


def options(spec: RunSpec, scratch: Path | None = None) -> list[str]:
    """Bubblewrap's command line for a run, or a program of the workspace whose files are in
    `scratch`; without the program.
    """
    shared = port.shm_mb(spec) << 20
    inside = {"HOME": port.HOME, "TMPDIR": port.TEMPORARY, **port.environment(spec)}
    return [
        *split(ISOLATION),
        *_system(),
        *split("--dir /etc --dir /sys"),
        *chain.from_iterable(("--ro-bind-try", path, path) for path in ESSENTIALS),
        *split("--proc /proc --ro-bind /proc/sys /proc/sys --dev /dev"),
        *split(f"--size {shared} --perms 1777 --tmpfs /dev/shm"),
        *_devices(spec),
        *split("--remount-ro /dev --ro-bind-try /sys/devices/system /sys/devices/system"),
        *_folder(spec, scratch, "tmp", port.TEMPORARY, "1777"),
        *split(f"--dir {port.HOME}"),
        *chain.from_iterable(("--ro-bind", str(one.source), one.inside) for one in spec.mounts),
        *_folder(spec, scratch, "work", port.WORKDIR, "0755"),
        *split(f"--chdir {port.WORKDIR} --clearenv"),
        *chain.from_iterable(("--setenv", name, value) for name, value in inside.items()),
    ]


def _folder(
    spec: RunSpec, scratch: Path | None, name: str, inside: str, mode: str
) -> Iterator[str]:
    """A writable folder: a workspace's, or a fresh one."""
    if scratch is not None:
        return iter(("--bind", str(scratch / name), inside))
    size = str(spec.limits.scratch_mb << 20)
    return iter(("--size", size, "--perms", mode, "--tmpfs", inside))


def _system() -> Iterator[str]:
    """The host's programs and libraries, and the links that lead to them."""
    yield from ("--ro-bind", "/usr", "/usr")
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for path in filter(Path.is_dir, map(Path, SETTINGS)):
        yield from ("--size", "4096", "--tmpfs", str(path), "--remount-ro", str(path))


def _devices(spec: RunSpec) -> list[str]:
    """The NVIDIA devices of this host, when the run asks for a GPU."""
    if spec.device == "cpu":
        return []
    devices = sorted(str(path) for path in Path("/dev").glob("nvidia*"))
    if not devices:
        raise SandboxUnavailable(
            "no NVIDIA device on this host: run with --device cpu, or on a machine whose /dev "
            "holds nvidia0"
        )
    return [
        *chain.from_iterable(("--dev-bind", path, path) for path in devices),
        *split("--ro-bind-try /sys/module/nvidia /sys/module/nvidia"),
        *split("--ro-bind-try /sys/bus/pci /sys/bus/pci"),
    ]
