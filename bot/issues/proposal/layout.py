"""Where a repository keeps its tests, how it finds and names them, and which paths may be
touched.
"""

import configparser
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from bot.kernel import files
from bot.kernel.run import REGULAR, Framework, TestLayout, TreeEntry

# What a repository's own files say about how its tests are found.

FILES = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)
"""Where pytest is configured, in its own order: the first that configures it counts."""

_SECTIONS = {"setup.cfg": "tool:pytest"}
_NAMES = ("test_*.py", "*_test.py")


@dataclass(frozen=True, slots=True)
class PytestSettings:
    """pytest's settings. `configured` is whether any file speaks of pytest, `doctests` whether it
    imports every module to look for doctests.
    """

    configured: bool = False
    testpaths: tuple[str, ...] = ()
    files: tuple[str, ...] = _NAMES
    functions: tuple[str, ...] = ("test",)
    doctests: bool = False

    def collects(self, path: str) -> bool:
        """Whether pytest imports a Python file while it looks for tests."""
        return self.doctests or any(_fits(path, glob) for glob in (*self.files, "test*.py"))


def _fits(path: str, glob: str) -> bool:
    """As pytest has it: a pattern with a slash is one of the whole path."""
    if "/" in glob:
        return fnmatchcase(f"/{path}", f"*/{glob}")
    return fnmatchcase(path.rpartition("/")[2], glob)


def read_pytest_settings(texts: Mapping[str, str]) -> PytestSettings:
    """The settings in these files, by name; defaults where none configures pytest."""
    for name in FILES:
        values = _values(name, texts[name]) if name in texts else None
        if values is not None:
            return PytestSettings(
                configured=True,
                testpaths=tuple(path.strip("/") for path in _list(values.get("testpaths"))),
                files=_list(values.get("python_files")) or _NAMES,
                functions=_list(values.get("python_functions")) or ("test",),
                doctests="--doctest-modules" in _list(values.get("addopts")),
            )
    return PytestSettings()


def _values(name: str, text: str) -> Mapping[str, Any] | None:
    """The section for pytest of a file, None when it has none or cannot be read."""
    if name.endswith(".toml"):
        return _toml(text, top=name != "pyproject.toml")
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except (configparser.Error, ValueError):
        return None
    section = _SECTIONS.get(name, "pytest")
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if name.endswith("pytest.ini") else None


def _toml(text: str, *, top: bool) -> Mapping[str, Any] | None:
    """The settings of a TOML file, whose table for pytest is at the `top` or a tool's."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    tool = document if top else document.get("tool")
    section = tool.get("pytest") if isinstance(tool, dict) else None
    if not isinstance(section, dict):
        return None
    options = section.get("ini_options", section)
    return options if isinstance(options, dict) else None


def _list(value: Any) -> tuple[str, ...]:
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(word for word in words if isinstance(word, str) and word)[:20]


# Where a repository keeps its tests, and how it writes and names them.

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
    folders_of_subjects = Counter(
        _folder(test) for test in tests if PurePosixPath(test).name in subjects
    )
    if folders_of_subjects:
        return _most(folders_of_subjects)
    root = _most(Counter(map(_root, tests)))
    folders = Counter(_folder(test) for test in tests if _root(test) == root)
    return root if root in folders else _most(folders)


def test_files(entries: Iterable[TreeEntry], settings: PytestSettings) -> list[str]:
    """The paths of the repository's tests; those of vendored code and examples are no tests."""
    test_paths = [
        entry.path
        for entry in entries
        if entry.mode in REGULAR
        and _matches(PurePosixPath(entry.path).name, settings.files)
        and not files.vendored(entry.path)
        and not any(part.startswith(".") for part in entry.path.split("/"))
        and _ASIDE.isdisjoint(entry.path.lower().split("/")[:-1])
    ]
    configured_paths = [path for path in test_paths if _under(path, settings.testpaths)]
    return configured_paths or test_paths


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
    if any(fnmatchcase("test_x", pattern) or "test_x".startswith(pattern) for pattern in patterns):
        return "test_{}"
    stem = patterns[0].replace("*", "").strip("_")
    return f"{stem}_{{}}" if stem.isidentifier() else "test_{}"


def _new(settings: PytestSettings) -> tuple[str, ...]:
    plain_paths = tuple(path for path in settings.testpaths if not set(path) & set("*?["))
    return plain_paths or _USUAL


def _blocked(name: str, entries: Iterable[TreeEntry]) -> bool:
    new = f"{name}/test_new.py"
    return bool(files.refusal(new, is_patched=False) or files.in_the_way(new, entries))


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
