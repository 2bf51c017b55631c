"""The program in a container whose first process is the guard: out of its reach, and its end is
the end of all.
"""

from __future__ import annotations

import os
import time

from sandbox.guard import place, spawn, tree

GROUPS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


class Container(place.RunLocation):
    """Inside a container of the Docker daemon."""

    def prepare_folder(self) -> None:
        """The work directory is there already, a sized tmpfs."""
        os.makedirs(self.job["home"], exist_ok=True)  # noqa: PTH103
        self.folder = os.open(self.job["workdir"], os.O_RDONLY | os.O_DIRECTORY)

    def start(self, out: int, err: int) -> None:
        env = {"HOME": self.job["home"], "TMPDIR": self.job["temporary"], **self.job["env"]}

        def prepare() -> None:
            os.umask(0o022)
            place.yield_memory()
            os.nice(10)  # the guard shares the container's processor with what it has to stop
            spawn.limit(self.limits["file_mb"], None)
            os.chdir(f"{self.job['workdir']}/{self.job['cwd']}")

        self.began = time.monotonic()
        self.main = spawn.start(self.job["argv"], env, {1: out, 2: err}, prepare)

    def pids(self) -> list[int]:
        """Every process here but the guard."""
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        return [pid for pid in pids if pid != os.getpid()]

    def oom_kills(self) -> int:
        for path in GROUPS:
            try:
                with open(path, encoding="ascii") as handle:  # noqa: PTH123
                    counts = dict(line.split() for line in handle)
            except OSError:
                continue
            return int(counts.get("oom_kill", 0))
        return 0

    def kill(self) -> bool:
        end = time.monotonic() + 10
        while self.pids() and time.monotonic() < end:
            tree.kill(-1)
            tree.reap()
            time.sleep(0.002)
        return not self.pids()


KIND = Container
