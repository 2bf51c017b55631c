"""What things in the cache take of the disk, noted when they are made: to walk through all of them
would take minutes.
"""

import os
from contextlib import suppress
from pathlib import Path

_NOTE = ".size"


def note(environment: Path) -> None:
    """Note what an environment takes for itself: not what it shares with the installer's cache."""
    (environment / _NOTE).write_text(str(taken(environment, own=True)), encoding="ascii")


def noted(environment: Path) -> int | None:
    """The bytes that were noted; None for an environment of an older release."""
    return number(environment / _NOTE)


def remembered(folder: Path, changed: Path) -> int:
    """The bytes below a folder, counted again only when `changed`, which is written or touched last
    whenever the folder changes, is newer than the note of them.
    """
    note = folder / _NOTE
    with suppress(OSError):
        new = note.stat().st_mtime_ns < changed.stat().st_mtime_ns
        if not new and (size := noted(folder)) is not None:
            return size
    found = taken(folder)
    with suppress(OSError):
        about = folder.stat()
        note.write_text(str(found), encoding="ascii")
        os.utime(folder, ns=(about.st_atime_ns, about.st_mtime_ns))  # it was not used
    return found


def number(path: Path) -> int | None:
    """The number that a file holds, None when it is missing or damaged."""
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None


def taken(root: Path, *, own: bool = False) -> int:
    """The bytes on disk below a folder, or of a file; `own` leaves out what has other names too,
    except byte code: the first environment that has it counts it.
    """
    if root.is_file():
        return root.stat().st_blocks * 512
    found = 0
    for folder, folders, files in os.walk(root):
        found += 4096 * len(folders)
        for name in files:
            with suppress(OSError):
                about = Path(folder, name).lstat()
                others = about.st_nlink - (2 if name.endswith(".pyc") else 1)
                found += about.st_blocks * 512 if not own or others <= 0 else 0
    return found
