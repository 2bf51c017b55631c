"""Files for a run that is under way."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from sandbox.cache import Cache
from sandbox.port import Mount


class Inbox:
    """A folder to put files into, whole or not at all. It is this process's until `close`; the
    cache's sweep takes those of the dead. Raises SandboxError when it cannot be made.

    It lies in the `cache` folder, all that a worker in a container shares with its daemon's host;
    without one, in a temporary folder.
    """

    def __init__(self, cache: Path | None) -> None:
        self._held = ExitStack()
        root = cache or Path(
            self._held.enter_context(tempfile.TemporaryDirectory(prefix="reprise-inbox-"))
        )
        self._cache = Cache(root)
        self.path: Path = self._held.enter_context(self._cache.scratch())
        self.path.chmod(0o755)  # the run has a user of its own

    @property
    def mount(self) -> Mount:
        """What the run must have to read it, at the path that the folder has here."""
        return Mount(self.path)

    def put(self, name: str, data: bytes) -> None:
        """Add a file; whoever looks for it sees all of it."""
        part = self.path / f".{name}.part"
        with self._cache.space():
            part.write_bytes(data)
            part.chmod(0o644)
            part.replace(self.path / name)

    def take_back(self, name: str) -> None:
        """Remove a file that was read."""
        (self.path / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder."""
        self._held.close()
