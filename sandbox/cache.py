"""The folder in which environments are kept: locks between builders, private scratch, notes, what
killed builders left, and files for a run that is under way.
"""

import errno
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from sandbox.port import Mount, SandboxError
from sandbox.subprocesses import Interrupted

_POLL_S = 0.05


class DiskFull(SandboxError):
    """There is no room for the environment."""


@dataclass
class Cache:
    """One cache folder. Other users (the sandbox's) can read it; builders in other threads and
    processes take turns.
    """

    root: Path
    cancel: Event | None = None

    def folder(self, name: str) -> Path:
        """A folder of the cache, made on first use."""
        path = self.root / name
        if not path.is_dir():
            with self.space():
                path.mkdir(mode=0o755, parents=True, exist_ok=True)
                path.chmod(0o755)
                self.root.chmod(0o755)
        return path

    def complete(self, folder: str, key: str) -> bool:
        """Whether the thing of that name was finished."""
        return (self.root / folder / key / ".complete").exists()

    def recall(self, key: str) -> dict[str, Any] | None:
        """What was noted under a key, or None."""
        try:
            noted = json.loads((self.root / "specs" / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return noted if isinstance(noted, dict) else None

    def note(self, key: str, value: dict[str, Any]) -> None:
        """Note something under a key; readers see the old or the new, never a part."""
        target = self.folder("specs") / f"{key}.json"
        with self.space():
            part = target.with_name(f".{target.name}.{os.getpid()}.{time.monotonic_ns()}")
            part.write_text(json.dumps(value), encoding="utf-8")
            part.replace(target)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A private folder that goes away afterwards."""
        name = f"{os.getpid()}-{time.monotonic_ns()}"
        path = self.folder("scratch") / name
        with self.guarded(name):
            path.mkdir()
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
                self._locked(name).unlink(missing_ok=True)

    @contextmanager
    def guarded(self, name: str) -> Iterator[None]:
        """Do something that no other builder does at the same time."""
        with self.space(), self._lock(name, wait=True):
            yield

    @contextmanager
    def space(self) -> Iterator[None]:
        """Say in words when the disk is full or the folder cannot be used."""
        try:
            yield
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise DiskFull("the disk has no space left for the environment") from error
            raise SandboxError(
                f"the cache folder {self.root} cannot be used: {error.strerror}"
            ) from error

    def sweep(self) -> int:
        """Remove what killed processes left behind, as far as this user may; returns how many
        things went.
        """
        gone = 0
        for path in [*self.root.glob("envs/*"), *self.root.glob("scratch/*")]:
            if (path / ".complete").exists():
                continue
            shared = path.parent.name == "envs"
            with (
                suppress(OSError, SandboxError),
                self._lock(f"env-{path.name}" if shared else path.name, wait=False) as held,
            ):
                if held and path.exists() and not (path / ".complete").exists():
                    shutil.rmtree(path, ignore_errors=True)
                    gone += 1
                if held and not shared and not path.exists():
                    # Nobody waits for the lock of a scratch. That of an environment stays: who
                    # waits for it would hold a file that is gone, and the next one another.
                    self._locked(path.name).unlink(missing_ok=True)
        return gone

    def _locked(self, name: str) -> Path:
        return self.folder("locks") / f"{name}.lock"

    @contextmanager
    def _lock(self, name: str, *, wait: bool) -> Iterator[bool]:
        with self._locked(name).open("a") as stream:
            held = _try_lock(stream.fileno())
            while wait and not held:
                if self.cancel is not None and self.cancel.is_set():
                    raise Interrupted("stopped while waiting for another build")
                time.sleep(_POLL_S)
                held = _try_lock(stream.fileno())
            yield held


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
