"""The program on this host: a scratch directory, and where the guard may, a user and a control
group of its own (cgroup v1 or v2).
"""

from __future__ import annotations

import fcntl
import os
import time

from sandbox.guard import files, place, spawn, tree

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


ROOT = "/sys/fs/cgroup"
NAME = "reprise"


def write(path: str, value: object) -> None:
    """Write a value into a file of the kernel."""
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
        self.locks: list[int] = []

    def make(self, memory_mb: int, pids: int, cpus: float) -> bool:
        """Make it and set its limits; false when this process may not."""
        try:
            if self.v2:
                os.makedirs(f"{ROOT}/{NAME}", exist_ok=True)  # noqa: PTH103
                write(f"{ROOT}/{NAME}/cgroup.subtree_control", "+memory +pids +cpu")
            for path in self.dirs:
                os.makedirs(path)  # noqa: PTH103
                self.locks.append(hold(path))
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
                f"{base}/memory.max": memory_mb * tree.MIB,
                f"{base}/pids.max": pids,
                f"{base}/cpu.max": f"{quota} 100000",
            }
            swap, swap_bytes = f"{base}/memory.swap.max", 0
        else:
            memory, tasks, cpu = self.dirs
            limits = {
                f"{memory}/memory.limit_in_bytes": memory_mb * tree.MIB,
                f"{tasks}/pids.max": pids,
                f"{cpu}/cpu.cfs_quota_us": quota,
            }
            swap, swap_bytes = f"{memory}/memory.memsw.limit_in_bytes", memory_mb * tree.MIB
        if os.path.exists(swap):  # noqa: PTH110
            limits[swap] = swap_bytes  # after the memory itself, which it may not be below
        for path, value in limits.items():
            write(path, value)

    def join(self) -> None:
        """Move the calling process in."""
        for path in self.dirs:
            write(f"{path}/cgroup.procs", os.getpid())

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
        while self.locks:
            os.close(self.locks.pop())


def hold(path: str) -> int:
    """A descriptor of a folder with a lock, for life: a sweep takes only what nobody holds."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    return folder


class Host(place.RunLocation):
    """A plain child of this machine."""

    def __init__(self, job: place.Job) -> None:
        self.group: Group | None = None
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
        folder, name = os.path.split(base)
        new = f"{folder}/.{name}"
        os.mkdir(new, 0o700)  # noqa: PTH102
        self.base = hold(new)  # before it has the name that a sweep looks for
        os.rename(new, base)  # noqa: PTH104
        self.bound_scratch(base)
        for name in ("work", "tmp", "home"):
            os.mkdir(f"{base}/{name}", 0o700)  # noqa: PTH102
            if self.user:
                os.chown(f"{base}/{name}", *self.user)
        if self.user:
            os.chown(base, *self.user)
        self.folder = os.open(f"{base}/work", os.O_RDONLY | os.O_DIRECTORY)

    def bound_scratch(self, base: str) -> None:
        """Set bounds to what the scratch directory can hold, where polling is not enough."""

    def join_group(self) -> None:
        """Make the control group, if this machine lets us."""
        if self.group is not None:
            return
        group = Group(self.job["token"])
        if group.make(self.limits["memory_mb"], self.limits["pids"], self.limits["cpus"]):
            self.group = group

    def start(self, out: int, err: int) -> None:
        self.join_group()
        base = self.job["scratch"]
        env = {"HOME": f"{base}/home", "TMPDIR": f"{base}/tmp", **self.job["env"]}  # noqa: S108

        def prepare() -> None:
            self.confine()
            spawn.become(self.user)
            spawn.prctl(spawn.NO_NEW_PRIVS, 1)
            os.chdir(f"{base}/work/{self.job['cwd']}")

        self.began = time.monotonic()
        self.main = spawn.start(self.job["argv"], env, {1: out, 2: err}, prepare)

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

    def memory_mb(self, pids: list[int]) -> float:
        if self.group is not None:
            return 0.0
        return used_mb(pids, self.limits["memory_mb"], self.held_mb(pids))

    def held_mb(self, pids: list[int]) -> float:
        """What the run keeps in files of memory, mapped by a process or not."""
        return memory_files_mb(pids)

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
