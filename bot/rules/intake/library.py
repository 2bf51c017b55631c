"""The exception classes of Python and its standard library, by name."""

from __future__ import annotations

import builtins
import os
import re
import sysconfig
from functools import cache
from pathlib import Path

_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w{1,80})\(([^)\n]{1,200})\)", re.M)
_ASIDE = frozenset({"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "tkinter", "turtledemo"})


@cache
def exceptions() -> frozenset[str]:
    """The names of all exceptions that Python or a module of its library defines, warnings left out.

    They are read from the sources: to import every module would start some of them. Where Python came without its sources,
    these are the built-in ones.
    """
    known = {name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, BaseException)}
    classes = [(name, [base.strip().rsplit(".", 1)[-1] for base in bases.split(",")]) for name, bases in _classes()]
    while more := {name for name, bases in classes if name not in known and not known.isdisjoint(bases)}:
        known |= more
    return frozenset(name for name in known if not name.endswith("Warning"))


def _classes() -> list[tuple[str, str]]:
    """Every class of the standard library's sources with the bases written beside it."""
    found: list[tuple[str, str]] = []
    for folder, below, files in os.walk(sysconfig.get_path("stdlib")):
        below[:] = [name for name in below if name not in _ASIDE]
        for name in files:
            if name.endswith(".py"):
                found += _CLASS.findall((Path(folder) / name).read_text("utf-8", "replace"))
    return found
