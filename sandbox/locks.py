"""Locks as files, which may be removed by whoever has them."""

import fcntl
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from threading import Lock


class Held:
    """The locks of what a run uses, by name; they end with this object or its process."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        self._adding = Lock()
        weakref.finalize(self, _close, self._descriptors)

    def add(self, name: str, locked: Callable[[], int | None]) -> None:
        """Take a lock, once."""
        with self._adding:
            if name not in self._descriptors and (descriptor := locked()) is not None:
                self._descriptors[name] = descriptor


def _close(descriptors: dict[str, int]) -> None:
    for descriptor in descriptors.values():
        os.close(descriptor)


def acquire(path: Path, kind: int, pause: Callable[[], None] | None) -> int | None:
    """An open lock file with a lock of this kind of flock. Waits with `pause`, which may raise;
    without it, None when the lock is not to be had at once.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        locked = _try(descriptor, kind)
        if locked and _same(descriptor, path):
            return descriptor
        os.close(descriptor)  # a file that was removed meanwhile is no lock: then the next
        if not locked:
            if pause is None:
                return None
            pause()


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
