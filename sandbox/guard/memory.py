"""How much memory the processes of a run use, where no control group counts it."""

from __future__ import annotations

import os

from sandbox.guard import tree

PAGE = os.sysconf("SC_PAGE_SIZE")
CROWD, SAMPLES = 32, 4
DESCRIPTORS = 50_000


def resident_mb(pids: list[int]) -> float:
    """Resident memory, pages shared between the processes counted each time: an upper bound,
    cheap.
    """
    total = 0
    for pid in pids:
        fields = tree.read_text(f"/proc/{pid}/statm").split()
        total += int(fields[1]) if len(fields) > 1 else 0
    return total * PAGE / tree.MIB


def proportional_mb(pids: list[int], held_mb: float) -> float:
    """Resident memory with shared pages counted once, so that forked workers do not look like a
    leak; slower. Pages of `held_mb`, files of memory, are not counted again where they are mapped.

    Each count waits for the process's memory lock, under a fork bomb for seconds: a crowd is
    counted by its private pages.
    """
    total = shared = 0.0
    for pid in pids:
        rollup = tree.read_text(f"/proc/{pid}/smaps_rollup") if len(pids) <= CROWD else ""
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
    looks = 0
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
        except OSError:
            continue
        looks += len(names)
        if looks > DESCRIPTORS:
            return float("inf")
        for path in (f"/proc/{pid}/fd/{name}" for name in names):
            try:
                if os.readlink(path).startswith("/memfd:"):  # noqa: PTH115
                    about = os.stat(path)  # noqa: PTH116
                    sizes[about.st_dev, about.st_ino] = about.st_blocks * 512
            except OSError:
                continue
    return sum(sizes.values()) / tree.MIB


def _private_mb(pid: int) -> float:
    fields = tree.read_text(f"/proc/{pid}/statm").split()
    return (int(fields[1]) - int(fields[2])) * PAGE / tree.MIB if len(fields) > 2 else 0.0


def used_mb(pids: list[int], limit_mb: float, held_mb: float) -> float:
    """Memory in use, with that in files of memory; the exact, slower count is only taken when the
    cheap one is over the limit, of a crowd by samples.
    """
    cheap = resident_mb(pids) + held_mb
    if cheap <= limit_mb or len(pids) <= CROWD:
        return cheap if cheap <= limit_mb else proportional_mb(pids, held_mb)
    sample_mb = proportional_mb(pids[:: len(pids) // SAMPLES], 0.0)
    return max(resident_mb([pid]) for pid in pids) + sample_mb * len(pids) / SAMPLES + held_mb
