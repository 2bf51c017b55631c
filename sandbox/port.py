"""The sandbox port: runs untrusted code and reports what happened, in one shot or in a
workspace; and what every sandbox looks like from inside.
"""

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from threading import Event
from types import TracebackType
from typing import Literal, Protocol, Self

# The sandbox port: runs untrusted code and reports what happened.
#
# "The program failed" is a `RunResult`; "the sandbox failed" is a `SandboxError`. Nothing in
# between: a timeout, a signal and an out-of-memory kill are results with their own fields, never
# an invented exit code.

Device = Literal["cpu", "gpu"]
Stream = Literal["stdout", "stderr"]


class SandboxError(Exception):
    """The sandbox itself could not do its work; says nothing about the program."""


class SandboxUnavailable(SandboxError):
    """This kind of sandbox does not work on this machine; the message says how to make it work."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use at most.

    Sizes are in MiB, times in seconds. `idle_s` ends a run whose whole process tree neither printed
    nor used more than 2 % of one core for that long (a deadlock); None leaves idle runs to
    `wall_s`. Where other work keeps the machine busy, so that a run has less than half a core and
    waits for one, the time it waits does not count; `patience` times `wall_s` ends it even so.
    """

    wall_s: float = 120.0
    patience: float = 1.0
    idle_s: float | None = None
    memory_mb: int = 8192
    cpus: float = 2.0
    pids: int = 512
    file_mb: int = 1024
    artifact_mb: int = 8
    scratch_mb: int = 2048
    output_bytes: int = 1_000_000

    @property
    def longest_s(self) -> float:
        """How long a run may take at most, in seconds on the wall."""
        return self.wall_s * max(1.0, self.patience)


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path made visible inside, read-only, at the same path unless `target` says
    otherwise.
    """

    source: Path
    target: str = ""

    @property
    def inside(self) -> str:
        """The path of the mount inside the sandbox."""
        return self.target or str(self.source)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run: an argument vector (never a shell string), the files it starts with, and what it
    may touch.

    `files` maps relative paths to contents; they are written into the fresh, writable working
    directory, which is the current directory of the program (`cwd` is a folder in it) and
    disappears with the run. `links` maps further relative paths to absolute ones inside a mount: a
    link is made there. `run` raises SandboxError for one that leads elsewhere, or lies at, above or
    below a file or another link.
    `artifacts` are glob patterns below it that are read back afterwards (regular files only, never
    links, at most `limits.artifact_mb` together); `run` raises ValueError for one that leads
    elsewhere, has two `*` in a name or `**` twice. `env` is the whole environment: nothing is
    inherited. No run has a network.
    """

    argv: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: Limits = Limits()
    artifacts: tuple[str, ...] = ()
    cwd: str = ""
    device: Device = "cpu"
    label: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceSpec:
    """A workspace: what it starts with, and what it may use.

    `start` fills the working directory: a folder, which is copied, links as links, or an archive
    that `Workspace.snapshot` made. Both are read by programs inside only. `limits.wall_s` is the
    most that one program may take, `total_s` all of them and the pauses between; the other limits
    are for the whole workspace, whose files count as memory except in a plain process. `env` is
    what every program gets. No workspace has a network.
    """

    start: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: Limits = Limits()
    total_s: float = 3600.0
    device: Device = "cpu"
    label: str = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run did. Exactly one of `exit_code` and `signal` is set, unless the run was ended
    from outside (`timed_out`, `idle`, `cancelled`), when both may be None. `seconds` is wall
    time of the program alone, without the sandbox's own start. `refused` says of artifacts that
    were not read back why.
    """

    exit_code: int | None
    signal: int | None = None
    timed_out: bool = False
    idle: bool = False
    oom: bool = False
    cancelled: bool = False
    stdout: str = ""
    stderr: str = ""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    seconds: float = 0.0
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def ended_by_itself(self) -> bool:
        """Whether the program came to its own end, good or bad."""
        return not (self.timed_out or self.idle or self.cancelled or self.oom)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a kind of sandbox works here, why not, and the command that would fix it; `protects`
    and `exposes` say in words what it does and does not contain.
    """

    works: bool
    detail: str
    fix: str = ""
    protects: tuple[str, ...] = ()
    exposes: tuple[str, ...] = ()


OnOutput = Callable[[Stream, str], None]
"""Hears what a program prints, line by line and without line ends, while it runs."""


class Workspace(Protocol):
    """A working directory inside a sandbox, and one program after the other in it.

    Files below the working and the temporary directory stay until `close`; processes end with the
    program that started them. Whatever a method cannot do raises SandboxError, after which the
    workspace goes on, unless its own end was the reason. One call at a time.
    """

    def exec(
        self,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str = "",
        wall_s: float | None = None,
        cancel: Event | None = None,
        on_output: OnOutput | None = None,
    ) -> RunResult:
        """Run a program to its end, to a limit, or to the end of the workspace's time. `env` is
        added to the workspace's, `cwd` a folder in the working directory, `wall_s` less than the
        workspace's limit.
        """

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write or replace files in the working directory, by relative paths. A link is replaced,
        and none is followed.
        """

    def get(self, *patterns: str) -> RunResult:
        """The files that match, as `artifacts` and `refused` of a run are, under the same rules."""

    def snapshot(self, into: Path) -> None:
        """Write the working directory as an archive, which any workspace can start with. Nothing
        outside a sandbox should unpack it.
        """

    def close(self) -> None:
        """End everything, and remove the files."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Sandbox(Protocol):
    """Runs untrusted programs. Implementations: docker, bwrap and process;
    all pass `tests/contract`.
    """

    name: str

    def check(self) -> Health:
        """Try the sandbox for real, quickly; never raises."""

    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        """Run to the end or to a limit. Raises SandboxError when the sandbox, not the program,
        failed.
        """

    def open(self, spec: WorkspaceSpec) -> Workspace:
        """A workspace, which its caller closes. Raises SandboxError when it cannot be made or
        filled.
        """

    def sweep(self) -> int:
        """Remove what killed runs of dead processes left behind; returns how many things were
        removed.
        """


WORKDIR = "/repro"
TEMPORARY = "/tmp"  # noqa: S108  inside, where it is the run's own
HOME = f"{TEMPORARY}/home"
USER = "repro"
HOSTNAME = "localhost"  # a name that resolves without a network, which process groups ask for
RUN_UID = 65534
SHM_MB = 256
MAX_PATTERN = 255
PATH = "/usr/local/bin:/usr/bin:/bin"


def shm_mb(spec: RunSpec) -> int:
    """Room for what data-loader workers share: a quarter of the memory, at least 256 MiB."""
    return max(SHM_MB, spec.limits.memory_mb // 4)


def pids(spec: RunSpec) -> int:
    """How many processes and threads: under 256, torch dies in a way that looks like a crash."""
    return max(256, spec.limits.pids)


def environment(spec: RunSpec) -> dict[str, str]:
    """The program's whole environment. Threads follow the processors granted, not those of the
    host.
    """
    threads = str(max(1, math.floor(spec.limits.cpus)))
    return {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "USER": USER,
        "LOGNAME": USER,
        "OMP_NUM_THREADS": threads,
        **spec.env,
    }


def token() -> str:
    """A name for one run."""
    return secrets.token_hex(8)


def job(spec: RunSpec, mode: str, total_s: float = 0.0) -> dict[str, object]:
    """The guard's job, the same in every kind of sandbox; with `total_s` it is one of a workspace,
    which may also only put files in or take them out.
    """
    if not spec.argv and not total_s:
        raise SandboxError("nothing to run: the argument vector is empty")
    for name in (*spec.files, *spec.links, spec.cwd or "."):
        if not _is_below(name) and name != ".":
            raise SandboxError(f"a file of the run must have a plain relative path, not {name!r}")
    _check_links(spec)
    for glob in spec.artifacts:
        _check_pattern(glob)
    for mount in spec.mounts:
        if not mount.source.exists():
            raise SandboxError(f"the mount {mount.source} does not exist")
    limits = spec.limits
    return {
        "mode": mode,
        "token": token(),
        "total_s": total_s,
        "whole_output": False,
        "argv": list(spec.argv),
        "cwd": spec.cwd,
        "env": environment(spec),
        "home": HOME,
        "temporary": TEMPORARY,
        "workdir": WORKDIR,
        "files": [[name, len(data)] for name, data in spec.files.items()],
        "links": dict(spec.links),
        "artifacts": list(spec.artifacts),
        "limits": {
            "wall_s": limits.wall_s,
            "longest_s": limits.longest_s,
            "idle_s": limits.idle_s,
            "memory_mb": limits.memory_mb,
            "cpus": limits.cpus,
            "pids": pids(spec),
            "file_mb": limits.file_mb,
            "artifact_mb": limits.artifact_mb,
            "scratch_mb": limits.scratch_mb,
            "output_bytes": limits.output_bytes,
        },
    }


def _check_links(spec: RunSpec) -> None:
    """Raise SandboxError for a link that leads out of the mounts, or collides with a file."""
    inside = [PurePosixPath(mount.inside) for mount in spec.mounts]
    names = {*spec.files, *spec.links}
    for name, target in spec.links.items():
        path = PurePosixPath(target)
        if "\0" in target or ".." in path.parts or not any(map(path.is_relative_to, inside)):
            raise SandboxError(f"the link {name!r} of the run must lead into a mount")
        above = {str(folder) for folder in PurePosixPath(name).parents}
        is_above = any(other.startswith(f"{name}/") for other in names)
        if name in spec.files or names & above or is_above:
            raise SandboxError(f"the link {name!r} lies where another file of the run does")


def overlap(one: str, other: str) -> bool:
    """Whether two paths are the same, or one is a folder above the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _is_below(name: str) -> bool:
    """Whether a path is plain, relative and leads nowhere else."""
    path = PurePosixPath(name)
    plain = not path.is_absolute() and str(path) == name and "\0" not in name
    return plain and bool(path.parts) and ".." not in path.parts


def _check_pattern(glob: str) -> None:
    """Raise ValueError for a pattern that no caller needs: the guard would look outside the working
    directory, or match for minutes against names that the program chose.
    """
    names = glob.split("/")
    starry = any(name.count("*") > 1 for name in names if name != "**")
    if len(glob) > MAX_PATTERN or not _is_below(glob) or starry or names.count("**") > 1:
        raise ValueError(
            "an artifact pattern must be a short, plain relative path with at most one * in a name "
            f"and one ** for folders, not {glob[:80]!r}"
        )


def trial(sandbox: Sandbox) -> str:
    """Why a sandbox does not work here, found by running something small; "" when it works. What
    another program took up for a moment, such as the last of the disk, is no reason: a second try
    decides.
    """
    return _try_sandbox(sandbox) and _try_sandbox(sandbox)


def _try_sandbox(sandbox: Sandbox) -> str:
    small = Limits(wall_s=30, scratch_mb=16)
    try:
        result = sandbox.run(RunSpec(("/bin/sh", "-c", "exit 7"), limits=small))
    except SandboxError as error:
        return str(error)
    return "" if result.exit_code == 7 else f"a trial run ended with exit code {result.exit_code}"
