"""One commit of a repository, as a proposal reads it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.models.pull_request import TreeEntry
from bot.rules.regression import paths

_MOST_READ = 262_144


@dataclass(frozen=True)
class RepositoryFiles:
    """One commit of a repository: everything in it, and how to read a file (None: it is no
    text). Reading happens for a handful of small files.
    """

    entries: Sequence[TreeEntry]
    read: Callable[[TreeEntry], str | None]

    def text(self, path: str, most: int = _MOST_READ) -> str | None:
        """The text of a regular file of at most so many bytes; None for everything else."""
        entry = paths.regular(path, self.entries)
        return self.read(entry) if entry is not None and entry.size <= most else None
