"""Which sources an environment holds: the Python files of its distributions, and of a repository on its path."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bot.models.context import Origin
from bot.models.environment import Environment

MOST_BYTES = 1_500_000
_MOST_FILES = 20_000
_MOST_TOTAL = 400_000_000
_METADATA_BYTES = 400_000
_RECORD_BYTES = 20_000_000
_SKIPPED = frozenset({".git", ".hg", ".tox", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", ".eggs"})


@dataclass(frozen=True, slots=True)
class Holding:
    """The Python files of one distribution or clone, as paths below `root` with their sizes. `mark` changes when they may have
    changed; "" when only reading them tells.
    """

    package: str
    version: str
    root: Path
    files: tuple[tuple[str, int], ...]
    main: bool
    origin: Origin = "installed"
    mark: str = ""


def find(environment: Environment, packages: Sequence[str]) -> tuple[Holding, ...]:
    """Holdings of the packages first, then of what they need directly; each file is held once."""
    holdings = [*_clones(environment, packages), *_installed(environment, packages)]
    seen: set[str] = set()
    kept, files, total = [], 0, 0
    for holding in holdings:
        own = []
        for path, size in holding.files:
            if path not in seen and files < _MOST_FILES and total + size <= _MOST_TOTAL:
                seen.add(path)
                own.append((path, size))
                files, total = files + 1, total + size
        if own:
            kept.append(holding if len(own) == len(holding.files) else _less(holding, own))
    return tuple(kept)


def _less(holding: Holding, files: list[tuple[str, int]]) -> Holding:
    return Holding(holding.package, holding.version, holding.root, tuple(files), holding.main, holding.origin)


def _installed(environment: Environment, packages: Sequence[str]) -> Iterator[Holding]:
    known: dict[str, tuple[Path, Path]] = {}
    for site in _sites(environment):
        for info in sorted(site.glob("*.dist-info")):
            known.setdefault(canonicalize_name(info.name.removesuffix(".dist-info").partition("-")[0]), (site, info))
    wanted: list[str] = list(dict.fromkeys(canonicalize_name(name) for name in packages))
    needed: dict[str, None] = {}
    for name in wanted:
        if name in known:
            yield _distribution(name, *known[name], main=True)
            needed.update((each, None) for each in _needs(known[name][1]))
    for name in needed:
        if name in known and name not in wanted:
            yield _distribution(name, *known[name], main=False)


def _sites(environment: Environment) -> Iterator[Path]:
    for mount in dict.fromkeys(environment.mounts):
        root = Path(mount)
        if root.name in {"site-packages", "dist-packages"}:
            yield root
        yield from sorted(root.glob("lib/python3*/site-packages"))


def _distribution(name: str, site: Path, info: Path, *, main: bool) -> Holding:
    record = info / "RECORD"
    text = _bounded(record, _RECORD_BYTES)
    listed = (line.rsplit(",", 2)[0].strip('"') for line in text.splitlines())
    files = tuple(_regular(site, sorted({path for path in listed if path.endswith(".py")})))
    changed = record.stat().st_mtime_ns if text else 0
    version = info.name.removesuffix(".dist-info").partition("-")[2]
    return Holding(name, version, site, files, main, mark=f"{info}:{len(text)}:{changed}:{len(files)}" if text else "")


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


def _clones(environment: Environment, packages: Sequence[str]) -> Iterator[Holding]:
    path = environment.variables.get("PYTHONPATH", "")
    roots = [Path(each) for each in path.split(":") if each and Path(each).is_dir()]
    tops = [root for root in roots if not any(root != other and root.is_relative_to(other) for other in roots)]
    for root in dict.fromkeys(tops):
        files = tuple(_regular(root, sorted(_walk(root))))
        yield Holding(packages[0] if packages else root.name, environment.commit[:12], root, files, main=True, origin="clone")


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.endswith(".egg-info"))
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
        if safe[folder] and stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES:
            yield path, found.st_size


def _bounded(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""
