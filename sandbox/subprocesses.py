"""Helper programs of the prepare phase: they inherit no environment, can be stopped, and die
with whoever started them.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from sandbox.port import SandboxError

# Asks the kernel for SIGKILL at the parent's death, makes sure that it has not come already, takes
# its limits, and becomes the program.
_DIE_WITH_PARENT = (
    "import ctypes,os,resource as r,sys;ctypes.CDLL(None).prctl(1,9);"
    "os.getppid()==int(sys.argv[1]) or os._exit(137);"
    "[r.setrlimit(getattr(r,n),(int(v),)*2)"
    " for n,_,v in (p.partition('=') for p in sys.argv[2].split())];"
    "os.execv(sys.argv[3],sys.argv[3:])"
)
_POLL_S = 0.05


class Interrupted(SandboxError):
    """The caller asked to stop."""


@dataclass(frozen=True, slots=True)
class Completed:
    """What a helper did; `code` is negative for a signal."""

    code: int
    out: str
    err: str


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    cancel: Event | None = None,
    timeout_s: float = 1800.0,
    limits: Mapping[str, int] | None = None,
    watch: Callable[[int], None] | None = None,
) -> Completed:
    """Run one helper to its end, with resource `limits` by name. Raises Interrupted when cancelled,
    SandboxError when it cannot start or takes too long, and what `watch` raises, which is called
    with its process id while it runs.
    """
    if cancel is not None and cancel.is_set():
        raise Interrupted("stopped before it began")
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        _DIE_WITH_PARENT,
        str(os.getpid()),
        " ".join(f"{name}={value}" for name, value in (limits or {}).items()),
        *map(str, argv),
    ]
    deadline = time.monotonic() + timeout_s
    try:
        process = subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise SandboxError(f"{argv[0]} cannot be started: {error.strerror}") from error
    with process:  # its pipes are closed, whatever happens
        try:
            out, err = _wait(process, cancel, deadline, watch)
        finally:
            _end(process)
    return Completed(process.returncode, out, err)


def _wait(
    process: subprocess.Popen[str],
    cancel: Event | None,
    deadline: float,
    watch: Callable[[int], None] | None,
) -> tuple[str, str]:
    pause = 1.0 if cancel is None and watch is None else _POLL_S
    while True:
        try:
            return process.communicate(timeout=pause)
        except subprocess.TimeoutExpired:
            if watch is not None:
                watch(process.pid)
            if cancel is not None and cancel.is_set():
                raise Interrupted("stopped on request") from None
            if time.monotonic() > deadline:
                raise SandboxError(
                    "a helper program of the prepare phase did not finish in time"
                ) from None


def _end(process: subprocess.Popen[str]) -> None:
    """Leave nothing of the helper's process group behind."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
