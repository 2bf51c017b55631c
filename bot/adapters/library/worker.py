"""A process that indexes sources: a slice a line in, the name of its part a line out, until its input is closed.

So it ends with the process that started it, however that ended; a part it was writing is left beside its place and never read.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path

from bot.adapters.library import shard
from sandbox.cache import Cache
from sandbox.port import SandboxError

FOLDER = "index"
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from bot.adapters.library.worker import serve; serve()"
"""What a fresh interpreter runs, with the search path of the one that starts it: nothing of that one's main program."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Files of one holding that are indexed together; `size` is their bytes."""

    cache: Path
    root: Path
    paths: tuple[str, ...]
    size: int

    def line(self) -> bytes:
        """As it is told to a worker."""
        return json.dumps([str(self.cache), str(self.root), self.paths]).encode() + b"\n"


def made(cache: Path, root: Path, paths: tuple[str, ...]) -> str:
    """The name of the part that holds these files, built when it is not there."""
    files = list(shard.contents(root, paths))
    name = shard.key(files)
    kept = Cache(cache)
    target = kept.folder(FOLDER) / f"{name}.sqlite"
    if not target.exists():
        with kept.guarded(f"index-{name}"):
            if not target.exists():
                shard.build(target, files)
    return name


def serve() -> None:
    """The life of a worker."""
    for line in sys.stdin.buffer:
        cache, root, paths = json.loads(line)
        try:
            answer = {"name": made(Path(cache), Path(root), tuple(paths))}
        except (OSError, SandboxError, sqlite3.Error) as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
