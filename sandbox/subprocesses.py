"""Helper programs of the prepare phase: they inherit no environment, can be stopped, and die
with whoever started them.
"""

import os
import selectors
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
_PIECE = 1 << 16
_MOST_OUTPUT = 32 << 20

Take = Callable[[bytes], None]


class Interrupted(SandboxError):
    """The caller asked to stop."""


class TookTooLong(SandboxError):
    """A helper did not end in its time."""


class TooMuchOutput(SandboxError):
    """A helper printed more than is kept."""


def bounds(memory: int, file: int) -> dict[str, int]:
    """Resource limits in bytes: the address space, to which threads, one for each processor, add
    their own, and a file.
    """
    stacks = (os.cpu_count() or 1) * (16 << 20)
    return {"RLIMIT_AS": memory + stacks, "RLIMIT_FSIZE": file}


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
    take: Take | None = None,
) -> Completed:
    """Run one helper to its end, with resource `limits` by name. Raises Interrupted when cancelled,
    TooMuchOutput, TookTooLong, SandboxError when it cannot start, and what `watch` raises, which
    is called with its process id while it runs, or `take`, which gets the standard output
    piece by piece instead of the result.
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
            umask=0o022,  # the sandbox's user reads what helpers make
        )
    except OSError as error:
        raise SandboxError(f"{argv[0]} cannot be started: {error.strerror}") from error
    out, err = bytearray(), bytearray()

    def look() -> None:
        if watch is not None:
            watch(process.pid)
        if cancel is not None and cancel.is_set():
            raise Interrupted("stopped on request")
        if time.monotonic() > deadline:
            raise TookTooLong("a helper program of the prepare phase did not finish in time")

    with process:  # its pipes are closed, whatever happens
        try:
            _pump(process, take or _keep(out), _keep(err), look)
        finally:
            _end(process)
    return Completed(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def _keep(into: bytearray) -> Take:
    def take(piece: bytes) -> None:
        into.extend(piece)
        if len(into) > _MOST_OUTPUT:
            raise TooMuchOutput(f"a helper program printed more than {_MOST_OUTPUT >> 20} MiB")

    return take


def _pump(process: subprocess.Popen[bytes], out: Take, err: Take, look: Callable[[], None]) -> None:
    """Hand on what a helper prints until it has ended, with a look every now and then."""
    with selectors.DefaultSelector() as pipes:
        for pipe, take in ((process.stdout, out), (process.stderr, err)):
            assert pipe is not None
            pipes.register(pipe, selectors.EVENT_READ, take)
        while pipes.get_map():
            for key, _ in pipes.select(_POLL_S):
                if piece := os.read(key.fd, _PIECE):
                    key.data(piece)
                else:
                    pipes.unregister(key.fileobj)
            look()
    while True:
        try:
            process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            look()
        else:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of the helper's process group behind."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
