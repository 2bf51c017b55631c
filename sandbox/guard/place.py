"""Where the program runs, seen by its guard: what every kind of place has in common; and files in
and artifacts out, by directory descriptors, so that no link the program plants leads anywhere
else.
"""

from __future__ import annotations

import itertools
import os
import stat
import time

from sandbox.guard import spawn, tree, wire

TYPE_CHECKING = False  # typing itself would cost each run ten milliseconds
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from typing import Any

    Job = dict[str, Any]
MAX_ENTRIES = 50_000
MAX_FILES = 1_000
MAX_DEPTH = 32


class Failed(Exception):
    """The sandbox could not do its work."""


class RunLocation:
    """A place for one run. Parts that only one kind needs are in its own file, and only that
    file travels with the guard.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.limits = job["limits"]
        self.user = self.own_user()
        self.main = self.folder = 0
        self.began = time.monotonic()
        self.prepare_folder()

    def own_user(self) -> tuple[int, int] | None:
        """The user to turn into, None to stay who we are."""
        return None

    def prepare_folder(self) -> None:
        """Make the work directory and put the files in."""

    def fill(self) -> None:
        """Write the files of the run as its user."""
        with spawn.As(self.user):
            for name, data in self.job["contents"]:
                put(self.folder, name, data)

    def start(self, out: int, err: int) -> None:
        """Start the program with its output on these descriptors."""
        raise NotImplementedError

    def pids(self) -> list[int]:
        """Every living process of the run."""
        return tree.descendants(os.getpid())

    def oom_kills(self) -> int:
        """How many of them the kernel killed for memory."""
        return 0

    def watches_memory(self) -> bool:
        """Whether the guard itself must hold the memory limit."""
        return False

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


def put(root: int, name: str, data: bytes) -> None:
    """Write one file below the directory `root`; parents are made, links are not followed."""
    *folders, last = name.split("/")
    where = os.dup(root)
    try:
        for folder in folders:
            try:  # noqa: SIM105  contextlib would be one more import at each start
                os.mkdir(folder, 0o755, dir_fd=where)
            except FileExistsError:
                pass
            deeper = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=where)
            os.close(where)
            where = deeper
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(last, flags, 0o644, dir_fd=where)
        try:
            wire.write_all(handle, data)
        finally:
            os.close(handle)
    finally:
        os.close(where)


def pattern(glob: str) -> re.Pattern[str]:
    """A glob over relative paths: `*` and `?` stay within one name, `**/` spans folders."""
    import re  # only runs that have artifacts pay for it

    out = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob):
        out += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(out + r"\Z", re.DOTALL)


def walk(root: int, prefix: str = "", depth: int = 0) -> Iterator[tuple[int, str, str]]:
    """All below `root` but directories: the directory's descriptor, the name in it, the path."""
    with os.scandir(root) as entries:
        some = itertools.islice(entries, MAX_ENTRIES)
        found = sorted((one.name, one.is_dir(follow_symlinks=False)) for one in some)
    for name, folder in found:
        if not folder:
            yield root, name, prefix + name
        elif depth < MAX_DEPTH:
            try:
                deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
            except OSError:
                continue
            try:
                yield from walk(deeper, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(deeper)


def collect(root: int, patterns: list[re.Pattern[str]], budget: int) -> Iterator[tuple[str, bytes]]:
    """Regular files below `root` that match, at most `budget` bytes together; what does not fit
    is left out.
    """
    given = 0
    for where, name, path in itertools.islice(walk(root), MAX_ENTRIES):
        if any(known.match(path) for known in patterns):
            data = _regular(where, name, budget)
            if data is not None:
                budget -= len(data)
                given += 1
                yield path, data
        if given >= MAX_FILES:
            return


def _regular(where: int, name: str, budget: int) -> bytes | None:
    try:
        if not stat.S_ISREG(os.lstat(name, dir_fd=where).st_mode):
            return None
        handle = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=where
        )
    except OSError:
        return None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > budget:
            return None
        parts, left = [], about.st_size
        while left > 0 and (part := os.read(handle, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(handle)


def used_mb(root: int) -> float:
    """What lies below `root`, in MiB on disk; stops counting at a bound of entries."""
    blocks = 0
    for where, name, _ in itertools.islice(walk(root), MAX_ENTRIES):
        try:
            blocks += os.lstat(name, dir_fd=where).st_blocks
        except OSError:
            continue
    return blocks * 512 / 1048576
