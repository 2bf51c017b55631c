"""Finds where names can be imported from: `python names.py NAME[,NAME...] MODULE[,MODULE...]`
prints {name: module} as JSON.

Runs inside the sandbox on the built environment. A module that does not import is passed over.
"""

import importlib
import json
import sys


def main():
    names, modules = sys.argv[1].split(","), sys.argv[2].split(",")
    found = {}
    for module_name in modules:
        missing = [name for name in names if name not in found]
        if not missing:
            break
        try:
            module = importlib.import_module(module_name)
        except BaseException:
            continue
        for name in missing:
            try:
                present = hasattr(module, name)
            except BaseException:
                present = False
            if present:
                found[name] = module_name
    sys.__stdout__.write("\n" + json.dumps(found) + "\n")


main()
