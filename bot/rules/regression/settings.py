"""What a repository's own files say about how its tests are found."""

import configparser
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Where pytest is configured, in its own order: the first that configures it counts."""

_SECTIONS = {"setup.cfg": "tool:pytest"}
_NAMES = ("test_*.py", "*_test.py")


@dataclass(frozen=True, slots=True)
class PytestSettings:
    """pytest's settings. `configured` is whether any file speaks of pytest."""

    configured: bool = False
    testpaths: tuple[str, ...] = ()
    files: tuple[str, ...] = _NAMES
    functions: tuple[str, ...] = ("test",)


def read(texts: Mapping[str, str]) -> PytestSettings:
    """The settings in these files, by name; defaults where none configures pytest."""
    for name in FILES:
        values = _values(name, texts[name]) if name in texts else None
        if values is not None:
            return PytestSettings(
                configured=True,
                testpaths=tuple(path.strip("/") for path in _list(values.get("testpaths"))),
                files=_list(values.get("python_files")) or _NAMES,
                functions=_list(values.get("python_functions")) or ("test",),
            )
    return PytestSettings()


def _values(name: str, text: str) -> Mapping[str, Any] | None:
    """The section for pytest of a file, None when it has none or cannot be read."""
    if name == "pyproject.toml":
        return _toml(text)
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except (configparser.Error, ValueError):
        return None
    section = _SECTIONS.get(name, "pytest")
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if name.endswith("pytest.ini") else None


def _toml(text: str) -> Mapping[str, Any] | None:
    try:
        tool = tomllib.loads(text).get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    section = tool.get("pytest") if isinstance(tool, dict) else None
    if not isinstance(section, dict):
        return None
    options = section.get("ini_options", section)
    return options if isinstance(options, dict) else None


def _list(value: Any) -> tuple[str, ...]:
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(word for word in words if isinstance(word, str) and word)[:20]
