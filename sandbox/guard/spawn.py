"""Starts one child with its limits set, its privileges gone and only the descriptors meant for
it.
"""

from __future__ import annotations

# The public module builds enumerations for ten milliseconds at each start.
import _signal as signal  # type: ignore[import-not-found]
import ctypes
import fcntl
import os
import resource

from sandbox.guard import tree

TYPE_CHECKING = False  # typing itself would cost each run ten milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PDEATHSIG, DUMPABLE, SUBREAPER, NO_NEW_PRIVS = 1, 4, 36, 38
OPEN_FILES = 8192
IGNORED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
USUAL = (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ)


def prctl(option: int, value: int) -> None:
    """Set one attribute of this process."""
    call("prctl", option, value, 0, 0, 0)


def call(name: str, *arguments: object) -> None:
    """Call the C library. Raises OSError with the name of the function."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def become(user: tuple[int, int] | None) -> None:
    """Turn into the run's user for good."""
    if user is not None:
        os.setgroups([])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])


class As:
    """For a while, touch files with the rights of the run's user and no more."""

    def __init__(self, user: tuple[int, int] | None) -> None:
        self.user = user

    def __enter__(self) -> None:
        if self.user is not None:
            os.setegid(self.user[1])
            os.seteuid(self.user[0])

    def __exit__(self, *_: object) -> None:
        if self.user is not None:
            os.seteuid(0)
            os.setegid(0)


def limit(file_mb: int, processes: int | None) -> None:
    """Set the resource limits of this process and all it will start."""
    bounds = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, file_mb * tree.MIB),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ]
    if processes is not None:
        bounds.append((resource.RLIMIT_NPROC, processes))
    for which, value in bounds:
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def threads_of(uid: int) -> int:
    """How many threads this user has on this machine: RLIMIT_NPROC counts them all, not those of
    one run.
    """
    total = 0
    for name in os.listdir("/proc"):  # noqa: PTH208
        try:
            mine = name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid  # noqa: PTH116
        except OSError:
            continue
        total += tree.threads(int(name)) if mine else 0
    return total


def pin(cpus: float) -> None:
    """Without a control group, keep the run on as many cores as it may use."""
    cores = sorted(os.sched_getaffinity(0))
    core_count = max(1, int(cpus + 0.999))
    if core_count < len(cores):
        first = os.getpid() % len(cores)
        os.sched_setaffinity(0, (cores[first:] + cores[:first])[:core_count])


def wire_descriptors(descriptors: Mapping[int, int]) -> None:
    """Make the descriptors `wanted` (target: source) the only ones this process has."""
    parked = {
        target: fcntl.fcntl(source, fcntl.F_DUPFD, 200) for target, source in descriptors.items()
    }
    for target, source in parked.items():
        os.dup2(source, target, inheritable=True)
    keep = sorted(descriptors)
    for low, high in zip(keep, [*keep[1:], OPEN_FILES], strict=True):
        os.closerange(low + 1, high)


def start(
    argv: list[str],
    env: Mapping[str, str],
    descriptors: Mapping[int, int],
    prepare: Callable[[], None],
) -> int:
    """Fork, run `prepare` in the child, and replace it by the program, whose input is empty; an
    OSError of either is raised here.
    """
    report, trouble = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            prepare()
            prctl(PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
            if os.getppid() != parent:
                os._exit(1)
            for number in USUAL:
                signal.signal(number, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDONLY)
            wire_descriptors({0: null, **descriptors, 100: trouble})
            os.set_inheritable(100, False)
            os.execvpe(argv[0], argv, dict(env))  # noqa: S606
        except BaseException as error:
            os.write(100 if _is_open(100) else trouble, f"{argv[0]}: {error}".encode()[:4000])
        os._exit(1)
    os.close(trouble)
    with os.fdopen(report, "rb") as channel:
        message = channel.read().decode(errors="replace")
    if message:
        os.waitpid(pid, 0)
        raise OSError(message)
    return pid


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def quiet_signals() -> None:
    """Ignore what the program may send to its guard."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def watch(pid: int) -> int:
    """A descriptor that becomes readable when the process ends."""
    return os.pidfd_open(pid)
