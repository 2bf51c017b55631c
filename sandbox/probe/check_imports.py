"""Imports what a distribution installs: `python check_imports.py DISTRIBUTION[,...] MODULE[,...]`
ends with the traceback of the first that cannot be imported. Of several modules of one
distribution that of its own name counts, else the one among the modules named, else the first.

Runs inside the sandbox on the built environment. A distribution without metadata is passed over.
"""

import importlib
import sys


def tops(name):
    try:
        from importlib import metadata

        files = metadata.distribution(name).files or ()
    except ImportError:  # there is no such distribution, or this Python cannot tell
        return []
    packages = [file.parts[0] for file in files if file.parts[1:] == ("__init__.py",)]
    modules = [file.stem for file in files if len(file.parts) == 1 and file.suffix == ".py"]
    return sorted({one for one in (packages or modules) if not one.startswith(("_", "test"))})


def main():
    modules = sys.argv[2].split(",")
    for name in sys.argv[1].split(","):
        own = name.replace("-", "_")
        top_modules = tops(name)
        top_modules.sort(key=lambda top: (top.lower() != own, top not in modules))
        for top in top_modules[:1]:
            importlib.import_module(top)


main()
