"""What a repository provides, read from the names of its files and its metadata; nothing of it
is run.
"""

import ast
import configparser
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from packaging.utils import canonicalize_name

from bot.models.bisect import Provided
from bot.rules.intake.python import module_of, name_of
from bot.rules.packages.imports import distribution

METADATA = ("pyproject.toml", "setup.cfg", "setup.py")
_ROOTS = ((), ("src",))  # what is searched for modules where a clone lies on the path
_OURS = {"setup", "conftest", "noxfile"}


def read(paths: Iterable[str], texts: Mapping[str, str]) -> Provided:
    """What a tree of these files provides; `texts` are those of its METADATA. What cannot be
    read is left out.
    """
    files = [PurePosixPath(path) for path in paths if path.endswith(".py")]
    project = _toml(texts.get("pyproject.toml", ""))
    name = (
        _named(project)
        or _of_cfg(texts.get("setup.cfg", ""))
        or _of_setup(texts.get("setup.py", ""))
    )
    on_path = dict.fromkeys(
        found for root in _ROOTS for path in files if (found := _below(path, root))
    )
    builds = bool(
        {"setup.cfg", "setup.py"} & set(texts)
        or {"project", "build-system"} & set(project)
        or _poetry(project)
    )
    built = dict.fromkeys((*on_path, *_outermost(files))) if builds else ()
    return Provided(name=canonicalize_name(name), on_path=tuple(on_path), built=tuple(built))


def dependencies(pyproject: str) -> list[str]:
    """What a project declares in its pyproject.toml that it needs, as written."""
    table = _toml(pyproject).get("project")
    listed = table.get("dependencies") if isinstance(table, dict) else None
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def used(provided: Provided, modules: Collection[str], names: Collection[str]) -> str:
    """What to call what is provided, where a program uses it: it imports or runs through one of
    these top-level modules, or has one of these distributions installed. "" where it does not.
    """
    known = {*names, *filter(None, map(distribution, modules))}
    if provided.name and provided.name in known:
        return provided.name
    shared = next((each for each in (*provided.on_path, *provided.built) if each in modules), "")
    return (provided.name or canonicalize_name(shared)) if shared else ""


def importable(provided: Provided, called: str, modules: Collection[str]) -> bool:
    """Whether what is used of it (`called` as `used` has it) can be imported without a build."""
    return any(
        each in modules or called in {distribution(each), canonicalize_name(each)}
        for each in provided.on_path
    )


def _below(path: PurePosixPath, root: tuple[str, ...]) -> str:
    """The top-level module that a file stands for or is in, seen from a root; "" for none."""
    first, *inner = path.parts[len(root) :] or ("",)
    alone = not inner and path.stem not in _OURS
    package = inner[-1:] == ["__init__.py"] and (root or first != "src")
    name = first if inner else path.stem
    found = path.parts[: len(root)] == root and first and (alone or package)
    return name if found and name.isidentifier() else ""


def _outermost(files: list[PurePosixPath]) -> Iterable[str]:
    """Packages in no other package, wherever they lie: where a build takes them from is its own
    affair.
    """
    folders = {path.parent for path in files if path.name == "__init__.py"}
    return (
        each.name
        for each in sorted(folders)
        if each.parent not in folders and each.name.isidentifier()
    )


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _named(project: dict[str, Any]) -> str:
    tables = (project.get("project"), _poetry(project))
    names = (table.get("name") for table in tables if isinstance(table, dict))
    return next((name for name in names if isinstance(name, str)), "")


def _poetry(project: dict[str, Any]) -> dict[str, Any]:
    tool = project.get("tool")
    table = tool.get("poetry") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else {}


def _of_cfg(text: str) -> str:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return ""
    return parser.get("metadata", "name", fallback="")


def _of_setup(text: str) -> str:
    """The name that setup() is called with, where it is written out, there or in a constant."""
    tree = module_of(text)
    given = (
        word.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and name_of(node.func) == "setup"
        for word in node.keywords
        if word.arg == "name"
    )
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    values = (constants.get(getattr(value, "id", ""), value) for value in given)
    names = (value.value for value in values if isinstance(value, ast.Constant))
    return next((name for name in names if isinstance(name, str)), "")
