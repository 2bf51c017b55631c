"""A control group of our own for one run, on cgroup v1 or v2, where this process may make one;
otherwise nothing.
"""

from __future__ import annotations

import os
import time

ROOT = "/sys/fs/cgroup"
NAME = "reprise"
MIB = 1024 * 1024


def _write(path: str, value: object) -> None:
    with open(path, "w", encoding="ascii") as handle:  # noqa: PTH123
        handle.write(str(value))


def _events(path: str, word: str) -> int:
    try:
        with open(path, encoding="ascii") as handle:  # noqa: PTH123
            lines = [line.split() for line in handle]
    except OSError:
        return 0
    return next((int(value) for key, value in lines if key == word), 0)


class Group:
    """The directories of one run's group (one on v2, one a controller on v1)."""

    def __init__(self, token: str) -> None:
        self.v2 = os.path.exists(f"{ROOT}/cgroup.controllers")  # noqa: PTH110
        parts = [""] if self.v2 else ["/memory", "/pids", "/cpu"]
        self.dirs = [f"{ROOT}{part}/{NAME}/{token}" for part in parts]

    def make(self, memory_mb: int, pids: int, cpus: float) -> bool:
        """Make it and set its limits; false when this process may not."""
        try:
            if self.v2:
                os.makedirs(f"{ROOT}/{NAME}", exist_ok=True)  # noqa: PTH103
                _write(f"{ROOT}/{NAME}/cgroup.subtree_control", "+memory +pids +cpu")
            for path in self.dirs:
                os.makedirs(path)  # noqa: PTH103
            self._limit(memory_mb, pids, cpus)
        except OSError:
            self.remove(0)
            return False
        return True

    def _limit(self, memory_mb: int, pids: int, cpus: float) -> None:
        quota = int(cpus * 100_000)
        if self.v2:
            (base,) = self.dirs
            limits = {
                f"{base}/memory.max": memory_mb * MIB,
                f"{base}/pids.max": pids,
                f"{base}/cpu.max": f"{quota} 100000",
            }
            swap, swap_bytes = f"{base}/memory.swap.max", 0
        else:
            memory, tasks, cpu = self.dirs
            limits = {
                f"{memory}/memory.limit_in_bytes": memory_mb * MIB,
                f"{tasks}/pids.max": pids,
                f"{cpu}/cpu.cfs_quota_us": quota,
            }
            swap, swap_bytes = f"{memory}/memory.memsw.limit_in_bytes", memory_mb * MIB
        if os.path.exists(swap):  # noqa: PTH110
            limits[swap] = swap_bytes  # after the memory itself, which it may not be below
        for path, value in limits.items():
            _write(path, value)

    def join(self) -> None:
        """Move the calling process in."""
        for path in self.dirs:
            _write(f"{path}/cgroup.procs", os.getpid())

    def oom_kills(self) -> int:
        """How many processes of the run the kernel killed for memory."""
        base = self.dirs[0]
        return _events(f"{base}/memory.events", "oom_kill") or _events(
            f"{base}/memory.oom_control", "oom_kill"
        )

    def remove(self, budget_s: float = 2.0) -> None:
        """Remove it once its processes are gone."""
        end = time.monotonic() + budget_s
        for path in self.dirs:
            while os.path.isdir(path):  # noqa: PTH112
                try:
                    os.rmdir(path)  # noqa: PTH106
                except OSError:
                    if time.monotonic() > end:
                        break
                    time.sleep(0.01)


def abandoned(older_s: float = 60.0) -> list[str]:
    """Names of runs whose groups are empty and not new: their guards were killed before they
    could clean up.
    """
    found = set()
    for base in (
        f"{ROOT}/{NAME}",
        *(f"{ROOT}/{part}/{NAME}" for part in ("memory", "pids", "cpu")),
    ):
        for name in os.listdir(base) if os.path.isdir(base) else ():  # noqa: PTH112, PTH208
            path = f"{base}/{name}"
            try:
                with open(f"{path}/cgroup.procs", encoding="ascii") as handle:  # noqa: PTH123
                    empty = not handle.read().strip()
                if empty and time.time() - os.stat(path).st_mtime > older_s:  # noqa: PTH116
                    found.add(name)
            except OSError:
                continue
    return sorted(found)
