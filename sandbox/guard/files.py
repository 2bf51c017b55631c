"""Files in and artifacts out, by directory descriptors, so that no link the program plants leads
anywhere else.
"""

from __future__ import annotations

import itertools
import os
import stat

from sandbox.guard import wire

TYPE_CHECKING = False  # typing itself would cost each run ten milliseconds
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

MAX_ENTRIES = 50_000
MAX_FILES = 1_000
MAX_DEPTH = 32


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
    """Everything below `root` but directories: the directory's descriptor, the name in it, the
    path. Bounded in depth.
    """
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
