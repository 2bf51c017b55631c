"""Finds where names can be imported from: `python names.py NAME[,NAME...] MODULE[,MODULE...]`
prints {name: module} as JSON.

Runs inside the sandbox on the built environment. A module that does not import is passed over.
"""

import contextlib
import importlib
import json
import sys


def main():
    names, modules = sys.argv[1].split(","), sys.argv[2].split(",")
    modules_by_name = {}
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
    sys.__stdout__.write("\n" + json.dumps(modules_by_name) + "\n")


main()
