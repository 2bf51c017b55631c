"""The plain process, the same guard and limits without isolation, for trusted code; and how a
guard is started on this host, for bubblewrap too.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from threading import Event
from time import monotonic, sleep, time
from typing import IO, cast

from typing_extensions import override

from sandbox import guard_client, port
from sandbox.guard import host, tree
from sandbox.port import (
    Health,
    OnOutput,
    RunResult,
    RunSpec,
    Sandbox,
    SandboxError,
    Workspace,
    WorkspaceSpec,
)
from sandbox.workspace import RunnerWorkspace, run_once

PROTECTS = (
    "wall time, idle time, memory, number of processes, file size",
    "processes left running after the end",
)
FIX = "look for a full or read-only temporary directory"
EXPOSES = (
    "the network of this host",
    "every file that the run's user can read or write",
    "this host's processes: their command lines and, of the same user, their environment variables",
    "the whole kernel interface",
)
END_S = 15.0
LOOKS = 4


def holder() -> str:
    """What holds the memory limit of a run on this host."""
    group = host.Group(port.token())
    try:
        if group.make(256, 256, 1.0):
            return f"memory and processes limited by cgroup {'v2' if group.v2 else 'v1'}"
    finally:
        group.remove(0.2)
    return (
        "no control group: memory (of processes, memfd and tmpfs, not of the kernel's own buffers) "
        "limited by the guard's polling, processes by RLIMIT_NPROC"
    )


class ProcessSandbox(Sandbox):
    """Runs a program as a child of this machine, guarded but not walled in."""

    name = "process"

    @override
    def check(self) -> Health:
        problem = port.trial(self)
        user = (
            "as a separate user"
            if os.geteuid() == 0
            else "as the user who started it, whose files and processes it may harm"
        )
        return Health(not problem, problem or f"{user}; {holder()}", FIX, PROTECTS, EXPOSES)

    @override
    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        return run_once(HostGuard(self._job, 0.0), spec, cancel, on_output)

    @override
    def open(self, spec: WorkspaceSpec) -> Workspace:
        return RunnerWorkspace(HostGuard(self._job, spec.total_s), spec)

    def _job(self, spec: RunSpec, token: str, total_s: float) -> dict[str, object]:
        for mount in spec.mounts:
            if mount.inside != str(mount.source):
                raise SandboxError(
                    f"a plain process cannot see {mount.source} as {mount.target}; mount it at "
                    "its own path"
                )
        return port.job(spec, self.name, total_s) | {
            "env": port.environment(spec) | {"REPRISE_RUN": token},
            "scratch": str(scratch(token)),
        }

    @override
    def sweep(self) -> int:
        return sweep_runs()


class Pipes(guard_client.Channel):
    """The guard's standard input and output."""

    def __init__(self, send: IO[bytes], receive: IO[bytes]) -> None:
        self.sending, self.receiving = send, cast("BufferedReader", receive)

    @override
    def send(self, data: bytes) -> None:
        self.sending.write(data)
        self.sending.flush()

    @override
    def receive(self) -> bytes:
        return self.receiving.read1(1 << 18)


class HostGuard(guard_client.GuardClient):
    """A guard on this host. Whatever happens, it gets to see its input end, kills what it started
    and leaves.
    """

    def __init__(
        self, job: Callable[[RunSpec, str, float], dict[str, object]], total_s: float
    ) -> None:
        self.token = token = port.token()
        self.process: subprocess.Popen[bytes] | None = None
        super().__init__(lambda spec: job(spec, token, total_s) | {"token": token})

    @override
    def start(self, spec: RunSpec) -> guard_client.Channel:
        argv = [sys.executable, "-I", "-S", "-c", guard_client.BOOT]
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"LC_ALL": "C"},
            cwd="/",
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return Pipes(self.process.stdin, self.process.stdout)

    @override
    def explain_end(self, outcome: guard_client.Outcome) -> None:
        assert self.process is not None
        raise SandboxError(f"the guard ended without a result{_last_words(self.process)}")

    @override
    def end(self) -> None:
        if self.process is not None:
            with self.process as guard:
                _end(guard, self.token)


def _last_words(guard: subprocess.Popen[bytes]) -> str:
    """Why a guard ended, in its own words or by its exit status."""
    try:
        message = guard.communicate(timeout=END_S)[1].decode(errors="replace").strip()
    except (subprocess.TimeoutExpired, ValueError, OSError):
        return ""
    if guard.returncode < 0:
        return f" (it was killed by signal {-guard.returncode})"
    return f": {message[-600:]}" if message else f" (it left with exit code {guard.returncode})"


def _end(guard: subprocess.Popen[bytes], token: str) -> None:
    if guard.stdin is not None:
        with suppress(OSError):
            guard.stdin.close()
    try:
        guard.wait(END_S)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()
    if guard.returncode != 0:
        end_run(token)


def scratch(token: str) -> Path:
    """Where a run on this host keeps its files; the name says whose it is."""
    return Path(tempfile.gettempdir()) / f"reprise-run-{token}"


def end_run(token: str) -> int:
    """End what a run left when its guard was killed: processes by their mark, the scratch
    directory, the control groups.
    """
    count = _end_marked(token)
    if scratch(token).exists():
        host.remove(str(scratch(token)))
        count += 1
    group = host.Group(token)
    if any(Path(path).exists() for path in group.dirs):
        group.remove()
        count += 1
    return count


def sweep_runs() -> int:
    """End what runs on this host left behind whose guards are dead: each holds what is its own."""
    count = 0
    for folder in Path(tempfile.gettempdir()).glob("reprise-run-*"):
        if _abandoned(folder):
            count += end_run(folder.name.removeprefix("reprise-run-"))
    for token in abandoned_groups():
        host.Group(token).remove(0)
        count += 1
    return count


def abandoned_groups(older_s: float = 60.0) -> list[str]:
    """Names of runs whose groups are empty, not new and held by no guard."""
    groups = set()
    for part in ("", "/memory", "/pids", "/cpu"):
        for path in Path(f"{host.ROOT}{part}/{host.NAME}").glob("*/"):
            with suppress(OSError):
                empty = not (path / "cgroup.procs").read_text("ascii").strip()
                old = time() - path.stat().st_mtime > older_s
                if empty and old and _abandoned(path):
                    groups.add(path.name)
    return sorted(groups)


def _abandoned(folder: Path) -> bool:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        mine = os.fstat(handle).st_uid == os.getuid() or os.getuid() == 0
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return mine
    finally:
        os.close(handle)


def _end_marked(token: str) -> int:
    """Kill every process with the run's mark until none is seen in several looks: a signal takes
    a moment to end its process, one that starts the next and ends slips through a single look,
    and what still runs would write into the directory that is removed next.
    """
    mark, pids = f"REPRISE_RUN={token}".encode(), set[int]()
    until = monotonic() + END_S
    quiet = 0
    while quiet < LOOKS and monotonic() < until:
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        living = {
            pid for pid in numbers if tree.kill_if(pid, lambda pid: mark in _environment(pid))
        }
        pids |= living
        quiet = 0 if living else quiet + 1
        sleep(0.003)
    return len(pids)


def _environment(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
