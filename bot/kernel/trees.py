"""The files of a repository at one commit, for a program that runs in it."""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from bot.kernel.bug import Frame

Tree = Mapping[str, bytes]
"""The files of a repository by their path in it."""

MOST_FILES, MOST_BYTES = 4_000, 64 * 2**20


_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python")


def tree_files(frame: Frame, tree: Tree) -> list[str]:
    """The Python files of a tree that a frame may be in: its path ends with theirs, wherever the
    reporter's clone lies; a path from a folder of it may be the end of that of one file.
    """
    path = frame.path.replace("\\", "/").removeprefix("./")
    if any(part in path for part in _INSTALLED):
        return []
    files = [one for one in tree if one.endswith(".py")]
    paths = [one for one in files if f"/{path}".endswith(f"/{one}")]
    below = [one for one in files if path and one.endswith(f"/{path}")]
    return paths or (below if len(below) == 1 else [])


@lru_cache(maxsize=2)
def read_tree(folder: str) -> dict[str, bytes]:
    """The regular files below a folder, by their path in it; no link is followed. Of a large tree
    the files that come first: at most `MOST_FILES`, of `MOST_BYTES` together. The folder is that of
    one commit and does not change; "" is none.
    """
    files: dict[str, bytes] = {}
    if not folder:
        return files
    left, root = MOST_BYTES, Path(folder)
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            path = Path(place) / name
            if path.is_symlink() or not path.is_file():
                continue
            left -= path.stat().st_size
            if left < 0 or len(files) == MOST_FILES:
                return files
            files[path.relative_to(root).as_posix()] = path.read_bytes()
    return files
