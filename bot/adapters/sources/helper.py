"""A second process that reads the sources of an index from the last to the first, while its caller
reads them from the first to the last.
"""

import hashlib
import json
import marshal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from bot.adapters.sources import database
from bot.adapters.sources.database import Row, Rows
from bot.adapters.sources.trees import SourceTree
from sandbox.cache import Cache
from sandbox.subprocesses import run

_FILES = "files.json"


@contextmanager
def helped(cache: Cache, trees: Sequence[SourceTree]) -> Iterator[Rows]:
    """Gives the rows of a source: the helper's, or else those that it reads itself. The helper ends
    with the block, or when the two have met.
    """
    met = Event()
    with cache.scratch() as folder, ThreadPoolExecutor(1) as pool:

        def rows(path: str, data: bytes) -> list[Row]:
            found = _kept(folder, path, data)
            if not found.exists():
                return database.rows(path, data)
            met.set()  # the rest is there: the helper began at the other end
            prepared: list[Row] = marshal.loads(found.read_bytes())  # noqa: S302  # the helper wrote it
            return prepared

        files = [(str(tree.root), path) for tree in trees for path, _ in tree.files]
        (folder / _FILES).write_text(json.dumps(files))
        pool.submit(run, [sys.executable, "-P", "-m", __name__, folder], env={}, cancel=met)
        try:
            yield rows
        finally:
            met.set()


def prepare(folder: Path) -> None:
    """Write the rows of each source that is listed in a folder into it, the last source first."""
    for root, path in reversed(json.loads((folder / _FILES).read_bytes())):
        data = database.content(Path(root), path)
        if data is not None:
            unfinished = folder / "unfinished"
            unfinished.write_bytes(marshal.dumps(database.rows(path, data)))
            unfinished.replace(_kept(folder, path, data))


def _kept(folder: Path, path: str, data: bytes) -> Path:
    """The place of a source's rows. Two trees may have a file of one path with other content."""
    return folder / hashlib.blake2b(path.encode() + b"\0" + data).hexdigest()


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
