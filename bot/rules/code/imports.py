"""The names that a module's imports and aliases bind, and the bases of its classes."""

import ast
from functools import lru_cache
from typing import NamedTuple

from bot.rules.code import syntax
from bot.rules.code.outline import module_of
from bot.rules.parsing import tree_of


class Bindings(NamedTuple):
    """`names` maps a name of the module to the dotted name it stands for; `stars` are the modules
    of its star imports.
    """

    names: dict[str, str]
    stars: tuple[str, ...]


def paths_of(module: str) -> tuple[str, str]:
    """Where a module can lie: as a file, and as a package."""
    base = module.replace(".", "/")
    return f"{base}.py", f"{base}/__init__.py"


@lru_cache(maxsize=256)
def bindings(text: str, path: str) -> Bindings:
    """The imports of a module, at any depth of it, and plain aliases at its top (`linear =
    torch._C.linear`).
    """
    tree = tree_of(text) or ast.Module([], [])
    package = module_of(path)
    if not path.endswith("__init__.py"):
        package = package.rpartition(".")[0]
    names: dict[str, str] = {}
    nested = list(syntax.statements(tree))
    for node in nested:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names.setdefault(alias.asname or top, alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            for alias in node.names:
                names.setdefault(alias.asname or alias.name, f"{base}.{alias.name}".lstrip("."))
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if syntax.dotted(value):
                names.setdefault(name, syntax.dotted(value))
    stars = tuple(
        dict.fromkeys(
            _base(node, package)
            for node in nested
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        )
    )
    return Bindings(names, stars)


def bases(text: str, name: str) -> tuple[str, ...]:
    """Dotted names of the bases of the first class of that (simple) name in a module."""
    return _bases_of_classes(text).get(name, ())


@lru_cache(maxsize=256)
def _bases_of_classes(text: str) -> dict[str, tuple[str, ...]]:
    tree = syntax.tree_of_lines(text) or ast.Module([], [])
    found: dict[str, tuple[str, ...]] = {}
    for node in syntax.statements(tree):
        if isinstance(node, ast.ClassDef):
            plain = (each.value if isinstance(each, ast.Subscript) else each for each in node.bases)
            found.setdefault(node.name, tuple(filter(None, map(syntax.dotted, plain))))
    return found


def _base(node: ast.ImportFrom, package: str) -> str:
    """The absolute name of the module that an import statement names."""
    if not node.level:
        return node.module or ""
    kept = package.split(".")[: package.count(".") + 2 - node.level]
    return ".".join(filter(None, (*kept, node.module)))
