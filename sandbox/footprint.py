"""What things take of the disk, noted when they are made, and limits on what unpacking may cost."""

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import subprocesses
from sandbox.guard import host
from sandbox.port import SandboxError

# What things in the cache take of the disk, noted when they are made: to walk through all of them
# would take minutes. And the limits on what a program may still put there.

RESERVE = 2 << 30
"""Bytes of the disk that stay free, whatever is fetched, checked out or unpacked."""

_GIB = 1 << 30
_FOLDER = 4096
_NOTE = ".size"
_EVERY_S = 0.5
_SHARE = 0.1


class TooLarge(SandboxError):
    """Something would take more of this host than it may; the message says what and how much."""


class DiskFull(SandboxError):
    """Less of the disk is free than is needed, or than must stay free."""


@dataclass
class FolderWatch:
    """Looks after programs that fill a folder: it may hold `most` bytes on disk and so many
    `entries`, files and folders, while `reserve` bytes of the disk stay free.
    """

    folder: Path
    most: int
    entries: int
    reserve: int = RESERVE
    _next: float = field(default=0.0, init=False)

    def __call__(self, pid: int) -> None:  # noqa: ARG002
        """Look again when the last look is some time ago, so that most of the time goes into the
        work.
        """
        began = time.monotonic()
        if began >= self._next:
            self.look()
            end = time.monotonic()
            self._next = end + max(_EVERY_S, (end - began) / _SHARE)

    def look(self) -> int:
        """The bytes on disk. Raises TooLarge and DiskFull."""
        ensure_room(self.folder, self.reserve)
        size = 0
        for count, entry in enumerate(entries(self.folder), 1):
            size += _bytes(entry)
            if size > self.most:
                raise TooLarge(f"more than {self.most / _GIB:g} GiB of data")
            if count > self.entries:
                raise TooLarge(f"more than {self.entries:,} files and folders")
        return size


def ensure_room(folder: Path, reserve: int = RESERVE) -> None:
    """Raise DiskFull when less of the disk is free than must stay free."""
    free = shutil.disk_usage(folder).free
    if free < reserve:
        raise DiskFull(
            f"only {free / _GIB:.1f} GiB of the disk are free, "
            f"and {reserve / _GIB:.1f} GiB must stay so"
        )


def note(environment: Path) -> None:
    """Note what an environment takes for itself: not what it shares with the installer's cache."""
    (environment / _NOTE).write_text(str(size_of(environment, own=True)), encoding="ascii")


def noted_size(environment: Path) -> int:
    """The bytes that were noted."""
    return number(environment / _NOTE) or 0


def remembered(folder: Path, marker: Path) -> int:
    """The bytes below a folder, counted again only when `changed`, which is written or touched last
    whenever the folder changes, is newer than the note of them.
    """
    note = folder / _NOTE
    with suppress(OSError):
        new = note.stat().st_mtime_ns < marker.stat().st_mtime_ns
        if not new and (size := number(note)) is not None:
            return size
    total = size_of(folder)
    with suppress(OSError):
        about = folder.stat()
        note.write_text(str(total), encoding="ascii")
        os.utime(folder, ns=(about.st_atime_ns, about.st_mtime_ns))  # it was not used
    return total


def number(path: Path) -> int | None:
    """The number that a file holds, None when it is missing or damaged."""
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None


def size_of(root: Path, *, own: bool = False) -> int:
    """The bytes on disk below a folder, or of a file; `own` leaves out what has other names too,
    except byte code: the first environment that has it counts it.
    """
    if root.is_file():
        return root.stat().st_blocks * 512
    return sum(_bytes(entry, own=own) for entry in entries(root))


def entries(root: Path) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder, links not followed, however deep: who names the folders may nest
    more of them than Python nests calls.
    """
    folders = [str(root)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as inside:
            for entry in inside:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                yield entry


def _bytes(entry: os.DirEntry[str], *, own: bool = False) -> int:
    with suppress(OSError):
        if entry.is_dir(follow_symlinks=False):
            return _FOLDER
        about = entry.stat(follow_symlinks=False)
        others = about.st_nlink - (2 if entry.name.endswith(".pyc") else 1)
        return about.st_blocks * 512 if not own or others <= 0 else 0
    return 0


def remove(folder: Path, *, ignore_errors: bool = True) -> None:
    """Remove a folder, however deep. Without `ignore_errors` an OSError says why it stays."""
    try:
        shutil.rmtree(folder, ignore_errors=ignore_errors)
    except RecursionError:
        host.remove(str(folder))


# Limits on what unpacking wheels may cost this host. The installer unpacks each into a folder of
# its cache; those folders are measured while it works and when it has ended.

_INFO = re.compile(r"([A-Za-z0-9._]+)-([^-/]+)\.dist-info")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one wheel may unpack to, in bytes and files; `ratio` counts beyond `harmless` bytes.
    `reserve` is what stays free on the disk, `memory` the installer's own.
    """

    most: int = 8 * _GIB
    files: int = 200_000
    ratio: int = 100
    harmless: int = 64 << 20
    reserve: int = RESERVE
    memory: int = 4 * _GIB

    @property
    def rlimits(self) -> dict[str, int]:
        """For the installer itself: no single file may be larger than a whole wheel."""
        return subprocesses.bounds(self.memory, self.most)


@dataclass
class UnpackWatch:
    """Looks after one installation into `cache`. `sizes` are those of the packed wheels by name,
    0 where that is unknown.
    """

    cache: Path
    sizes: Mapping[str, int]
    bounds: Bounds
    _next: float = field(default=0.0, init=False)
    _seen: set[Path] = field(default_factory=set, init=False)

    def __call__(self, pid: int) -> None:
        """Look at what the installer is writing. Raises TooLarge or DiskFull, which ends it.
        Nothing is removed meanwhile: the installer could move the rest to its place, and take it
        for whole.
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        self.room()
        for folder in _folders_written(pid, self.cache):
            self._seen.add(folder)
            with suppress(FileNotFoundError):  # it is whole, and has its place now
                self._weighed(folder)

    def room(self) -> None:
        """Raise DiskFull when the disk is too full to go on."""
        ensure_room(self.cache, self.bounds.reserve)

    def ended(self) -> None:
        """Look at the wheels that are new; what is too large is removed. Others, of installations
        at the same time, are theirs to judge.
        """
        folder_of_notes = self.cache.parent / "unpacked"
        folder_of_notes.mkdir(exist_ok=True)
        for folder in self.cache.glob("archive-v*/*"):
            note = folder_of_notes / folder.name
            with suppress(FileNotFoundError):  # others may remove it meanwhile
                if not note.exists() and _name_of_wheel(folder) in self.sizes:
                    note.write_text(str(self._judged(folder)), encoding="ascii")

    def stopped(self) -> None:
        """Remove what an installer left that was ended for it, wherever it is by now."""
        for folder in self._seen:
            remove(folder)
        with suppress(TooLarge):
            self.ended()

    def _judged(self, folder: Path) -> int:
        """The bytes in the folder of one wheel, which is removed when they are too many. Raises
        TooLarge.
        """
        try:
            return self._weighed(folder)
        except TooLarge:
            remove_unpacked(self.cache, folder)
            raise

    def _weighed(self, folder: Path) -> int:
        """The bytes in the folder of one wheel. Raises TooLarge."""
        name = _name_of_wheel(folder)
        packed_size = self.sizes.get(name, max(self.sizes.values(), default=0))
        most = self.bounds.most
        if packed_size:
            most = min(most, max(self.bounds.harmless, self.bounds.ratio * packed_size))
        size = count = 0
        for entry in entries(folder):
            with suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    size += entry.stat(follow_symlinks=False).st_size
                    count += 1
            if size > most or count > self.bounds.files:
                raise TooLarge(f"{name} unpacks to more than {self._limit(size > most, most)}")
        return size

    def _limit(self, by_size: bool, most: int) -> str:
        if not by_size:
            return f"{self.bounds.files} files, the limit for a package"
        if most < self.bounds.most:
            return (
                f"{most >> 20} MiB: the limit is {self.bounds.ratio} times its packed size, "
                f"or {self.bounds.harmless >> 20} MiB"
            )
        return f"{most >> 20} MiB, the limit for a package"


def remove_unpacked(cache: Path, folder: Path) -> None:
    """Remove an unpacked wheel, and what the installer notes of its package: it does not look
    whether that is still there.
    """
    name = _name_of_wheel(folder)
    for depth in ("*", "*/*"):
        for notes in cache.glob(f"wheels-v*/{depth}/{name}"):
            remove(notes)
    remove(folder)


def _folders_written(pid: int, cache: Path) -> set[Path]:
    """The folders right below the cache in which a process has files open: others install at the
    same time.
    """
    folders = set()
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = link.readlink()
        except OSError:
            continue
        if target.is_relative_to(cache) and target != cache:
            folders.add(cache / target.relative_to(cache).parts[0])
    return {folder for folder in folders if folder.name.startswith(".tmp") and folder.is_dir()}


def _name_of_wheel(folder: Path) -> str:
    """The package in the folder, or a file of it while its name is not there yet."""
    inside = sorted(path.name for path in folder.iterdir())
    infos = (match for name in inside if (match := _INFO.fullmatch(name)))
    info = next(infos, None)
    if info:
        return re.sub(r"[-_.]+", "-", info[1]).lower()
    return f"a package with {inside[0][:80]}" if inside else "a package"
