"""The program on this host: a scratch directory, and where the guard may, a user and a control
group of its own.
"""

from __future__ import annotations

import fcntl
import os
import time

from sandbox.guard import cgroup, files, place, spawn


class Host(place.RunLocation):
    """A plain child of this machine."""

    def __init__(self, job: place.Job) -> None:
        self.group: cgroup.Group | None = None
        super().__init__(job)

    def own_user(self) -> tuple[int, int] | None:
        if os.geteuid() != 0:
            return None
        own = (
            1_879_048_192 + os.getpid()
        )  # a number no account has: runs of the same moment cannot touch each other
        return own, own

    def prepare_folder(self) -> None:
        base = self.job["scratch"]
        os.mkdir(base, 0o700)  # noqa: PTH102
        for name in ("work", "tmp", "home"):
            os.mkdir(f"{base}/{name}", 0o700)  # noqa: PTH102
            if self.user:
                os.chown(f"{base}/{name}", *self.user)
        if self.user:
            os.chown(base, *self.user)
        self.base = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(
            self.base, fcntl.LOCK_EX
        )  # held for life: a sweep takes what is no longer locked
        self.folder = os.open(f"{base}/work", os.O_RDONLY | os.O_DIRECTORY)
        self.fill()

    def join_group(self) -> None:
        """Make the control group, if this machine lets us."""
        group = cgroup.Group(self.job["token"])
        if group.make(self.limits["memory_mb"], self.limits["pids"], self.limits["cpus"]):
            self.group = group

    def start(self, out: int, err: int) -> None:
        self.join_group()
        base = self.job["scratch"]
        env = {"HOME": f"{base}/home", "TMPDIR": f"{base}/tmp", **self.job["env"]}  # noqa: S108
        null = os.open(os.devnull, os.O_RDONLY)

        def prepare() -> None:
            self.confine()
            spawn.become(self.user)
            spawn.prctl(spawn.NO_NEW_PRIVS, 1)
            os.chdir(f"{base}/work")

        self.began = time.monotonic()
        self.main = spawn.start(self.job["argv"], env, {0: null, 1: out, 2: err}, prepare)

    def confine(self) -> None:
        """In the child, before it gives up its rights: group, memory score, limits."""
        os.umask(0o022)
        place.yield_memory()
        processes = None
        if self.group is not None:
            self.group.join()
        else:
            uid = self.user[0] if self.user else os.getuid()
            processes = spawn.threads_of(uid) + self.limits["pids"]
            spawn.pin(self.limits["cpus"])
        spawn.limit(self.limits["file_mb"], processes)

    def oom_kills(self) -> int:
        return self.group.oom_kills() if self.group else 0

    def watches_memory(self) -> bool:
        return self.group is None

    def over_scratch(self) -> bool:
        with spawn.As(self.user):
            return bool(files.used_mb(self.base) > self.limits["scratch_mb"])

    def clean(self) -> None:
        remove(self.job["scratch"])
        if self.group:
            self.group.remove()


def remove(path: str) -> None:
    """Remove a tree that a hostile program made: any depth, any permissions, no link followed."""
    commands = [["rm", "-rf", "--one-file-system", "--", path]]
    if os.geteuid() != 0:
        commands.insert(0, ["chmod", "-R", "u+rwX", "--", path])
    for argv in commands:
        pid = os.posix_spawnp(
            argv[0], argv, {"PATH": "/usr/bin:/bin"}, file_actions=[(os.POSIX_SPAWN_CLOSE, 2)]
        )
        os.waitpid(pid, 0)


KIND = Host
