"""The sources of an environment: the Python files of its distributions, and of a repository on its
path.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bot.models.environment import Environment, Origin, PinSource

MAX_BYTES = 1_500_000
_MAX_FILES = 20_000
_MAX_TOTAL = 400_000_000
_METADATA_BYTES = 400_000
_RECORD_BYTES = 20_000_000
_SKIPPED = frozenset(
    {".git", ".hg", ".tox", ".venv", "venv", "node_modules", "__pycache__"}
    | {"build", "dist", ".eggs"}
)


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The Python files of one distribution or clone, as paths below `root` with their sizes."""

    package: str
    version: str
    root: Path
    files: tuple[tuple[str, int], ...]
    main: bool
    origin: Origin = "installed"

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(size for _, size in self.files)


def find(environment: Environment, packages: Sequence[str]) -> tuple[SourceTree, ...]:
    """The trees of the packages first, then of what they need directly and of the others that were
    asked for. No file is in two.
    """
    seen: set[str] = set()
    kept: list[SourceTree] = []
    total = 0
    for tree in (*_clones(environment, packages), *_installed(environment, packages)):
        own = []
        for path, size in tree.files:
            if path not in seen and len(seen) < _MAX_FILES and total + size <= _MAX_TOTAL:
                seen.add(path)
                own.append((path, size))
                total += size
        kept += [replace(tree, files=tuple(own))] if own else []
    return tuple(kept)


def _installed(environment: Environment, packages: Sequence[str]) -> Iterator[SourceTree]:
    known: dict[str, tuple[Path, Path]] = {}
    for site in _sites(environment):
        for info in sorted(site.glob("*.dist-info")):
            name = info.name.removesuffix(".dist-info").partition("-")[0]
            known.setdefault(canonicalize_name(name), (site, info))
    wanted: list[str] = list(dict.fromkeys(map(canonicalize_name, packages)))
    needed: dict[str, None] = {}
    for name in wanted:
        if name in known:
            yield _distribution(name, *known[name], main=True)
            needed.update(dict.fromkeys(_needs(known[name][1])))
    asked = [each.name for each in environment.packages if each.rung is not PinSource.DEPENDENCY]
    for name in dict.fromkeys((*needed, *map(canonicalize_name, asked))):
        if name in known and name not in wanted:
            yield _distribution(name, *known[name], main=False)


def _sites(environment: Environment) -> Iterator[Path]:
    for mount in dict.fromkeys(environment.mounts):
        root = Path(mount)
        if root.name in {"site-packages", "dist-packages"}:
            yield root
        yield from sorted(root.glob("lib/python3*/site-packages"))


def _distribution(name: str, site: Path, info: Path, *, main: bool) -> SourceTree:
    text = _bounded(info / "RECORD", _RECORD_BYTES)
    listed = (line.rsplit(",", 2)[0].strip('"') for line in text.splitlines())
    files = tuple(_regular(site, sorted({path for path in listed if path.endswith(".py")})))
    version = info.name.removesuffix(".dist-info").partition("-")[2]
    return SourceTree(name, version, site, files, main)


def _needs(info: Path) -> Iterator[str]:
    """Names of what a distribution needs without extras."""
    head = _bounded(info / "METADATA", _METADATA_BYTES).partition("\n\n")[0]
    for line in re.findall(r"(?m)^Requires-Dist:[ \t]*(.{1,500})$", head):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.marker is None or "extra" not in str(requirement.marker):
            yield canonicalize_name(requirement.name)


def _clones(environment: Environment, packages: Sequence[str]) -> Iterator[SourceTree]:
    path = environment.variables.get("PYTHONPATH", "")
    roots = dict.fromkeys(Path(root) for root in path.split(":") if root and Path(root).is_dir())
    for root in roots:
        if not roots.keys().isdisjoint(root.parents):
            continue
        files = tuple(_regular(root, sorted(_walk(root))))
        yield SourceTree(
            packages[0] if packages else root.name,
            environment.commit[:12],
            root,
            files,
            main=True,
            origin="clone",
        )


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(
            name for name in folders if name not in _SKIPPED and not name.endswith(".egg-info")
        )
        below = Path(folder).relative_to(root)
        yield from ((below / name).as_posix() for name in names if name.endswith(".py"))


def _regular(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Plain files below the root that are not too large: no links out of it, no pipes."""
    safe: dict[str, bool] = {}
    whole = root.resolve()
    for path in paths:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or "\0" in path or not path.isprintable():
            continue
        folder = str(pure.parent)
        if folder not in safe:
            safe[folder] = (root / folder).resolve().is_relative_to(whole)
        try:
            found = os.lstat(root / path)
        except (OSError, ValueError):
            continue
        if safe[folder] and stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES:
            yield path, found.st_size


def _bounded(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""
