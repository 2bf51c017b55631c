"""What the names of a module are bound to by its imports, and the bases of its classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from bot.rules.code import syntax


class Bindings(NamedTuple):
    """`names` maps a name of the module to the dotted name it stands for; `stars` are modules imported whole."""

    names: dict[str, str]
    stars: tuple[str, ...]


def module_of(path: str) -> str:
    """The dotted module of a path: "torch/nn/__init__.py" is torch.nn; a `src` layout is stripped."""
    parts = path.removesuffix(".py").split("/")
    if parts and parts[0] == "src":
        parts = parts[1:]
    if parts and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


def paths_of(module: str) -> tuple[str, str]:
    """Where a module can lie: as a file, and as a package."""
    base = module.replace(".", "/")
    return f"{base}.py", f"{base}/__init__.py"


@lru_cache(maxsize=256)
def bindings(text: str, path: str) -> Bindings:
    """The imports of a module, at any depth of it, and plain aliases at its top (`linear = torch._C.linear`)."""
    tree = syntax.tree_of(text)
    names: dict[str, str] = {}
    stars: list[str] = []
    if tree is None:
        return Bindings(names, ())
    package = module_of(path) if path.endswith("__init__.py") else module_of(path).rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names.setdefault(alias.asname or top, alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            for alias in node.names:
                if alias.name == "*":
                    stars.append(base)
                else:
                    names.setdefault(alias.asname or alias.name, f"{base}.{alias.name}" if base else alias.name)
    for name, value in _aliases(tree):
        names.setdefault(name, value)
    return Bindings(names, tuple(dict.fromkeys(stars)))


def bases(tree: ast.AST, name: str) -> tuple[str, ...]:
    """Dotted names of the bases of the first class of that (simple) name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return tuple(base for each in node.bases if (base := syntax.dotted(_plain(each))))
    return ()


def _plain(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - (node.level - 1)] if node.level > 1 else parts
    return ".".join([*kept, *([node.module] if node.module else [])])


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = syntax.dotted(node.value)
            if value and value != node.targets[0].id:
                yield node.targets[0].id, value
