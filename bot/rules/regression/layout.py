"""Where a repository keeps its tests, and how it writes and names them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from bot.models.pull_request import REGULAR, Framework, TestLayout, TreeEntry
from bot.rules.regression import paths
from bot.rules.regression.settings import PytestSettings

_ROOTS = frozenset({"tests", "test", "testing", "unit_tests", "unittests"})
_ASIDE = frozenset({"examples", "example", "benchmarks", "docs", "build", "dist", "templates"})
_USUAL = ("tests", "test")
_PYTEST = re.compile(r"^(?:import pytest\b|from pytest\b|(?:async )?def test\w*\()", re.MULTILINE)
_UNITTEST = re.compile(r"\bunittest\b|\bTestCase\b")
SAMPLES = 4


def folder(
    entries: Sequence[TreeEntry], settings: PytestSettings, modules: Iterable[str] = ()
) -> str | None:
    """The folder for a new test, "" for the top; None when there is none to be had.

    Tests of the repository decide: the root of most of them, in it the folder with a test of one
    of the failing `modules` ("linear" has `test_linear.py`). Without any, `tests` or `test` is new.
    """
    tests = test_files(entries, settings)
    if not tests:
        free = (name for name in _new(settings) if not _blocked(name, entries))
        return next(free, None)
    subjects = {name for module in modules for name in (f"test_{module}.py", f"{module}_test.py")}
    named = Counter(_folder(test) for test in tests if PurePosixPath(test).name in subjects)
    if named:
        return _most(named)
    root = _most(Counter(map(_root, tests)))
    folders = Counter(_folder(test) for test in tests if _root(test) == root)
    return root if root in folders else _most(folders)


def test_files(entries: Iterable[TreeEntry], settings: PytestSettings) -> list[str]:
    """The paths of the repository's tests; those of vendored code and examples are no tests."""
    found = [
        entry.path
        for entry in entries
        if entry.mode in REGULAR
        and _matches(PurePosixPath(entry.path).name, settings.files)
        and not paths.vendored(entry.path)
        and not any(part.startswith(".") for part in entry.path.split("/"))
        and _ASIDE.isdisjoint(entry.path.lower().split("/")[:-1])
    ]
    chosen = [path for path in found if _under(path, settings.testpaths)]
    return chosen or found


test_files.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it


def layout(
    folder: str, entries: Sequence[TreeEntry], settings: PytestSettings, samples: Iterable[str]
) -> TestLayout:
    """How a new test in a folder is written; `samples` are the texts of tests there."""
    here = [path for path in test_files(entries, settings) if _folder(path) == folder]
    return TestLayout(
        folder=folder,
        framework=_framework(entries, settings, tuple(samples)),
        name=_name(here or test_files(entries, settings), settings.files),
        function=_function(settings.functions),
    )


def neighbours(
    folder: str, entries: Sequence[TreeEntry], settings: PytestSettings
) -> list[TreeEntry]:
    """A few tests to learn the style from: those in the folder first, then others."""
    by_path = {entry.path: entry for entry in entries}
    tests = sorted(test_files(entries, settings), key=lambda path: (_folder(path) != folder, path))
    return [by_path[path] for path in tests[:SAMPLES]]


def _most(names: Counter[str]) -> str:
    """The most frequent, of several the one nearest to the top."""
    return min(names, key=lambda name: (-names[name], name.count("/"), name))


def _framework(
    entries: Iterable[TreeEntry], settings: PytestSettings, samples: tuple[str, ...]
) -> Framework:
    """A test may be of either kind for pytest; unittest only where nothing speaks of pytest."""
    conftest = any(PurePosixPath(entry.path).name == "conftest.py" for entry in entries)
    plain = settings.configured or conftest or any(map(_PYTEST.search, samples))
    return "unittest" if not plain and any(map(_UNITTEST.search, samples)) else "pytest"


def _name(tests: Sequence[str], globs: tuple[str, ...]) -> str:
    """The name rule: of the usual two the more frequent, else what the repository's globs say."""
    names = [PurePosixPath(test).name for test in tests]
    usual = {
        "test_{}.py": sum(name.startswith("test_") for name in names),
        "{}_test.py": sum(name.endswith("_test.py") for name in names),
    }
    fitting = [name for name in usual if _matches(name.format("issue"), globs)]
    if fitting:
        return max(fitting, key=lambda name: usual[name])
    free = [glob for glob in globs if glob.count("*") == 1 and glob.endswith(".py")]
    plain = [glob for glob in free if not set(glob) & set("?[]{}/")]
    return plain[0].replace("*", "{}", 1) if plain else "test_{}.py"


def _function(patterns: tuple[str, ...]) -> str:
    """The name of a test function: `test_{}` where pytest would find that."""
    if any(fnmatchcase("test_x", each) or "test_x".startswith(each) for each in patterns):
        return "test_{}"
    stem = patterns[0].replace("*", "").strip("_")
    return f"{stem}_{{}}" if stem.isidentifier() else "test_{}"


def _new(settings: PytestSettings) -> tuple[str, ...]:
    named = tuple(path for path in settings.testpaths if not set(path) & set("*?["))
    return named or _USUAL


def _blocked(name: str, entries: Iterable[TreeEntry]) -> bool:
    new = f"{name}/test_new.py"
    return bool(paths.refusal(new, patched=False) or paths.in_the_way(new, entries))


def _matches(name: str, globs: Iterable[str]) -> bool:
    return name.endswith(".py") and any(fnmatchcase(name, glob) for glob in globs)


def _under(path: str, folders: Iterable[str]) -> bool:
    parents = {parent.as_posix() for parent in PurePosixPath(path).parents}
    return any(folder in parents for folder in folders)


def _root(test: str) -> str:
    """The folder of tests that a test belongs to: up to the first that is called so."""
    parts = test.split("/")[:-1]
    at = next((number for number, part in enumerate(parts) if part.lower() in _ROOTS), None)
    return "/".join(parts if at is None else parts[: at + 1])


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
