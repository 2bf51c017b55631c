"""Modules of a repository that its program does not find: those that lie in a folder which is not
on the path, compiled parts that were not built, and names that PyTorch used to have (one modern
release of it serves old repositories).
"""

import ast
import re
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath

from bot.issues.search import stand_ins
from bot.issues.search.missing_weights import edit_nodes
from bot.kernel.attempt import Failure, Judgement, Script
from bot.kernel.bug import ScriptFix
from bot.kernel.launch import SEARCH_PATH
from bot.kernel.source.syntax import module_of, nodes
from bot.kernel.trees import Tree, tree_files

_MODULE = r"(?P<module>[A-Za-z_]\w{0,80}(?:\.\w{1,80}){0,8})"
_NO_MODULE = re.compile(rf"^No module named '{_MODULE}'")
_NO_NAME = re.compile(rf"^cannot import name '(?P<name>\w{{1,80}})' from '{_MODULE}'")
_NO_PACKAGE = re.compile(rf"^cannot import name '\w{{1,80}}' from '{_MODULE}' \(unknown location\)")
"""A folder without `__init__.py` hides the package that the program means."""
_EXTENSION = re.compile(rb"(?:CUDA|Cpp|\b)Extension\b|\bcythonize\b")
_PACKAGE = """import os

_root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
__path__ = [_root]
with open(os.path.join(_root, "__init__.py"), encoding="utf-8") as file:
    exec(compile(file.read(), file.name, "exec"))
"""
_NEIGHBOUR = """import importlib
import sys

sys.modules[__name__] = importlib.import_module("{module}")
"""
_COMPILED = {".pyx", ".cu", ".cpp", ".cc", ".c"}
_BUILDS = {"setup.py", "build.py", "make.py"}


def with_module(script: Script, tree: Tree, judgement: Judgement, home: str) -> Script:
    """A program with what helps it to a module of its own tree, or to the tree as the package
    `home`, that it ended for want of; the very script where it ended for another reason.
    """
    setup_failure = judgement.setup_failure
    is_other = setup_failure is not None and setup_failure.id != "missing-module"
    if judgement.failure is None or is_other:
        return script
    for fix in (
        with_old_names,
        _with_neighbour,
        _with_folder,
        partial(_as_package, home),
        _without_extension,
    ):
        if (fixed := fix(script, tree, judgement.failure)) is not script:
            return fixed
    return script


def _with_neighbour(script: Script, tree: Tree, failure: Failure) -> Script:
    """A program in which a file of a package finds the module beside it by its plain name, as in
    Python 2; the very script where there is none.
    """
    match, importer = _NO_MODULE.match(failure.message), next(iter(_own_paths(failure, tree)), "")
    package, name = PurePosixPath(importer).parent, match["module"] if match is not None else ""
    is_beside = f"{package}/{name}.py" in tree or f"{package}/{name}/__init__.py" in tree
    place = (PurePosixPath(script.entry).parent / f"{name}.py").as_posix()
    is_package = f"{package}/__init__.py" in tree and all(map(str.isidentifier, package.parts))
    if not (name.isidentifier() and is_beside and is_package) or place in {**tree, **script.files}:
        return script
    dotted = ".".join((*package.parts, name))
    fix = ScriptFix(what=f"`{name}` is `{dotted}`"[:200], why="it lies beside what imports it")
    return script.model_copy(
        update={
            "files": {**script.files, place: _NEIGHBOUR.format(module=dotted)},
            "edited": (*script.edited, place),
            "fixes": (*script.fixes, fix),
        }
    )


def _with_folder(script: Script, tree: Tree, failure: Failure) -> Script:
    """A program that finds a module which lies in another folder of its tree: in that of the file
    that imports it, in one above that, or in the only one that has it. The very script where it is
    in none, or its folder was on the path.
    """
    match = _NO_MODULE.match(failure.message) or _NO_PACKAGE.match(failure.message)
    if match is None:
        return script
    folders = _folders_of(match["module"], tree)
    importer = next(iter(_own_paths(failure, tree)), "")
    above = [parent.as_posix() for parent in PurePosixPath(importer).parents]
    near = [folder for folder in above if folder in folders] if importer else []
    folder = next(iter(near or folders * (len(folders) == 1)), "")
    paths = [*filter(None, script.variables.get(SEARCH_PATH, "").split(":"))]
    if not folder or folder in paths:
        return script
    where = "the root" if folder == "." else f"`{folder}`"
    fix = ScriptFix(
        what=f"put {where} on the path"[:200], why=f"`{match['module']}` lies there"[:200]
    )
    variables = {**script.variables, SEARCH_PATH: ":".join([*paths, folder])}
    return script.model_copy(update={"variables": variables, "fixes": (*script.fixes, fix)})


def _as_package(home: str, script: Script, tree: Tree, failure: Failure) -> Script:
    """A program of a tree whose root is the package that it asks for, where the clone's own folder
    had its name.
    """
    match, path = _NO_MODULE.match(failure.message), f"{home}/__init__.py"
    asks = match is not None and match["module"].partition(".")[0] == home
    is_there = any(one.startswith(f"{home}/") for one in {**tree, **script.files})
    if not asks or "__init__.py" not in tree or is_there:
        return script
    fix = ScriptFix(
        what=f"the repository is the package `{home}`", why="its root has `__init__.py`"
    )
    return script.model_copy(
        update={
            "files": {**script.files, path: _PACKAGE},
            "edited": (*script.edited, path),
            "fixes": (*script.fixes, fix),
        }
    )


def _without_extension(script: Script, tree: Tree, failure: Failure) -> Script:
    """A program with a module that can only be imported in the place of a compiled one of its tree;
    the very script where the tree builds none of that name.
    """
    match = _NO_NAME.match(failure.message) or _NO_MODULE.match(failure.message)
    if match is None:
        return script
    module = ".".join(filter(None, (match["module"], match.groupdict().get("name"))))
    package, _, name = module.rpartition(".")
    folders = [f"{root}{package.replace('.', '/')}" for root in ("", "src/")]
    own = [one for one in folders if package and any(path.startswith(f"{one}/") for path in tree)]
    if (package and not own) or not _is_compiled(name, tree):
        return script
    return stand_ins.with_stand_in(script, module, tree, *own[:1])


def _own_paths(failure: Failure, tree: Tree) -> list[str]:
    """The files of the tree that the frames of a failure lie in, the innermost first."""
    rows = (tree_files(frame, tree) for frame in reversed(failure.frames))
    return [max(paths, key=len) for paths in rows if paths]


def _folders_of(module: str, tree: Tree) -> list[str]:
    """The folders of a tree that have a module or a package of Python files of a name."""
    plain = module.replace(".", "/")
    ends = (f"/{plain}.py", f"/{plain}/__init__.py")
    paths = (f"/{path}" for path in tree)
    folders = (path.removesuffix(end) for path in paths for end in ends if path.endswith(end))
    return list(dict.fromkeys(folder.lstrip("/") or "." for folder in folders))


def _is_compiled(name: str, tree: Tree) -> bool:
    """Whether a tree builds a compiled module of a name: it has its source, or a file that builds
    extensions names it.
    """
    quoted = re.compile(rb"[\"'./]" + re.escape(name).encode() + rb"[\"']")
    for path, text in tree.items():
        pure = PurePosixPath(path)
        has_source = pure.stem == name and pure.suffix in _COMPILED
        if has_source or (pure.name in _BUILDS and _EXTENSION.search(text) and quoted.search(text)):
            return True
    return False


OUT_OF_DATE = "PyTorch does not have it any more"
_ABSENT = re.compile(r"^No module named '(?P<module>[\w.]{1,80})'")
_NAMES: Mapping[str, Mapping[str, str]] = {
    "torch._six": {
        "string_classes": "(str, bytes)",
        "int_classes": "int",
        "container_abcs": "__import__('collections.abc').abc",
        "inf": "float('inf')",
        "nan": "float('nan')",
        "PY3": "True",
        "PY37": "True",
    },
    "torchvision.models.utils": {
        "load_state_dict_from_url": "__import__('torch').hub.load_state_dict_from_url",
    },
}
"""The module, and what each of its names was."""


def with_old_names(script: Script, tree: Tree, failure: Failure) -> Script:
    """A program whose import of names that PyTorch had gives what they were; the very script where
    it ended for another reason, or asks for others.
    """
    match = _ABSENT.match(failure.message)
    names = _NAMES.get(match["module"], {}) if match is not None else {}
    last = failure.innermost
    paths = tree_files(last, tree) if names and last is not None and not last.package else []
    if match is None or not paths:
        return script
    path = max(paths, key=len)
    text = script.files.get(path) or tree[path].decode("utf-8", "replace")
    imports = [
        node
        for node in nodes(module_of(text), ast.ImportFrom)
        if node.module == match["module"] and all(alias.name in names for alias in node.names)
    ]
    rows = [
        (node, "; ".join(f"{one.asname or one.name} = {names[one.name]}" for one in node.names))
        for node in imports
    ]
    return edit_nodes(script, path, text, rows, OUT_OF_DATE) if rows else script
