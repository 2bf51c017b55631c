"""A second process that indexes half of the sources, while its caller indexes the other half."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import TypeAdapter

from bot.adapters.sources import database
from bot.adapters.sources.trees import SourceTree
from sandbox.cache import Cache
from sandbox.subprocesses import run

Work = tuple[tuple[SourceTree, Path], ...]
"""Trees and the places of their databases."""

_FILE = "work.json"
_WORK = TypeAdapter(Work)


def build_in_two(cache: Cache, work: Work) -> None:
    """Build the databases of trees in two processes at once. What the helper fails to build is left
    to the caller. Raises Stopped or Interrupted.
    """
    own, others = halves(work)
    with cache.scratch() as folder, ThreadPoolExecutor(1) as pool:
        (folder / _FILE).write_bytes(_WORK.dump_json(others))
        building = pool.submit(_build_all, cache, own)
        command = [sys.executable, "-P", "-m", __name__]
        run([*command, cache.root, folder / _FILE], env={}, cancel=cache.cancel)
        building.result()


def halves(work: Work) -> tuple[Work, Work]:
    """Two parts of about one size: the largest first, each to the smaller part."""
    one: Work = ()
    other: Work = ()
    for each in sorted(work, key=lambda each: -each[0].size):
        if _size(one) <= _size(other):
            one += (each,)
        else:
            other += (each,)
    return one, other


def _size(work: Work) -> int:
    return sum(tree.size for tree, _ in work)


def _build_all(cache: Cache, work: Work) -> None:
    for tree, place in work:
        database.build(cache, tree, place)


if __name__ == "__main__":
    _build_all(Cache(Path(sys.argv[1])), _WORK.validate_json(Path(sys.argv[2]).read_bytes()))
