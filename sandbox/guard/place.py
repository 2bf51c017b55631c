"""Where a program runs, seen by its guard: what every kind of place has in common."""

from __future__ import annotations

import os
import time

from sandbox.guard import files, spawn, tree

TYPE_CHECKING = False  # typing itself would cost each run ten milliseconds
if TYPE_CHECKING:
    from typing import Any

    Job = dict[str, Any]


class Failed(Exception):
    """The sandbox could not do its work."""


class RunLocation:
    """A place for one run or workspace. Parts that only one kind needs are in its own file, and
    only that file travels with the guard.
    """

    def __init__(self, job: Job) -> None:
        self.take(job)
        self.user = self.own_user()
        self.main = self.folder = 0
        self.began = time.monotonic()
        self.prepare_folder()

    def take(self, job: Job) -> None:
        """Take a job, the first or a workspace's next."""
        self.job, self.limits = job, job["limits"]

    def own_user(self) -> tuple[int, int] | None:
        """The user to turn into, None to stay who we are."""
        return None

    def prepare_folder(self) -> None:
        """Make the work directory."""

    def fill(self) -> None:
        """Write the files and links of the job as its user, once there is a place for them."""
        if not self.folder:
            return
        with spawn.As(self.user):
            for name, data in self.job.pop("contents", ()):
                files.put(self.folder, name, data)
            for name, target in self.job.pop("links", {}).items():
                files.link(self.folder, name, target)

    def start(self, out: int, err: int) -> None:
        """Start the program with its output on these descriptors."""
        raise NotImplementedError

    def pids(self) -> list[int]:
        """Every living process of the run."""
        return tree.descendants(os.getpid())

    def oom_kills(self) -> int:
        """How many of them the kernel killed for memory."""
        return 0

    def memory_mb(self, pids: list[int]) -> float:  # noqa: ARG002
        """Memory in use, where the guard itself must hold the limit."""
        return 0.0

    def over_scratch(self) -> bool:
        """Whether the program filled more of the disk than it may; a sized tmpfs sees to it by
        itself.
        """
        return False

    def outcome(self, status: int) -> tuple[int | None, int | None]:
        """Exit code and signal from the wait status of the main child."""
        return (
            (None, os.WTERMSIG(status))
            if os.WIFSIGNALED(status)
            else (os.WEXITSTATUS(status), None)
        )

    def kill(self) -> bool:
        """End every process of the run."""
        return tree.kill_tree(os.getpid())

    def clean(self) -> None:
        """Leave nothing behind."""


def yield_memory() -> None:
    """In the child: be what the kernel kills first."""
    spawn.prctl(
        spawn.DUMPABLE, 1
    )  # the guard is not, and what it forks may not write its own score
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as handle:  # noqa: PTH123
        handle.write("1000")
