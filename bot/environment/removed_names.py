"""The newest release of a library that has a name which the installed one lacks, read in the
archives of the index.
"""

import ast
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from bot.environment import index as environment_index
from bot.environment.index import IndexRelease, PackageIndex
from bot.kernel.environment import LibraryName
from bot.kernel.errors import IndexUnreachable
from bot.kernel.source.syntax import module_of

_SETTLING = timedelta(days=31)
"""How much newer than a report a release may be: who runs a program answers for a while."""
_SECONDS, _MOST_READ, _MOST_FOLLOWED = 60.0, 14, 30
_MOST_RECORD = 4 * 1024 * 1024
_MOST_TOPS, _MOST_FILES, _MOST_DEFINING = 12, 4_000, 4


class Located(NamedTuple):
    """An installed distribution, and the files of it that define what was looked for."""

    distribution: str
    version: str
    paths: tuple[str, ...] = ()


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


def located(site: Path, lacking: LibraryName) -> Located | None:
    """Where the installed packages have what a program asks for something that is not there: the
    module, or files that define the class or the function. None where no distribution has it, or
    where it is there after all.
    """
    if lacking.module:
        module = lacking.importer.replace("/", ".") or lacking.module
        distribution, version = distribution_of(site, module)
        return Located(distribution, version) if distribution else None
    for top in lacking.tops[:_MOST_TOPS]:
        paths = _defining(site, top, lacking.name)
        if paths:
            distribution, version = distribution_of(site, top)
            texts = {path: (site / path).read_text("utf-8", "replace") for path in paths}
            is_there = _has_part(lacking, paths, texts.__getitem__)
            return Located(distribution, version, paths) if distribution and not is_there else None
    return None


def _defining(site: Path, top: str, name: str) -> tuple[str, ...]:
    """The files of a package that define a class or a function at their top."""
    mark = re.compile(rb"^(?:class|def) " + re.escape(name).encode() + rb"\b", re.MULTILINE)
    files = islice(sorted((site / top).rglob("*.py")), _MOST_FILES)
    paths = (
        path
        for path in files
        if path.stat().st_size <= _MOST_RECORD and mark.search(path.read_bytes())
    )
    plain = (path.relative_to(site).as_posix() for path in paths)
    return tuple(islice((path for path in plain if "/tests/" not in path), _MOST_DEFINING))


def release_with(
    index: PackageIndex,
    place: Located,
    lacking: LibraryName,
    before: datetime | None,
) -> str:
    """The version of the newest release of a distribution that has what the installed one lacks,
    of those from before a day and the month after it; "" when none that was read has it. A library
    that asks for a whole module which is not there gets its nearest later release that does not.
    """
    distribution, installed_version = place.distribution, place.version
    is_about_module = bool(lacking.importer) and not lacking.name
    last_day = None if is_about_module else before
    try:
        releases = [row for row in index.releases(distribution) if _may_be_meant(row, last_day)]
    except IndexUnreachable:
        return ""
    search = _Search(index, lacking, place.paths)
    select = search.next_after if is_about_module else search.newest
    return select(releases, installed_version)


def _may_be_meant(release: IndexRelease, before: datetime | None) -> bool:
    is_late = before and release.uploaded and release.uploaded > before + _SETTLING
    return not (release.yanked or release.version.is_prerelease or is_late)


class _Search:
    """Reads as few releases as it can: names come and go once, as a rule."""

    def __init__(
        self, index: PackageIndex, lacking: LibraryName, defining: Sequence[str] = ()
    ) -> None:
        self.index, self.lacking, self.defining = index, lacking, defining
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

    def next_after(self, releases: Sequence[IndexRelease], installed_version: str) -> str:
        """The version of the nearest later release that has it."""
        versions = [str(row.version) for row in releases]
        lower = (
            versions.index(installed_version) if installed_version in versions else len(versions)
        )
        upper = len(releases) - 1
        if lower >= upper or not self._has(releases[upper]):
            return ""
        while upper - lower > 1 and not self._is_over():
            middle = (lower + upper) // 2
            lower, upper = (lower, middle) if self._has(releases[middle]) else (middle, upper)
        return versions[upper]

    def _is_over(self) -> bool:
        return len(self.answers) >= _MOST_READ or time.monotonic() > self.end

    def _has(self, release: IndexRelease) -> bool:
        version = str(release.version)
        if version not in self.answers:
            self.answers[version] = False
            try:
                with self.index.archive_of(release) as (paths, text):
                    self.answers[version] = self._fits(paths, text)
            except (*environment_index.UNREADABLE, IndexUnreachable):
                pass
        return self.answers[version]

    def _fits(self, paths: Sequence[str], text: Callable[[str], str]) -> bool:
        if self.lacking.importer:
            return bool(paths) and does_without(self.lacking, text(self.lacking.importer))
        if self.defining:
            return _has_part(self.lacking, self.defining, text)
        return has_name(self.lacking, paths, text)


def does_without(lacking: LibraryName, text: str) -> bool:
    """Whether a file of another library does not import what is lacking; of a whole module, not
    without an attempt or a condition.
    """
    if not lacking.name:
        top = lacking.module.partition(".")[0]
        return not any(top in _tops_of(node) for node in module_of(text).body)
    rows = (node for node in ast.walk(module_of(text)) if isinstance(node, ast.ImportFrom))
    return lacking.name not in {alias.name for node in rows for alias in node.names}


def _tops_of(node: ast.stmt) -> set[str]:
    """The packages that an import statement asks for."""
    if isinstance(node, ast.ImportFrom):
        return set() if node.level else {(node.module or "").partition(".")[0]}
    names = node.names if isinstance(node, ast.Import) else []
    return {alias.name.partition(".")[0] for alias in names}


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
        has_name(LibraryName(module=star, name=lacking.name), paths, text, depth + 1)
        for star in list(stars)[:_MOST_FOLLOWED]
    )


def _has_part(lacking: LibraryName, paths: Sequence[str], text: Callable[[str], str]) -> bool:
    """Whether one of the files has the class or function with the attribute, the keyword or room
    for the positional arguments.
    """
    for path in paths:
        for node in module_of(text(path)).body:
            if getattr(node, "name", "") != lacking.name:
                continue
            if isinstance(node, ast.ClassDef) and lacking.attribute:
                if lacking.attribute in _names(ast.Module(node.body, [])):
                    return True
                continue
            if any(_takes(function, lacking) for function in _called(node)):
                return True
    return False


def _called(node: ast.stmt) -> Iterator[ast.FunctionDef]:
    """What a call of a function or a class runs."""
    if isinstance(node, ast.FunctionDef):
        yield node
    if isinstance(node, ast.ClassDef):
        functions = (row for row in node.body if isinstance(row, ast.FunctionDef))
        yield from (row for row in functions if row.name == "__init__")


def _takes(function: ast.FunctionDef, lacking: LibraryName) -> bool:
    rows = function.args
    names = [row.arg for row in (*rows.posonlyargs, *rows.args)]
    if lacking.keyword:
        every = {*names, *(row.arg for row in rows.kwonlyargs)}
        return lacking.keyword in every or rows.kwarg is not None
    is_decorated = any("deprecate" in ast.unparse(row) for row in function.decorator_list)
    return bool(lacking.positional) and (
        len(names) >= lacking.positional or rows.vararg is not None or is_decorated
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
