"""Where the program runs, seen by its guard: on this host, in bubblewrap, or in the container whose PID 1 the guard is."""

from __future__ import annotations

import fcntl
import os
import select
import time

from sandbox.guard import cgroup, files, spawn, tree

# The shell tells an exit code of 139 from a segmentation fault, which bubblewrap reports alike: it names a signal on its own
# standard error (the guard's, handed in as descriptor 3), where nothing else is written before "=".
SHELL = (
    'exec 4>&2 2>&3 3>&-; command -v -- "$1" >/dev/null || { echo "$1: not found=start" >&2; exit 127; }; '
    '( exec "$@" 2>&4 4>&- ); s=$?; exec 4>&-; echo "=$s" >&2'
)
INFO, BLOCK, SECCOMP, FIRST_DATA = 10, 11, 12, 13
START_S = 20.0
SILENT = {128 + 2, 128 + 13}  # interrupt and broken pipe, which no shell comments

TYPE_CHECKING = False  # typing itself would cost each run ten milliseconds
if TYPE_CHECKING:
    from typing import Any

    Job = dict[str, Any]


class Failed(Exception):
    """The sandbox could not do its work."""


class Place:
    """On this host: a scratch directory, the run's own user where the guard is root, a control group where it may make one."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.limits = job["limits"]
        self.user: tuple[int, int] | None = self._own_user()
        self.group: cgroup.Group | None = None
        self.main = 0
        self.began = time.monotonic()
        self.prepare_folder()

    def _own_user(self) -> tuple[int, int] | None:
        if os.geteuid() != 0:
            return None
        given = self.job.get("user")
        if given:
            return int(given[0]), int(given[1])
        own = 1_879_048_192 + os.getpid()  # a number no account has: runs of the same moment cannot touch each other
        return own, own

    def prepare_folder(self) -> None:
        """Make the scratch directory and put the files in."""
        base = self.job["scratch"]
        os.mkdir(base, 0o700)  # noqa: PTH102
        for name in ("work", "tmp", "home"):
            os.mkdir(f"{base}/{name}", 0o700)  # noqa: PTH102
            if self.user:
                os.chown(f"{base}/{name}", *self.user)
        if self.user:
            os.chown(base, *self.user)
        self.base = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self.base, fcntl.LOCK_EX)  # held for life: a sweep takes what is no longer locked
        self.folder = os.open(f"{base}/work", os.O_RDONLY | os.O_DIRECTORY)
        self.fill()

    def fill(self) -> None:
        """Write the files of the run as its user."""
        with spawn.As(self.user):
            for name, data in self.job["contents"]:
                files.put(self.folder, name, data)

    def join_group(self) -> None:
        """Make the control group, if this machine lets us."""
        group = cgroup.Group(self.job["token"])
        if group.make(self.limits["memory_mb"], self.limits["pids"], self.limits["cpus"]):
            self.group = group

    def start(self, out: int, err: int) -> None:
        """Start the program."""
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
        spawn.prctl(spawn.DUMPABLE, 1)
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as handle:  # noqa: PTH123
            handle.write("1000")
        processes = None
        if self.group is not None:
            self.group.join()
        else:
            uid = self.user[0] if self.user else os.getuid()
            processes = spawn.threads_of(uid) + self.limits["pids"]
            spawn.pin(self.limits["cpus"])
        spawn.limit(self.limits["file_mb"], processes)

    def pids(self) -> list[int]:
        """Every living process of the run."""
        return tree.descendants(os.getpid())

    def oom_kills(self) -> int:
        """How many of them the kernel killed for memory."""
        return self.group.oom_kills() if self.group else 0

    def watches_memory(self) -> bool:
        """Whether the guard itself must hold the memory limit."""
        return self.group is None

    def over_scratch(self) -> bool:
        """Whether the program filled more of the disk than it may."""
        with spawn.As(self.user):
            return bool(files.used_mb(self.base) > self.limits["scratch_mb"])

    def outcome(self, status: int) -> tuple[int | None, int | None]:
        """Exit code and signal from the wait status of the main child."""
        return (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)

    def kill(self) -> bool:
        """End every process of the run."""
        return tree.kill_tree(os.getpid())

    def clean(self) -> None:
        """Leave nothing behind."""
        remove(self.job["scratch"])
        if self.group:
            self.group.remove()


class Container(Place):
    """Inside a container: the guard is PID 1, so the program can neither kill nor stop it, and its end is the end of all."""

    def _own_user(self) -> None:
        return None

    def prepare_folder(self) -> None:
        """The work directory is there already, a sized tmpfs."""
        os.makedirs(self.job["home"], exist_ok=True)  # noqa: PTH103
        self.folder = os.open(self.job["workdir"], os.O_RDONLY | os.O_DIRECTORY)
        self.fill()

    def start(self, out: int, err: int) -> None:
        """Start the program."""
        env = {"HOME": self.job["home"], "TMPDIR": self.job["temporary"], **self.job["env"]}
        null = os.open(os.devnull, os.O_RDONLY)

        def prepare() -> None:
            os.umask(0o022)
            spawn.prctl(spawn.DUMPABLE, 1)
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as handle:  # noqa: PTH123
                handle.write("1000")
            os.nice(10)  # the guard shares the container's processor with what it has to stop
            spawn.limit(self.limits["file_mb"], None)
            os.chdir(self.job["workdir"])

        self.began = time.monotonic()
        self.main = spawn.start(self.job["argv"], env, {0: null, 1: out, 2: err}, prepare)

    def pids(self) -> list[int]:
        """Every process here but the guard."""
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]  # noqa: PTH208

    def oom_kills(self) -> int:
        """What the container's own group counted."""
        return cgroup.oom_kills()

    def watches_memory(self) -> bool:
        """The daemon's group holds it."""
        return False

    def over_scratch(self) -> bool:
        """The tmpfs holds it."""
        return False

    def kill(self) -> bool:
        """End every process of the container but the guard."""
        end = time.monotonic() + 10
        while self.pids() and time.monotonic() < end:
            tree.kill(-1)
            tree.reap()
            time.sleep(0.002)
        return not self.pids()

    def clean(self) -> None:
        """The container goes, and everything with it."""


class Bubble(Place):
    """In bubblewrap: the guard stays outside and reaches the run's work directory by a descriptor it takes at the start."""

    def prepare_folder(self) -> None:
        """The directory is bubblewrap's to make."""
        self.init = 0

    def start(self, out: int, err: int) -> None:
        """Start bubblewrap, put the files in while it waits, and let it go."""
        self.join_group()
        info, info_w = os.pipe()
        block_r, block = os.pipe()
        self.status, status_w = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        handed = {0: null, 1: out, 2: err, 3: status_w, INFO: info_w, BLOCK: block_r}
        options = ["--info-fd", str(INFO), "--block-fd", str(BLOCK)]
        if self.job["seccomp"]:
            handed[SECCOMP] = _memory_file(bytes.fromhex(self.job["seccomp"]))
            options += ["--seccomp", str(SECCOMP)]
        for number, (target, text) in enumerate(self.job["data"], FIRST_DATA):
            handed[number] = _memory_file(text.encode())
            options += ["--ro-bind-data", str(number), target]
        argv = [self.job["bwrap"], *self.job["options"], *options]
        argv += ["--remount-ro", "/", "--", "/bin/sh", "-c", SHELL, "sh", *self.job["argv"]]
        self.main = spawn.start(argv, {"PATH": "/usr/bin:/bin"}, handed, self._before)
        for end in (info_w, block_r, status_w, null):
            os.close(end)
        self._enter(info)
        self.fill()
        self.began = time.monotonic()
        os.write(block, b"x")
        os.close(block)

    def _before(self) -> None:
        self.confine()
        spawn.become(self.user)
        os.chdir("/")

    def _enter(self, info: int) -> None:
        text = b""
        end = time.monotonic() + START_S
        while not text.rstrip().endswith(b"}"):
            ready, _, _ = select.select([info], [], [], max(0.0, end - time.monotonic()))
            part = os.read(info, 4096) if ready else b""
            if not part:
                raise Failed("bubblewrap did not start")
            text += part
        os.close(info)
        self.init = int(text.split(b'"child-pid":')[1].split(b",")[0].strip(b" \n}"))
        path = f"/proc/{self.init}/root{self.job['workdir']}"
        while True:
            folder = self._open_work(path)
            if folder >= 0:
                self.folder = folder
                return
            if os.waitpid(self.main, os.WNOHANG)[0] or time.monotonic() > end:
                raise Failed("bubblewrap ended before the program started")
            time.sleep(0.001)

    def _open_work(self, path: str) -> int:
        """The run's work directory, or -1 while bubblewrap has not mounted it yet (a host may have one of the same name)."""
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            return -1
        about = os.fstatvfs(folder)
        if about.f_blocks * about.f_frsize == self.limits["scratch_mb"] * tree.MIB:
            return folder
        os.close(folder)
        return -1

    def over_scratch(self) -> bool:
        """The tmpfs holds it."""
        return False

    def outcome(self, status: int) -> tuple[int | None, int | None]:
        """Exit code and signal as the shell inside saw them."""
        text = b""
        while select.select([self.status], [], [], 1.0)[0] and (part := os.read(self.status, 65536)):
            text = (text + part)[-65536:]
        said, equals, number = text.decode(errors="replace").rpartition("=")
        if number.strip() == "start":
            raise Failed(f"the program cannot be started: {said}")
        if not equals or not number.strip().isdigit():  # the shell itself was killed; bubblewrap's code stands for its signal
            code = super().outcome(status)[0]
            return (None, code - 128) if code is not None and code > 128 else (None, tree.KILL)
        code = int(number)
        if code > 128 and (said.strip() or code in SILENT):
            return None, code - 128
        return code, None

    def kill(self) -> bool:
        """Killing the first process of the namespace kills every other one in it."""
        if self.init in self.pids():
            tree.kill(self.init)
        return super().kill()

    def clean(self) -> None:
        """Nothing lies on the host but the control group."""
        if self.group:
            self.group.remove()


def remove(path: str) -> None:
    """Remove a tree that a hostile program made: any depth, any permissions, no link followed."""
    commands = [["rm", "-rf", "--one-file-system", "--", path]]
    if os.geteuid() != 0:
        commands.insert(0, ["chmod", "-R", "u+rwX", "--", path])
    for argv in commands:
        pid = os.posix_spawnp(argv[0], argv, {"PATH": "/usr/bin:/bin"}, file_actions=[(os.POSIX_SPAWN_CLOSE, 2)])
        os.waitpid(pid, 0)


def _memory_file(data: bytes) -> int:
    fd = os.memfd_create("reprise")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


PLACES = {"process": Place, "docker": Container, "bwrap": Bubble}
