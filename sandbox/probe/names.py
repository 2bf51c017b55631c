"""Finds where names can be imported from: `python names.py NAME[,NAME...] MODULE[,MODULE...]`
prints {name: module} as JSON.

Runs inside the sandbox on the built environment. A module that does not import is passed over.
What none of the modules has is looked for in the parts of those that are packages.
"""

import contextlib
import importlib
import json
import pkgutil
import sys

MOST_PARTS = 40


def parts(modules):
    """The public modules directly below packages that are imported already."""
    for module_name in modules:
        path = getattr(sys.modules.get(module_name), "__path__", None)
        if path is not None and "." not in module_name:
            rows = [row.name for row in pkgutil.iter_modules(path) if row.name[:1] != "_"]
            for name in rows[:MOST_PARTS]:
                yield module_name + "." + name


def main():
    names, modules = sys.argv[1].split(","), sys.argv[2].split(",")
    modules_by_name = {}
    find(names, modules, modules_by_name)
    find(names, parts(modules), modules_by_name)
    sys.__stdout__.write("\n" + json.dumps(modules_by_name) + "\n")


def find(names, modules, modules_by_name):
    for module_name in modules:
        missing = [name for name in names if name not in modules_by_name]
        if not missing:
            break
        with contextlib.suppress(BaseException):  # a module that does not import is passed over
            module = importlib.import_module(module_name)
            for name in missing:
                with contextlib.suppress(BaseException):
                    if hasattr(module, name):
                        modules_by_name[name] = module_name


main()
