"""Files in and artifacts out, by directory descriptors, so that no link the program plants leads
anywhere else; within bounds, however much it left.
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

    Entries = Iterator[tuple[int, str, str]]
MAX_ENTRIES = 50_000
MAX_FILES = 1_000
MAX_REFUSED = 20
MAX_DEPTH = 32


def put(root: int, name: str, data: bytes) -> None:
    """Write or replace one file below the directory `root`; parents are made, links are not
    followed.
    """
    where, last = _parent(root, name)
    try:
        try:  # noqa: SIM105
            os.unlink(last, dir_fd=where)
        except FileNotFoundError:
            pass
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(last, flags, 0o644, dir_fd=where)
        try:
            wire.write_all(handle, data)
        finally:
            os.close(handle)
    finally:
        os.close(where)


def link(root: int, name: str, target: str) -> None:
    """Make a link below the directory `root` where nothing is yet, parents as for a file."""
    where, last = _parent(root, name)
    try:
        os.symlink(target, last, dir_fd=where)
    finally:
        os.close(where)


def _parent(root: int, name: str) -> tuple[int, str]:
    """A new descriptor of the folder of a file, which is made if need be, and the file's name."""
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
    except BaseException:
        os.close(where)
        raise
    return where, last


def pattern(glob: str) -> re.Pattern[str]:
    """A glob over relative paths: `*` and `?` stay within one name, `**/` spans folders."""
    import re  # only runs that have artifacts pay for it

    out = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob):
        out += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(out + r"\Z", re.DOTALL)


def walk(root: int, entries_left: list[int], prefix: str = "", depth: int = 0) -> Entries:
    """All below `root` but directories, down to `depth` folders: the directory's descriptor, the
    name in it, the path. `left[0]` is how many entries, folders too, may still be looked at.
    """
    with os.scandir(root) as entries:
        some = itertools.islice(entries, entries_left[0])
        children = sorted((one.name, one.is_dir(follow_symlinks=False)) for one in some)
    entries_left[0] -= len(children)
    for name, folder in children:
        if not folder:
            yield root, name, prefix + name
        elif depth and entries_left[0]:
            try:
                deeper = _folder(root, name)
            except OSError:
                continue
            try:
                yield from walk(deeper, entries_left, f"{prefix}{name}/", depth - 1)
            finally:
                os.close(deeper)


def _folder(root: int, name: str) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)


def _walk_glob(
    root: int, glob: str, pattern_of_glob: re.Pattern[str], entries_left: list[int]
) -> Entries:
    """The files that a glob can mean: only folders that can hold one are looked into."""
    folders = glob.split("/")[:-1]
    fixed = list(itertools.takewhile(lambda one: "*" not in one and "?" not in one, folders))
    where = os.dup(root)
    try:
        for name in fixed:
            deeper = _folder(where, name)
            os.close(where)
            where = deeper
        prefix = "".join(f"{name}/" for name in fixed)
        depth = MAX_DEPTH if "**" in glob else len(folders) - len(fixed)
        yield from (
            row for row in walk(where, entries_left, prefix, depth) if pattern_of_glob.match(row[2])
        )
    except OSError:
        return
    finally:
        os.close(where)


def collect(
    root: int, patterns: dict[str, re.Pattern[str]], budget: int
) -> Iterator[tuple[str, bytes | str]]:
    """The bytes of each regular file below `root` that matches one of the globs, at most `budget`
    together; of one that does not fit, the reason.
    """
    entries_left, paths, refused = [MAX_ENTRIES], set[str](), 0
    entries = (
        _walk_glob(root, glob, pattern_of_glob, entries_left)
        for glob, pattern_of_glob in patterns.items()
    )
    for where, name, path in itertools.chain.from_iterable(entries):
        data = None if path in paths else _regular(where, name, budget)
        refused += isinstance(data, str)
        if len(paths) >= MAX_FILES or refused > MAX_REFUSED:
            yield path, f"more than {MAX_FILES} files were left, or too many that do not fit"
            return
        if data is not None:
            budget -= len(data) if isinstance(data, bytes) else 0
            paths.add(path)
            yield path, data
    if not entries_left[0]:
        yield "", f"more than {MAX_ENTRIES} files and folders were left"


def _regular(where: int, name: str, budget: int) -> bytes | str | None:
    """The content of a file, why it is too large, or None for anything but a regular file."""
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
        if about.st_size > budget:
            return f"it has {about.st_size} bytes, {budget} are left for what a run may hand over"
        parts, remaining = [], about.st_size if stat.S_ISREG(about.st_mode) else 0
        while remaining > 0 and (part := os.read(handle, min(remaining, 1 << 20))):
            parts.append(part)
            remaining -= len(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(handle)


def used_mb(root: int) -> float:
    """What lies below `root`, in MiB on disk; stops counting at a bound of entries."""
    blocks = 0
    for where, name, _ in walk(root, [MAX_ENTRIES], depth=MAX_DEPTH):
        try:
            blocks += os.lstat(name, dir_fd=where).st_blocks
        except OSError:
            continue
    return blocks * 512 / 1048576
