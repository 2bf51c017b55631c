"""The same view from inside every sandbox, and the defaults of a run whose environment does not set
them.
"""

import math
import secrets
from pathlib import PurePosixPath

from sandbox.port import Limits, RunSpec, Sandbox, SandboxError

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
    for name in (*spec.files, spec.cwd or "."):
        if not _is_below(name) and name != ".":
            raise SandboxError(f"a file of the run must have a plain relative path, not {name!r}")
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
        "artifacts": list(spec.artifacts),
        "limits": {
            "wall_s": limits.wall_s,
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
    return _tried(sandbox) and _tried(sandbox)


def _tried(sandbox: Sandbox) -> str:
    small = Limits(wall_s=30, scratch_mb=16)
    try:
        done = sandbox.run(RunSpec(("/bin/sh", "-c", "exit 7"), limits=small))
    except SandboxError as error:
        return str(error)
    return "" if done.exit_code == 7 else f"a trial run ended with exit code {done.exit_code}"
