"""The memory and the open files of the App's processes, looked at every few seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from threading import Event, Thread

from benchmarks.killing import descendants
from benchmarks.supervised import Supervised
from bot.kernel.values import Record

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
_TICKS = os.sysconf("SC_CLK_TCK")
_PERSISTENT_S = 180.0


class Sample(Record):
    """One look: resident megabytes and open files by program. A program's children count once
    they have lived so long that no run lasts.
    """

    at: float
    memory_mb: dict[str, float]
    files: dict[str, int]

    @property
    def total_mb(self) -> float:
        """The memory of all programs."""
        return sum(self.memory_mb.values())


class Window(Record):
    """The medians of some samples."""

    memory_mb: float
    by_program: dict[str, float]
    files: dict[str, int]


def window(samples: Sequence[Sample], from_s: float, to_s: float) -> Window:
    """The medians of what was seen between two moments; a machine that was too busy to look then
    has the nearest look. Raises ValueError when there was none at all.
    """
    inside = [each for each in samples if from_s <= each.at <= to_s]
    if not inside:
        middle = (from_s + to_s) / 2
        inside = [min(samples, key=lambda sample: abs(sample.at - middle))]
    names = sorted(inside[0].memory_mb)
    return Window(
        memory_mb=median(each.total_mb for each in inside),
        by_program={
            name: median(each.memory_mb.get(name, 0.0) for each in inside) for name in names
        },
        files={name: int(median(each.files.get(name, 0) for each in inside)) for name in names},
    )


def look(programs: Supervised, at: float) -> Sample:
    """The programs as they are now. One that is being started again has nothing."""
    pids = {name: programs.pid(name) for name in programs.starts}
    return Sample(
        at=at,
        memory_mb={name: _resident_mb(pid) for name, pid in pids.items()},
        files={name: _open_files(pid) for name, pid in pids.items()},
    )


@contextmanager
def sampled(take: Callable[[float], Sample], every_s: float) -> Iterator[list[Sample]]:
    """The samples that are taken while the block lasts, by the seconds since it began."""
    samples: list[Sample] = []
    done, began = Event(), time.monotonic()

    def watch() -> None:
        while not done.wait(every_s):
            samples.append(take(time.monotonic() - began))

    thread = Thread(target=watch, name="sampling")
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


def _resident_mb(root: int) -> float:
    children = [pid for pid in descendants(root) if _age_s(pid) > _PERSISTENT_S]
    return sum(map(_own_mb, [root, *children]))


def _own_mb(pid: int) -> float:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MB
    return 0.0


def _age_s(pid: int) -> float:
    with suppress(OSError):
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(started) / _TICKS
    return 0.0


def _open_files(pid: int) -> int:
    with suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0
