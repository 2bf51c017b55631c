"""Writes the names in `bot/kernel/exception_names.py` anew: `python tests/stdlib.py`, with each
new version of Python or mypy.

They are read from sources, as to import every module would start some of them: from those of this
Python's library and from mypy's stubs of it, which know other versions too. What stands there
already stays.
"""

import builtins
import os
import re
import sys
import sysconfig
import textwrap
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from bot.kernel import exception_names  # noqa: E402
from bot.kernel.exception_names import has_suffix  # noqa: E402

SOURCES = Path(sysconfig.get_path("stdlib"))
_FIRST = '_NAMES = """\n'
_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w{1,80})[ \t]*\(([^)\n]{1,200})\)", re.M)
_ASIDE = {
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "tkinter",
    "turtledemo",
}


def exceptions(*roots: Path) -> set[str]:
    """The exceptions of Python and of the sources below some folders, those left out that are
    known by their ending.
    """
    known = {
        name
        for name, each in vars(builtins).items()
        if isinstance(each, type) and issubclass(each, BaseException)
    }
    classes = [
        (name, {base.strip().rsplit(".", 1)[-1] for base in bases.split(",")})
        for name, bases in _classes(roots)
    ]
    while more := {
        name for name, bases in classes if name not in known and not known.isdisjoint(bases)
    }:
        known |= more
    return {name for name in known if not has_suffix(name) and not name.endswith("Warning")}


def _classes(roots: tuple[Path, ...]) -> list[tuple[str, str]]:
    """Every class of the public packages with the bases written beside it."""
    found: list[tuple[str, str]] = []
    for root in roots:
        for folder, below, files in os.walk(root):
            below[:] = [name for name in below if name not in _ASIDE and not name.startswith("_")]
            for path in (Path(folder) / name for name in files if name.endswith((".py", ".pyi"))):
                if path.is_file():
                    found += _CLASS.findall(path.read_text("utf-8", "replace"))
    return found


if __name__ == "__main__":
    stubs = Path(find_spec("mypy").origin).parent / "typeshed" / "stdlib"
    names = sorted(exception_names.EXCEPTIONS | exceptions(SOURCES, stubs))
    module = Path(exception_names.__file__)
    text = module.read_text("utf-8")
    first, last = text.index(_FIRST) + len(_FIRST), text.rindex('"""')
    listed = textwrap.fill(" ".join(names), 120, break_on_hyphens=False)
    module.write_text(f"{text[:first]}{listed}\n{text[last:]}", encoding="utf-8")
