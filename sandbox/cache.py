"""The folder in which environments are kept, and its caps; and files for a run that is under
way.
"""

import errno
import fcntl
import json
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any

from sandbox import footprint
from sandbox.footprint import DiskFull
from sandbox.port import Mount, SandboxError
from sandbox.subprocesses import Interrupted

# Locks as files, which may be removed by whoever has them.


class LockHolder:
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


# The folder in which environments are kept: locks between builders, private scratch, notes, what
# killed builders left, and what runs hold.

_POLL_S = 0.05
PART = ".part-"
"""How the name of a repository begins that is being made of written code."""


@dataclass
class Cache:
    """One cache folder. Other users (the sandbox's) can read it; builders in other threads and
    processes take turns.
    """

    root: Path
    cancel: Event | None = None
    held: LockHolder = field(default_factory=LockHolder)

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

    def using(self, folder: str, key: str) -> bool:
        """Whether the thing of that name was finished; from now on it is held, and used last."""
        marker = self.root / folder / key / ".complete"
        self.touch(marker, key)
        return marker.exists()

    def touch(self, path: Path, key: str) -> None:
        """Hold what has this key, and note at a file of it that it was used now."""
        self.hold(f"use-{key}")
        with suppress(OSError):
            os.utime(path)

    def recall(self, key: str) -> dict[str, Any] | None:
        """What was noted under a key, or None."""
        try:
            note = json.loads((self.root / "specs" / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return note if isinstance(note, dict) else None

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
                footprint.remove(path)
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
        things went. Locks that nobody has, of what nobody builds, go as well.
        """
        count = 0
        for path, mark, names in self._begun():
            if mark.exists():
                continue
            with suppress(OSError, SandboxError), self.removing(*names) as free:
                if free and path.exists() and not mark.exists():
                    footprint.remove(path)
                    count += 1
        for lock in self.root.glob("locks/*.lock"):
            with suppress(OSError, SandboxError), self.removing(lock.stem):
                pass
        return count

    def _begun(self) -> Iterator[tuple[Path, Path, tuple[str, ...]]]:
        """Folders, whole or not, with the file that says they are whole and the locks of who works
        on them.
        """
        for folder, prefix in (
            ("envs", "env-"),
            ("scratch", ""),
            ("repos", "repo-"),
            ("data", "data-"),
        ):
            for path in self.root.glob(f"{folder}/*"):
                yield path, path / ".complete", (f"{prefix}{path.name}",)
        for path in self.root.glob(f"written/{PART}*"):
            yield path, path / ".complete", (f"written-{path.name.removeprefix(PART)}",)
        for path in self.root.glob("trees/*/"):
            mark, store = path.with_suffix(".complete"), path.name.rpartition("-")[0]
            yield path, mark, (f"repo-{store}", f"use-{path.name}")

    def hold(self, name: str) -> None:
        """Keep others from removing what has this name, as long as `held` lives."""
        with self.space():
            self.held.add(name, partial(self._descriptor, name, fcntl.LOCK_SH))

    @contextmanager
    def sharing(self, name: str) -> Iterator[None]:
        """Do something that others may do too, but during which nothing of it may be removed."""
        descriptor = self._descriptor(name, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    @contextmanager
    def removing(self, *names: str) -> Iterator[bool]:
        """Whether nobody builds or holds what has these names; then nobody does until the end, when
        the locks go too.
        """
        with ExitStack() as stack:
            free = all(stack.enter_context(self._lock(name, wait=False)) for name in names)
            yield free
            for name in names if free else ():
                self._locked(name).unlink(missing_ok=True)

    def _locked(self, name: str) -> Path:
        return self.folder("locks") / f"{name}.lock"

    @contextmanager
    def _lock(self, name: str, *, wait: bool) -> Iterator[bool]:
        descriptor = self._descriptor(name, fcntl.LOCK_EX, wait=wait)
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _descriptor(self, name: str, kind: int, *, wait: bool = True) -> int | None:
        return acquire(self._locked(name), kind, self._pause if wait else None)

    def _pause(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise Interrupted("stopped while waiting for another build")
        time.sleep(_POLL_S)


# Keeps the cache below its caps: what was used last stays, what a run holds stays, and all of it
# can be had again.

_MOST_S = 30.0
UNUSED_CLONES_S = 7 * 86_400.0
"""When a clone goes that nobody uses: it may be of a private repository that the App has left."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something on disk: its bytes, when it was used last, the locks that keep it there, and the
    files that say that it is whole.
    """

    path: Path
    size: int
    used: float
    locks: tuple[str, ...]
    marks: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the cache with a cap of its own, in bytes."""

    name: str
    used: Callable[[Cache], int]
    trim: Callable[[Cache, int], None]


def wheels(cache: Cache) -> Iterator[Item]:
    """Wheels that were built here."""
    for path in cache.root.glob("wheels/*"):
        locks = (f"wheel-{path.name}", f"use-{path.name}")
        yield Item(path, footprint.size_of(path), _last_use(path), locks)


def clones(cache: Cache) -> Iterator[Item]:
    """Histories, commits as files, and repositories of code that was written here."""
    for path in cache.root.glob("repos/*"):
        size = footprint.remembered(path, path)
        yield Item(path, size, _last_use(path), (f"repo-{path.name}",))
    for path in cache.root.glob("trees/*/"):
        marker, store = path.with_suffix(".complete"), path.name.rpartition("-")[0]
        size = footprint.number(marker) or footprint.size_of(path)
        used_at = _last_use(marker) or _last_use(path)
        yield Item(path, size, used_at, (f"repo-{store}", f"use-{path.name}"), (marker,))
    for path in cache.root.glob("written/[!.]*"):
        locks = (f"written-{path.name}", f"use-{path.name}")
        yield Item(path, footprint.size_of(path), _last_use(path), locks)


def indexes(cache: Cache) -> Iterator[Item]:
    """Indexes of sources; who has one open keeps it."""
    for path in cache.root.glob("index/*.sqlite"):
        yield Item(path, footprint.size_of(path), _last_use(path), (f"index-{path.stem}",))


def unpacked_data(cache: Cache) -> Iterator[Item]:
    """Archives of the operator's that were unpacked here."""
    for marker in cache.root.glob("data/*/.complete"):
        path, locks = marker.parent, (f"data-{marker.parent.name}", f"use-{marker.parent.name}")
        size = footprint.number(marker) or 0
        yield Item(path, size, _last_use(marker), locks, (marker,))


def _environments(cache: Cache) -> Iterator[Item]:
    for marker in cache.root.glob("envs/*/.complete"):
        path, locks = marker.parent, (f"env-{marker.parent.name}", f"use-{marker.parent.name}")
        yield Item(path, footprint.noted_size(path), _last_use(marker), locks, (marker,))


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(items: Callable[[Cache], Iterator[Item]]) -> Callable[[Cache], int]:
    return lambda cache: sum(item.size for item in items(cache))


def _trim(items: Callable[[Cache], Iterator[Item]]) -> Callable[[Cache, int], None]:
    def trim(cache: Cache, most: int) -> None:
        all_items = list(items(cache))
        total = sum(item.size for item in all_items)
        for item in sorted(all_items, key=lambda item: item.used):
            if total <= most:
                return
            total -= item.size if _remove(cache, item) else 0

    return trim


def _drop_unused_clones(cache: Cache) -> None:
    for item in clones(cache):
        if time.time() - item.used > UNUSED_CLONES_S:
            _remove(cache, item)


def _remove(cache: Cache, item: Item) -> bool:
    """Whether something went. From the first moment on it does not look whole."""
    with cache.removing(*item.locks) as free:
        if free:
            for mark in item.marks:
                mark.unlink(missing_ok=True)
            if item.path.is_dir():
                footprint.remove(item.path, ignore_errors=False)
            else:
                item.path.unlink(missing_ok=True)
        return free


def _environments_size(cache: Cache) -> int:
    """What environments take, with the unpacked wheels that they share."""
    shared = (footprint.number(note) or 0 for note in cache.root.glob("unpacked/*"))
    return sum(item.size for item in _environments(cache)) + sum(shared)


def _trim_environments(cache: Cache, most: int) -> None:
    if _environments_size(cache) <= most:
        return
    _drop_unshared(cache)
    removals, end = set(), time.monotonic() + _MOST_S
    for item in sorted(_environments(cache), key=lambda item: item.used):
        if _environments_size(cache) <= most or time.monotonic() > end:
            break
        if _remove(cache, item):
            removals.add(item.path.name)
            _drop_unshared(cache)
    _drop_byte_code(cache)
    _forget(cache, removals)


def _drop_unshared(cache: Cache) -> None:
    """Remove unpacked wheels that no environment has, unless something is being installed."""
    with cache.removing("uv") as free:
        for note in cache.root.glob("unpacked/*") if free else ():
            for folder in cache.root.glob(f"uv/archive-v*/{note.name}"):
                about = next(folder.glob("*.dist-info/METADATA"), None)
                if about is None or about.stat().st_nlink == 1:
                    footprint.remove_unpacked(cache.root / "uv", folder)
            if not any(cache.root.glob(f"uv/archive-v*/{note.name}")):
                note.unlink()


def _drop_byte_code(cache: Cache) -> None:
    """Remove byte code that no environment has. What one is about to take it makes anew."""
    for file in cache.root.glob("bytecode/*/*/*"):
        with suppress(OSError):
            if file.stat().st_nlink == 1:
                file.unlink()


def _forget(cache: Cache, ids: Iterable[str]) -> None:
    """Remove what was noted of environments that are gone."""
    ids_to_forget = set(ids)
    for note in cache.root.glob("specs/*.json") if ids_to_forget else ():
        with suppress(OSError, ValueError, LookupError, TypeError):
            if json.loads(note.read_text("utf-8"))["environment"]["id"] in ids_to_forget:
                note.unlink()


AREAS = (
    Area("environments", _environments_size, _trim_environments),
    Area("wheels", _size(wheels), _trim(wheels)),
    Area("clones", _size(clones), _trim(clones)),
    Area("indexes", _size(indexes), _trim(indexes)),
    Area("data", _size(unpacked_data), _trim(unpacked_data)),
)


def keep(
    cache: Cache,
    most: dict[str, int],
    reserve: int,
    on_removal: Callable[[], None] = lambda: None,
) -> None:
    """Bring every area below its cap, in bytes by name; below half of what it takes where the disk
    has less free than the reserve. Clones that were not used for a week go in any case.
    `on_removal` is called before an area is made smaller, which can take minutes on a slow disk.
    """
    with cache.space():
        _drop_unused_clones(cache)
    for area in AREAS:
        limit, size = most[area.name], area.used(cache)
        if shutil.disk_usage(cache.root).free < reserve:
            limit = min(limit, size // 2)
        if size > limit:
            on_removal()
            with cache.space():
                area.trim(cache, limit)


# Files for a run that is under way.


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
