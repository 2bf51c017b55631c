"""The program in bubblewrap: the guard stays outside and holds a descriptor of the work directory,
which is the run's own; the one of a workspace is the guard's, and each program gets it.
"""

from __future__ import annotations

import _socket  # the public module would cost each run its enumerations
import os
import select
import time

from sandbox.guard import host, spawn, tree, wire
from sandbox.guard.place import Failed

# The shell tells an exit code of 139 from a segmentation fault, which bubblewrap reports alike: it
# names a signal on its own standard error (the guard's, handed in as descriptor 3), where nothing
# else is written before "=".
SHELL = (
    "exec 4>&2 2>&3 3>&-; "
    '[ -z "$0" ] || cd "./$0" || { echo "$0: no folder=start" >&2; exit 127; }; '
    'command -v -- "$1" >/dev/null || { echo "$1: not found=start" >&2; exit '
    "127; }; "
    '( exec "$@" 2>&4 4>&- ); s=$?; exec 4>&-; echo "=$s" >&2'
)
# The shell is a copy that may be executed but not read. The kernel lets no process of the same user
# touch the memory of such a program, so the run cannot say in its place how it ended.
SHELL_PATH = "/guard/sh"
INFO, BLOCK, SECCOMP, SHELL_COPY, FIRST_DATA = 10, 11, 12, 13, 14
START_S = 20.0
SILENT = {128 + 2, 128 + 13}  # interrupt and broken pipe, which no shell comments
NEW_MOUNTS, NEW_USERS = 0x20000, 0x10000000
NO_SETUID, NO_DEVICES, ALL_BELOW, PRIVATE, DETACH = 2, 4, 1 << 14, 1 << 18, 2


class Bubble(host.Host):
    """In namespaces of its own."""

    def prepare_folder(self) -> None:
        """The directory of a run is bubblewrap's to make."""
        self.init = self.status = 0
        if self.job["total_s"]:
            try:
                super().prepare_folder()
            except OSError as error:
                host.remove(self.job["scratch"])
                raise Failed(f"a workspace cannot get a file system ({error})") from error

    def bound_scratch(self, base: str) -> None:
        """Mount a tmpfs of the size of the workspace, which only the guard and what it starts see,
        and which is gone with the last of them.
        """
        flags = NEW_MOUNTS
        if self.user is None:
            flags |= NEW_USERS
        own = {"uid_map": os.getuid(), "gid_map": os.getgid()}
        spawn.prctl(spawn.DUMPABLE, 1)  # the maps belong to root otherwise
        spawn.call("unshare", flags)
        if self.user is None:
            host.write("/proc/self/setgroups", "deny")
            for name, number in own.items():
                host.write(f"/proc/self/{name}", f"{number} {number} 1")
        spawn.prctl(spawn.DUMPABLE, 0)
        spawn.call("mount", b"none", b"/", None, ALL_BELOW | PRIVATE, None)
        size = f"size={self.limits['scratch_mb']}m,mode=0700".encode()
        flags = NO_SETUID | NO_DEVICES
        spawn.call("mount", b"tmpfs", base.encode(), b"tmpfs", flags, size)

    def start(self, out: int, err: int) -> None:
        """Start bubblewrap, put the files in while it waits, and let it go."""
        self.join_group()
        info, info_w = os.pipe()
        block_r, block = os.pipe()
        # A socket cannot be opened again through /proc, as the program could do with a pipe of the
        # shell that runs under its own user.
        if self.status:
            os.close(self.status)  # of the program before
        self.status, status_w = (end.detach() for end in _socket.socketpair())
        descriptors = {3: status_w, INFO: info_w, BLOCK: block_r}
        options = ["--info-fd", str(INFO), "--block-fd", str(BLOCK)]
        if self.job["seccomp"]:
            descriptors[SECCOMP] = _memory_file(bytes.fromhex(self.job["seccomp"]))
            options += ["--seccomp", str(SECCOMP)]
        for number, (target, text) in enumerate(self.job["data"], FIRST_DATA):
            descriptors[number] = _memory_file(text.encode())
            options += ["--ro-bind-data", str(number), target]
        with open("/bin/sh", "rb") as shell:  # noqa: PTH123
            descriptors[SHELL_COPY] = _memory_file(shell.read())
        options += ["--perms", "0111", "--ro-bind-data", str(SHELL_COPY), SHELL_PATH]
        argv = [self.job["bwrap"], *self.job["options"], *options]
        argv += ["--remount-ro", "/", "--", SHELL_PATH, "-c", SHELL, self.job["cwd"]]
        argv += self.job["argv"]
        streams = {1: out, 2: err}
        self.main = spawn.start(
            argv, {"PATH": "/usr/bin:/bin"}, streams | descriptors, self._before
        )
        for end in descriptors.values():
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
        text, end = b"", time.monotonic() + START_S
        while not text.rstrip().endswith(b"}"):
            ready, _, _ = select.select([info], [], [], max(0.0, end - time.monotonic()))
            part = os.read(info, 4096) if ready else b""
            if not part:
                raise Failed("bubblewrap did not start")
            text += part
        os.close(info)
        self.init = int(text.split(b'"child-pid":')[1].split(b",")[0].strip(b" \n}"))
        if self.folder:
            return
        path = f"/proc/{self.init}/root{self.job['workdir']}"
        while (folder := self._open_work(path)) < 0:
            if os.waitpid(self.main, os.WNOHANG)[0] or time.monotonic() > end:
                raise Failed("bubblewrap ended before the program started")
            time.sleep(0.001)
        self.folder = folder

    def _open_work(self, path: str) -> int:
        """The run's work directory, or -1 while bubblewrap has not mounted it yet (a host may
        have one of the same name).
        """
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            return -1
        about = os.fstatvfs(folder)
        if about.f_blocks * about.f_frsize == self.limits["scratch_mb"] * tree.MIB:
            return folder
        os.close(folder)
        return -1

    def held_mb(self, pids: list[int]) -> float:
        """The files of memory, and what lies in the run's tmpfs."""
        megabytes, sizes = super().held_mb(pids), {}
        for path in (self.job["workdir"], self.job["temporary"], "/dev/shm"):  # noqa: S108
            try:
                about = os.statvfs(f"/proc/{self.init}/root{path}")
                device = os.stat(f"/proc/{self.init}/root{path}").st_dev  # noqa: PTH116
            except OSError:
                continue
            # The first two are one in a workspace.
            sizes[device] = (about.f_blocks - about.f_bfree) * about.f_frsize / tree.MIB
        return megabytes + sum(sizes.values())

    def over_scratch(self) -> bool:
        """The tmpfs holds it."""
        return False

    def outcome(self, status: int) -> tuple[int | None, int | None]:
        """Exit code and signal as the shell inside saw them."""
        text = b""
        while select.select([self.status], [], [], 1)[0] and (part := os.read(self.status, 65536)):
            text = (text + part)[-65536:]
        message, equals, number = text.decode(errors="replace").rpartition("=")
        if number.strip() == "start":
            raise Failed(f"the program cannot be started: {message}")
        # The shell itself was killed; bubblewrap's code stands for its signal.
        if not equals or not number.strip().isdigit():
            code = super().outcome(status)[0]
            return (None, code - 128) if code is not None and code > 128 else (None, tree.KILL)
        code = int(number)
        if code > 128 and (message.strip() or code in SILENT):
            return None, code - 128
        return code, None

    def kill(self) -> bool:
        """Killing the first process of the namespace kills every other one in it."""
        tree.kill_if(self.init, lambda pid: pid in self.pids())
        return super().kill()

    def clean(self) -> None:
        """Of a run, nothing lies on the host but the control group."""
        if self.job["total_s"]:
            spawn.call("umount2", self.job["scratch"].encode(), DETACH)
            super().clean()
        elif self.group:
            self.group.remove()


def _memory_file(data: bytes) -> int:
    fd = os.memfd_create("reprise")
    wire.write_all(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


KIND = Bubble
