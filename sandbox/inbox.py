"""Files for a run that is under way: a folder of this host that the run sees read-only, and that a sweep removes when its
owner is dead.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from sandbox import hosted, layout
from sandbox.guard import host
from sandbox.port import Mount


class Inbox:
    """A folder to put files into, whole or not at all. It is this process's until `close`."""

    def __init__(self) -> None:
        self.path: Path = hosted.scratch(layout.token())
        self.path.mkdir(mode=0o700)
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # a sweep takes what is no longer locked
        self.path.chmod(0o755)  # the run has a user of its own

    @property
    def mount(self) -> Mount:
        """What the run must have to read it, at the path that the folder has here."""
        return Mount(self.path)

    def put(self, name: str, data: bytes) -> None:
        """Add a file; whoever looks for it sees all of it."""
        part = self.path / f".{name}.part"
        part.write_bytes(data)
        part.chmod(0o644)
        part.replace(self.path / name)

    def take_back(self, name: str) -> None:
        """Remove a file that was read."""
        (self.path / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder."""
        host.remove(str(self.path))
        os.close(self._lock)
