"""The newest release of a library that has a name which the installed one lacks, read in the
archives of the index.
"""

import ast
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from packaging.utils import canonicalize_name

from bot.environment import index as environment_index
from bot.environment.index import IndexRelease, PackageIndex
from bot.environment.library_names import LibraryName
from bot.kernel.errors import IndexUnreachable
from bot.kernel.source.syntax import module_of

_SETTLING = timedelta(days=31)
"""How much newer than a report a release may be: who runs a program answers for a while."""
_SECONDS, _MOST_READ, _MOST_FOLLOWED = 60.0, 14, 30
_MOST_RECORD = 4 * 1024 * 1024


def distribution_of(site: Path, module: str) -> tuple[str, str]:
    """The installed distribution, and its version, that has a module, by its list of files; ("",
    "") for none.
    """
    top = module.partition(".")[0]
    starts = (f"{top}/", f"{top}.py,")
    for record in sorted(site.glob("*.dist-info/RECORD")):
        with record.open("rb") as file:
            lines = file.read(_MOST_RECORD).decode("utf-8", "replace").splitlines()
        if any(line.startswith(starts) for line in lines):
            name, _, version = record.parent.name.removesuffix(".dist-info").rpartition("-")
            return canonicalize_name(name), version
    return "", ""


def release_with(
    index: PackageIndex,
    distribution: str,
    installed_version: str,
    lacking: LibraryName,
    before: datetime | None,
) -> str:
    """The version of the newest release of a distribution that has what the installed one lacks,
    of those from before a day and the month after it; "" when none that was read has it.
    """
    try:
        releases = [row for row in index.releases(distribution) if _may_be_meant(row, before)]
    except IndexUnreachable:
        return ""
    return _Search(index, lacking).newest(releases, installed_version)


def _may_be_meant(release: IndexRelease, before: datetime | None) -> bool:
    is_late = before and release.uploaded and release.uploaded > before + _SETTLING
    return not (release.yanked or release.version.is_prerelease or is_late)


class _Search:
    """Reads as few releases as it can: names come and go once, as a rule."""

    def __init__(self, index: PackageIndex, lacking: LibraryName) -> None:
        self.index, self.lacking = index, lacking
        self.end, self.answers = time.monotonic() + _SECONDS, dict[str, bool]()

    def newest(self, releases: Sequence[IndexRelease], installed_version: str) -> str:
        """The version of the newest release that has the name."""
        versions = [str(row.version) for row in releases]
        at = versions.index(installed_version) if installed_version in versions else len(versions)
        if at + 1 < len(releases) and self._has(releases[-1]):
            return versions[-1]
        lower, upper, step, longest = at - 1, at, 1, max(4, at // 8)
        while lower >= 0 and not self._has(releases[lower]):
            if self._is_over():
                return ""
            upper, step = lower, min(step * 2, longest)
            lower = max(lower - step, 0) if lower else -1
        if lower < 0:
            return ""
        while upper - lower > 1 and not self._is_over():
            middle = (lower + upper) // 2
            lower, upper = (middle, upper) if self._has(releases[middle]) else (lower, middle)
        return versions[lower]

    def _is_over(self) -> bool:
        return len(self.answers) >= _MOST_READ or time.monotonic() > self.end

    def _has(self, release: IndexRelease) -> bool:
        version = str(release.version)
        if version not in self.answers:
            self.answers[version] = False
            try:
                with self.index.archive_of(release) as (paths, text):
                    self.answers[version] = has_name(self.lacking, paths, text)
            except (*environment_index.UNREADABLE, IndexUnreachable):
                pass
        return self.answers[version]


def has_name(
    lacking: LibraryName, paths: Sequence[str], text: Callable[[str], str], depth: int = 0
) -> bool:
    """Whether the files of a distribution, by their paths and texts, have a name: bound at the top
    of its module, as a submodule, through a star import, or in the words of a module that makes
    its names as it runs.
    """
    path = lacking.module.replace(".", "/")
    files = {*paths}
    if not lacking.name:
        return any(row == f"{path}.py" or row.startswith((f"{path}/", f"{path}.")) for row in files)
    own = next((row for row in (f"{path}.py", f"{path}/__init__.py") if row in files), "")
    inside = f"{path}/{lacking.name}"
    if any(row == f"{inside}.py" or row.startswith((f"{inside}/", f"{inside}.")) for row in files):
        return True
    if not own:
        return False
    module = module_of(text(own))
    if lacking.name in _names(module):
        return True
    is_package = own.endswith("__init__.py")
    stars = _starred(module, lacking.module, is_package=is_package) if depth < 2 else iter(())
    return any(
        has_name(LibraryName(star, lacking.name), paths, text, depth + 1)
        for star in list(stars)[:_MOST_FOLLOWED]
    )


def _names(module: ast.Module) -> set[str]:
    """The names that a module binds, in conditions and loops too, and the texts that may be names
    it offers: those of lists and of what answers for attributes.
    """
    names, waiting = set[str](), list[ast.AST](module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            if node.name != "__getattr__":
                continue
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
        waiting.extend(ast.iter_child_nodes(node))
    return names


def _starred(module: ast.Module, name: str, *, is_package: bool) -> Iterator[str]:
    """The modules of which a module takes over every name."""
    parts = name.split(".")
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and any(row.name == "*" for row in node.names):
            up = parts[: len(parts) - node.level + is_package] if node.level else []
            yield ".".join([*up, *filter(None, [node.module])])
