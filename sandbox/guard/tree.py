"""What a tree of processes is and uses, read from /proc, and its end."""

from __future__ import annotations

# The public module builds enumerations for ten milliseconds at each start.
import _signal as signal  # type: ignore[import-not-found]
import os
import time

TYPE_CHECKING = False  # typing itself would cost each run ten milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable

KILL, STOP = 9, 19
TICK = os.sysconf("SC_CLK_TCK")
MIB = 1024 * 1024


def read_text(path: str) -> str:
    """The text of a file of /proc, "" when its process is gone."""
    try:
        with open(path, encoding="ascii", errors="replace") as handle:  # noqa: PTH123  pathlib costs milliseconds at each start
            return handle.read()
    except OSError:
        return ""


def _fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the program's name, which may itself hold spaces and
    brackets.
    """
    return read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def parents() -> dict[int, list[int]]:
    """Every process's children, by one pass over /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            fields = _fields(int(name))
            if len(fields) > 1:
                children.setdefault(int(fields[1]), []).append(int(name))
    return children


def descendants(root: int) -> list[int]:
    """Every living process below this one (not itself), found level by level."""
    whole = None if os.path.exists(f"/proc/{root}/task/{root}/children") else parents()  # noqa: PTH110
    pids: list[int] = []
    level = [root]
    while level:
        level = [
            child
            for pid in level
            for child in (_children(pid) if whole is None else whole.get(pid, []))
        ]
        pids += level
    return pids


def _children(pid: int) -> list[int]:
    pids: list[int] = []
    for thread in _threads(pid):
        pids += [int(child) for child in read_text(f"/proc/{pid}/task/{thread}/children").split()]
    return pids


def _threads(pid: int) -> list[str]:
    """The numbers of a process's threads, none when it is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return []


def cpu_seconds(pids: list[int]) -> float:
    """Processor time of these processes and of the children they have waited for."""
    total = 0
    for pid in pids:
        fields = _fields(pid)
        if len(fields) > 14:
            total += sum(int(value) for value in fields[11:15])
    return total / TICK


def waited_seconds(pids: list[int]) -> float:
    """How long the thread of these processes that waited longest for a processor did; 0 where the
    kernel does not say (gVisor).
    """
    longest = 0
    for pid in pids:
        for thread in _threads(pid):
            fields = read_text(f"/proc/{pid}/task/{thread}/schedstat").split()
            longest = max(longest, int(fields[1]) if len(fields) > 1 else 0)
    return longest / 1e9


def kill(pid: int, number: int = KILL) -> None:
    """Send a signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def kill_if(pid: int, belongs: Callable[[int], bool], number: int = KILL) -> bool:
    """Send a signal to a process that `belongs`; whether it did. A descriptor holds the process
    meanwhile: among many that start and end, the number of one soon names another, of anybody.
    """
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        mine = belongs(pid)
        if mine:
            signal.pidfd_send_signal(process, number)
    except OSError:
        return False
    else:
        return mine
    finally:
        os.close(process)


def kill_tree(root: int, budget_s: float = 10.0) -> bool:
    """Stop, then kill everything below `root`, again and again until nothing is left; true when
    it worked.
    """
    end = time.monotonic() + budget_s
    while time.monotonic() < end:
        family = descendants(root)
        below = [pid for pid in family if _fields(pid)[:1] not in ([], ["Z"], ["X"])]
        _end(below, {str(pid) for pid in (root, *family)})
        reap()
        if not below:
            return True
        time.sleep(0.002)
    return False


def _end(pids: list[int], parents: set[str]) -> None:
    """Stop, then kill those whose parent is one of these: a stopped process cannot fork away."""
    for number in (STOP, KILL):
        for pid in pids:
            kill_if(pid, lambda pid: not parents.isdisjoint(_fields(pid)[1:2]), number)


def reap() -> dict[int, int]:
    """Collect every child that has ended: pid → wait status."""
    statuses: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return statuses
        if pid == 0:
            return statuses
        statuses[pid] = status


def threads(pid: int) -> int:
    """How many threads a process has."""
    fields = _fields(pid)
    return int(fields[17]) if len(fields) > 17 else 0
