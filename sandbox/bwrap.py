"""Bubblewrap: namespaces without a daemon; nothing of the host is visible but its programs and
libraries, read-only.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Event

from typing_extensions import override

from sandbox import layout, local_guard, process, seccomp
from sandbox.port import (
    Health,
    Limits,
    OnOutput,
    RunResult,
    RunSpec,
    Sandbox,
    SandboxError,
    SandboxUnavailable,
)

SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
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
FOR_NETWORK = (
    "/etc/resolv.conf",
    "/etc/ca-certificates",
    "/etc/pki",
    "/etc/protocols",
    "/etc/services",
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
    "the kernel's interface behind a list of refused system calls",
    "the names and versions of what is installed under /usr",
    "in the prepare phase the network of this host, its loopback included",
)
FIX = (
    "install bubblewrap (apt-get install bubblewrap) and allow user namespaces (sysctl "
    "user.max_user_namespaces, AppArmor)"
)


# The only account inside, and names that resolve without a network.
PASSWD = f"{layout.USER}:x:{layout.RUN_UID}:{layout.RUN_UID}::{layout.HOME}:/bin/sh\n"
HOSTS = f"127.0.0.1 {layout.HOSTNAME}\n::1 {layout.HOSTNAME}\n"


class BwrapSandbox(Sandbox):
    """Runs a program in namespaces of its own."""

    name = "bwrap"

    @override
    def check(self) -> Health:
        try:
            done = self.run(
                RunSpec(("/bin/sh", "-c", "exit 7"), limits=Limits(wall_s=20, scratch_mb=16))
            )
        except SandboxError as error:
            return Health(works=False, detail=str(error), fix=FIX)
        filtered = "a seccomp filter" if seccomp.program() else "no seccomp filter for this machine"
        return Health(
            done.exit_code == 7,
            f"{process.holder()}; {filtered}",
            protects=PROTECTS,
            exposes=EXPOSES,
        )

    @override
    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxUnavailable(f"bubblewrap is not installed: {FIX}")
        job = layout.job(spec, self.name)
        extra = {
            "bwrap": program,
            "options": options(spec),
            "data": [
                ["/etc/passwd", PASSWD],
                ["/etc/group", f"{layout.USER}:x:{layout.RUN_UID}:\n"],
                ["/etc/hosts", HOSTS],
            ],
            "seccomp": seccomp.program().hex(),
        }
        return local_guard.run({**job, **extra}, spec, cancel, on_output)

    @override
    def sweep(self) -> int:
        return local_guard.sweep()


def options(spec: RunSpec) -> list[str]:
    """Bubblewrap's command line for a run, without the program."""
    scratch = str(spec.limits.scratch_mb << 20)
    uid = str(layout.RUN_UID)
    built = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
    ]
    built += [
        "--new-session",
        "--uid",
        uid,
        "--gid",
        uid,
        "--hostname",
        layout.HOSTNAME,
        "--cap-drop",
        "ALL",
    ]
    built += [] if spec.network else ["--unshare-net"]
    built += ["--ro-bind", "/usr", "/usr"]
    for path in SYSTEM:
        if Path(path).is_symlink():
            built += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).is_dir():
            built += ["--ro-bind", path, path]
    built += ["--dir", "/etc", "--dir", "/sys"]
    for path in (*ESSENTIALS, *(FOR_NETWORK if spec.network else ())):
        built += ["--ro-bind-try", path, path]
    built += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    built += ["--size", str(layout.shm_mb(spec) << 20), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108
    built += [
        *devices(spec),
        "--remount-ro",
        "/dev",
        "--ro-bind-try",
        "/sys/devices/system",
        "/sys/devices/system",
    ]
    built += ["--size", scratch, "--perms", "1777", "--tmpfs", "/tmp", "--dir", layout.HOME]  # noqa: S108
    for mount in spec.mounts:
        built += ["--ro-bind", str(mount.source), mount.inside]
    built += [
        "--size",
        scratch,
        "--perms",
        "0755",
        "--tmpfs",
        layout.WORKDIR,
        "--chdir",
        layout.WORKDIR,
        "--clearenv",
    ]
    inside = {"HOME": layout.HOME, "TMPDIR": layout.TEMPORARY, **layout.environment(spec)}
    for name, value in inside.items():
        built += ["--setenv", name, value]
    return built


def devices(spec: RunSpec) -> list[str]:
    """The NVIDIA devices of this host, when the run asks for a GPU."""
    if spec.device == "cpu":
        return []
    found = sorted(str(path) for path in Path("/dev").glob("nvidia*"))
    if not found:
        raise SandboxUnavailable(
            "no NVIDIA device on this host: run with --device cpu, or on a machine whose /dev "
            "holds nvidia0"
        )
    built = []
    for path in found:
        built += ["--dev-bind", path, path]
    return [
        *built,
        "--ro-bind-try",
        "/sys/module/nvidia",
        "/sys/module/nvidia",
        "--ro-bind-try",
        "/sys/bus/pci",
        "/sys/bus/pci",
    ]
