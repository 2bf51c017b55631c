"""The modules that a program imports, by name."""

import ast
import re
import sys
from functools import lru_cache

from bot.rules import parsing
from bot.rules.intake.python import name_of

_LINE = re.compile(
    r"^[ \t>.]*(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b|import[ \t]+([A-Za-z_][\w., \t]*))",
    re.MULTILINE,
)


_LOADERS = {"import_module", "__import__", "importorskip"}


@lru_cache(maxsize=64)
def imported(source: str) -> tuple[str, ...]:
    """Dotted names of what is imported from outside the standard library, in order; relative
    imports are left out.
    """
    try:
        names = _from_tree(parsing.parse(source))
    except SyntaxError:
        names = _from_lines(source)
    outside = (
        name
        for name in names
        if name.partition(".")[0] not in sys.stdlib_module_names and name.isascii()
    )
    return tuple(dict.fromkeys(outside))


def top_level(source: str) -> tuple[str, ...]:
    """The top-level packages that a program imports from outside the standard library."""
    return tuple(dict.fromkeys(name.partition(".")[0] for name in imported(source)))


def _from_tree(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Call) and _loads(node):
            names.append(ast.literal_eval(node.args[0]))
    return [name for name in names if name]


def _loads(node: ast.Call) -> bool:
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    return name_of(node.func) in _LOADERS and isinstance(first, str) and first.isidentifier()


def _from_lines(source: str) -> list[str]:
    names = [
        name
        for source_module, plain in _LINE.findall(source)
        for part in (plain or source_module).split(",")
        for name in part.split()[:1]
    ]
    return [name.strip(".") for name in names if re.fullmatch(r"[A-Za-z_][\w.]*", name)]
