"""A module that stands in for one that cannot be installed here: a repository's program often
imports what the reported failure does not need.
"""

from pathlib import PurePosixPath

from bot.kernel.attempt import Script
from bot.kernel.bug import ScriptFix
from bot.kernel.trees import Tree

ABSENT = "it cannot be installed here"
"""Why a stand-in is used. What passes with one says nothing."""
_TEXT = '''"""Stands in for `{module}`, which cannot be installed here: it can only be imported."""

import importlib.abc
import importlib.machinery
import sys

__path__ = []


class _Absent(type):
    def __getattr__(cls, name):
        return _absent(name)

    def __call__(cls, *args, **kwargs):
        raise ModuleNotFoundError("No module named '{module}'", name="{module}")


def _absent(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Absent(name, (), {{}})


def __getattr__(name):
    return _absent(name)


class _Parts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        own = name.startswith("{module}.")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if own else None

    def exec_module(self, module):
        module.__getattr__ = _absent


sys.meta_path.append(_Parts())
'''


def with_stand_in(script: Script, module: str, tree: Tree, folder: str = "") -> Script:
    """A program of a tree with a module beside it, or in the folder of a package, that can be
    imported and whose use ends as its absence does; the very script where the tree or the program
    has that module.
    """
    is_module = script.command[:1] == ("-m",)
    own = script.folder if is_module else PurePosixPath(script.entry).parent.as_posix()
    base = f"{folder or own}/{module.rpartition('.')[2]}".removeprefix("./").lstrip("/")
    path = f"{base}.py"
    if path in {**tree, **script.files} or any(name.startswith(f"{base}/") for name in tree):
        return script
    what = f"an empty module stands in for `{module}`"
    return script.model_copy(
        update={
            "files": {**script.files, path: _TEXT.format(module=module)},
            "edited": (*script.edited, path),
            "fixes": (*script.fixes, ScriptFix(what=what, why=ABSENT)),
        }
    )
