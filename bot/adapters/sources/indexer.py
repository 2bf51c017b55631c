"""Finds the sources of an environment, indexes what is new, and opens an index over all of them."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from bot.adapters.sources import database, trees
from bot.adapters.sources.database import TreeReader
from bot.adapters.sources.store import SqliteStore
from bot.adapters.sources.trees import SourceTree
from bot.errors import Stopped, TransientError
from bot.models.environment import Environment
from bot.rules.code.segment_index import SegmentIndex
from sandbox.cache import Cache
from sandbox.port import SandboxError
from sandbox.subprocesses import Interrupted


@dataclass
class SqliteIndexer:
    """Keeps indexes below `cache`, by content: what two environments share is kept once. Safe to
    use from several threads and processes at once.
    """

    cache: Path

    def open(
        self, environment: Environment, packages: tuple[str, ...], *, cancel: Event | None = None
    ) -> SegmentIndex:
        """The index of an environment. Raises Stopped, or TransientError when it cannot be
        written.
        """
        cache = Cache(self.cache, cancel)
        try:
            found = trees.find(environment, packages)
            return SegmentIndex(SqliteStore([(tree, _reader(cache, tree)) for tree in found]))
        except Interrupted as error:
            raise Stopped("the index was cancelled") from error
        except (SandboxError, OSError, sqlite3.Error) as error:
            raise TransientError(
                f"The index of sources cannot be written: {error}",
                f"Free disk space, or empty {self.cache}.",
            ) from error


def _reader(cache: Cache, tree: SourceTree) -> TreeReader:
    path = database.build(cache, tree)
    try:
        return TreeReader(path)
    except sqlite3.DatabaseError:  # it is damaged: build it again
        path.unlink(missing_ok=True)
        return TreeReader(database.build(cache, tree))
