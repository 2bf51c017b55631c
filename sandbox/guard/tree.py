"""What a tree of processes is and uses, read from /proc, and its end."""

from __future__ import annotations

import os
import time

PAGE = os.sysconf("SC_PAGE_SIZE")
KILL, STOP = 9, 19
TICK = os.sysconf("SC_CLK_TCK")
MIB = 1024 * 1024
CROWD, SAMPLES = 32, 4
DESCRIPTORS = 50_000


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as handle:  # noqa: PTH123  pathlib costs milliseconds at each start
            return handle.read()
    except OSError:
        return ""


def _fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the program's name, which may itself hold spaces and
    brackets.
    """
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


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
    found: list[int] = []
    level = [root]
    while level:
        level = [
            child
            for pid in level
            for child in (_children(pid) if whole is None else whole.get(pid, []))
        ]
        found += level
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return found
    for thread in threads:
        found += [int(child) for child in _read(f"/proc/{pid}/task/{thread}/children").split()]
    return found


def cpu_seconds(pids: list[int]) -> float:
    """Processor time of these processes and of the children they have waited for."""
    total = 0
    for pid in pids:
        fields = _fields(pid)
        if len(fields) > 14:
            total += sum(int(value) for value in fields[11:15])
    return total / TICK


def resident_mb(pids: list[int]) -> float:
    """Resident memory, pages shared between the processes counted each time: an upper bound,
    cheap.
    """
    total = 0
    for pid in pids:
        fields = _read(f"/proc/{pid}/statm").split()
        total += int(fields[1]) if len(fields) > 1 else 0
    return total * PAGE / MIB


def proportional_mb(pids: list[int], held_mb: float) -> float:
    """Resident memory with shared pages counted once, so that forked workers do not look like a
    leak; slower. Pages of `held_mb`, files of memory, are not counted again where they are mapped.

    Each count waits for the process's memory lock, under a fork bomb for seconds: a crowd is
    counted by its private pages.
    """
    total = shared = 0.0
    for pid in pids:
        rollup = _read(f"/proc/{pid}/smaps_rollup") if len(pids) <= CROWD else ""
        rows = [line.split() for line in rollup.splitlines() if line.startswith("Pss")]
        sizes = {row[0]: int(row[1]) / 1024 for row in rows}
        mapped = sizes.get("Pss_Shmem:", 0.0)
        total += sizes["Pss:"] - mapped if "Pss:" in sizes else _private_mb(pid)
        shared += mapped
    return total + max(shared, held_mb)


def memory_files_mb(pids: list[int]) -> float:
    """What these processes keep in files of memory (memfd), which no count of pages shows unless
    they are mapped; infinite when they have more descriptors than can be looked through.
    """
    sizes: dict[tuple[int, int], int] = {}
    looked = 0
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
        except OSError:
            continue
        looked += len(names)
        if looked > DESCRIPTORS:
            return float("inf")
        for path in (f"/proc/{pid}/fd/{name}" for name in names):
            try:
                if os.readlink(path).startswith("/memfd:"):  # noqa: PTH115
                    about = os.stat(path)  # noqa: PTH116
                    sizes[about.st_dev, about.st_ino] = about.st_blocks * 512
            except OSError:
                continue
    return sum(sizes.values()) / MIB


def _private_mb(pid: int) -> float:
    fields = _read(f"/proc/{pid}/statm").split()
    return (int(fields[1]) - int(fields[2])) * PAGE / MIB if len(fields) > 2 else 0.0


def used_mb(pids: list[int], limit_mb: float, held_mb: float) -> float:
    """Memory in use, with that in files of memory; the exact, slower count is only taken when the
    cheap one is over the limit, of a crowd by samples.
    """
    cheap = resident_mb(pids) + held_mb
    if cheap <= limit_mb or len(pids) <= CROWD:
        return cheap if cheap <= limit_mb else proportional_mb(pids, held_mb)
    sampled = proportional_mb(pids[:: len(pids) // SAMPLES], 0.0)
    return max(resident_mb([pid]) for pid in pids) + sampled * len(pids) / SAMPLES + held_mb


def kill(pid: int, number: int = KILL) -> None:
    """Send a signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def kill_tree(root: int, budget_s: float = 10.0) -> bool:
    """Stop, then kill everything below `root`, again and again until nothing is left; true when
    it worked.
    """
    end = time.monotonic() + budget_s
    while time.monotonic() < end:
        below = [pid for pid in descendants(root) if _fields(pid)[:1] not in ([], ["Z"], ["X"])]
        for pid in below:
            kill(pid, STOP)  # a stopped process cannot fork away from the sweep
        for pid in below:
            kill(pid)
        reap()
        if not below:
            return True
        time.sleep(0.002)
    return False


def reap() -> dict[int, int]:
    """Collect every child that has ended: pid → wait status."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def threads(pid: int) -> int:
    """How many threads a process has."""
    fields = _fields(pid)
    return int(fields[17]) if len(fields) > 17 else 0
