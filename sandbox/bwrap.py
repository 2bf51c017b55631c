"""Bubblewrap: namespaces without a daemon; nothing of the host is visible but its programs and
libraries, read-only.
"""

import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from shlex import split
from threading import Event

from typing_extensions import override

from sandbox import layout, process, seccomp
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

ISOLATION = (
    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --unshare-net "
    "--die-with-parent --new-session --cap-drop ALL "
    f"--uid {layout.RUN_UID} --gid {layout.RUN_UID} --hostname {layout.HOSTNAME}"
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
    ["/etc/passwd", f"{layout.USER}:x:{layout.RUN_UID}:{layout.RUN_UID}::{layout.HOME}:/bin/sh\n"],
    ["/etc/group", f"{layout.USER}:x:{layout.RUN_UID}:\n"],
    ["/etc/hosts", f"127.0.0.1 {layout.HOSTNAME}\n::1 {layout.HOSTNAME}\n"],
]


class BwrapSandbox(Sandbox):
    """Runs a program in namespaces of its own."""

    name = "bwrap"

    @override
    def check(self) -> Health:
        problem = layout.trial(self)
        filtered = "a seccomp filter" if seccomp.program() else "no seccomp filter for this machine"
        detail = f"{process.holder()}; {filtered}"
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
        return layout.job(spec, self.name, total_s) | {
            "bwrap": program,
            "options": options(spec, scratch if total_s else None),
            "scratch": str(scratch),
            "data": _FILES,
            "seccomp": seccomp.program().hex(),
        }

    @override
    def sweep(self) -> int:
        return process.sweep_runs()


def options(spec: RunSpec, scratch: Path | None = None) -> list[str]:
    """Bubblewrap's command line for a run, or a program of the workspace whose files are in
    `scratch`; without the program.
    """
    shared = layout.shm_mb(spec) << 20
    inside = {"HOME": layout.HOME, "TMPDIR": layout.TEMPORARY, **layout.environment(spec)}
    return [
        *split(ISOLATION),
        *_system(),
        *split("--dir /etc --dir /sys"),
        *chain.from_iterable(("--ro-bind-try", path, path) for path in ESSENTIALS),
        *split("--proc /proc --ro-bind /proc/sys /proc/sys --dev /dev"),
        *split(f"--size {shared} --perms 1777 --tmpfs /dev/shm"),
        *_devices(spec),
        *split("--remount-ro /dev --ro-bind-try /sys/devices/system /sys/devices/system"),
        *_folder(spec, scratch, "tmp", layout.TEMPORARY, "1777"),
        *split(f"--dir {layout.HOME}"),
        *chain.from_iterable(("--ro-bind", str(one.source), one.inside) for one in spec.mounts),
        *_folder(spec, scratch, "work", layout.WORKDIR, "0755"),
        *split(f"--chdir {layout.WORKDIR} --clearenv"),
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
    found = sorted(str(path) for path in Path("/dev").glob("nvidia*"))
    if not found:
        raise SandboxUnavailable(
            "no NVIDIA device on this host: run with --device cpu, or on a machine whose /dev "
            "holds nvidia0"
        )
    return [
        *chain.from_iterable(("--dev-bind", path, path) for path in found),
        *split("--ro-bind-try /sys/module/nvidia /sys/module/nvidia"),
        *split("--ro-bind-try /sys/bus/pci /sys/bus/pci"),
    ]
