"""What a repository may cost this host: its history, a commit as files, and git's memory."""

from dataclasses import dataclass, field

from sandbox import subprocesses
from sandbox.footprint import RESERVE, TooLarge

_GIB = 1 << 30
_BLOCK = 4096
_ABOUT = 100
"""No less than what `git ls-tree` prints before a path."""


@dataclass(frozen=True, slots=True)
class CloneBounds:
    """`size` is bytes on disk, of a history and of a commit as files, and `entries` the files and
    folders of each. `file` is the bytes of one file of a commit, `path` of its name, `depth` the
    folders it is in. `memory` is the address space of a git process, `reserve` what stays free on
    the disk.
    """

    size: int = 2 * _GIB
    entries: int = 200_000
    file: int = 256 << 20
    path: int = 1_000
    depth: int = 100
    memory: int = 4 * _GIB
    reserve: int = RESERVE

    @property
    def rlimits(self) -> dict[str, int]:
        """For each git process: a pack is one file."""
        return subprocesses.bounds(self.memory, self.size)


@dataclass
class TreeListing:
    """Counts what `git ls-tree -r -t -l -z` prints. A few small objects can name each other so
    often that the list has no end: raises TooLarge as soon as it passes a bound.
    """

    bounds: CloneBounds
    entries: int = field(default=0, init=False)
    size: int = field(default=0, init=False)
    _rest: bytes = field(default=b"", init=False)

    def __call__(self, piece: bytes) -> None:
        """Take the next piece of the list."""
        *rows, self._rest = (self._rest + piece).split(b"\0")
        for row in rows:
            self._add(row)
        if len(self._rest) > self.bounds.path + _ABOUT:
            self._add(self._rest)

    def _add(self, row: bytes) -> None:
        about, _, path = row.partition(b"\t")
        size = about.rpartition(b" ")[2]
        file = int(size) if size.isdigit() else _BLOCK
        self.entries += 1
        self.size += -(-file // _BLOCK) * _BLOCK
        if file > self.bounds.file:
            raise TooLarge(f"a file of more than {self.bounds.file >> 20} MiB")
        if self.entries > self.bounds.entries:
            raise TooLarge(f"more than {self.bounds.entries:,} files and folders")
        if self.size > self.bounds.size:
            raise TooLarge(f"more than {self.bounds.size / _GIB:g} GiB of data")
        if len(path) > self.bounds.path or path.count(b"/") > self.bounds.depth:
            raise TooLarge(
                f"paths of more than {self.bounds.path:,} bytes or {self.bounds.depth} folders"
            )
