"""Settings by their constants: names, attributes and dictionary entries that are set once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bot.rules.reduce.edits import Reduction
from bot.rules.reduce.parsed_file import ParsedFile

_UNKNOWN = ast.Name("?")
_OF_MODULE = re.compile(r"(?:torch|np|numpy|tf|jnp)(?:\.\w+)+")
_MAX_ITEMS = 3
_BINDING = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.withitem, ast.comprehension)
_Setting = tuple[str, str, ast.expr, ast.AST]
"""The kind, the name, the value, and the node that sets it."""


def edits(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Each setting with one constant value, replaced where it is read."""
    nodes = [(file, node) for file in files for node in ast.walk(file.tree)]
    own = {node.name for _, node in nodes if isinstance(node, ast.ClassDef)}
    settings: dict[tuple[str, str], list[tuple[ParsedFile, ast.expr, ast.AST]]] = {}
    for file, node in nodes:
        for kind, name, value, place in _settings(node, own):
            settings.setdefault((kind, name), []).append((file, value, place))
    for (kind, name), rows in settings.items():
        values = {ast.unparse(value) for _, value, _ in rows}
        if len(values) > 1 or not _is_constant(rows[0][1]):
            continue
        reads = [
            file.replace(node, ast.unparse(rows[0][1]))
            for file, node in nodes
            if isinstance(node, ast.expr) and _accessed(node, ast.Load) == (kind, name)
        ]
        sets = [file.remove(place) for file, _, place in rows if isinstance(place, ast.stmt)]
        if reads:
            made = (*reads, *sets) if kind == "name" else tuple(reads)
            yield Reduction(f"{name} by its value", made)


def _accessed(node: ast.AST, context: type[ast.expr_context]) -> tuple[str, str] | None:
    """The kind and the name of what an expression reads or sets."""
    if not isinstance(getattr(node, "ctx", None), context):
        return None
    if isinstance(node, ast.Name):
        return "name", node.id
    if isinstance(node, ast.Attribute):
        return "attribute", node.attr
    key = getattr(getattr(node, "slice", None), "value", None)
    return ("entry", key) if isinstance(key, str) else None


def _settings(node: ast.AST, own: set[str]) -> Iterator[_Setting]:
    """What a node itself sets; `own` are the classes of the program."""
    if isinstance(node, _BINDING):
        yield from _bound(node)
    elif isinstance(node, ast.Call):
        words = node.keywords if getattr(node.func, "id", "") in own else []
        yield from (("attribute", word.arg, word.value, word) for word in words if word.arg)
        yield from _option(node)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield "entry", key.value, value, node
    elif isinstance(node, ast.ClassDef):
        for kind, name, value, place in (one for s in node.body for one in _settings(s, own)):
            if kind == "name":
                yield "attribute", name, value, place
    elif isinstance(node, ast.arg):
        yield "name", node.arg, _UNKNOWN, node


def _option(node: ast.Call) -> Iterator[_Setting]:
    """An option of argparse with its default."""
    words = {word.arg: word.value for word in node.keywords}
    name = node.args[0] if node.args and getattr(node.func, "attr", "") == "add_argument" else None
    if isinstance(name, ast.Constant) and isinstance(name.value, str) and "default" in words:
        yield "attribute", name.value.lstrip("-").replace("-", "_"), words["default"], node


def _bound(node: ast.AST) -> Iterator[_Setting]:
    single = getattr(node, "target", None) or getattr(node, "optional_vars", None)
    value = getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign) else None
    for target in getattr(node, "targets", None) or [single]:
        for part in ast.walk(target) if target is not None else ():
            if accessed := _accessed(part, ast.Store):
                yield *accessed, (value if part is target else None) or _UNKNOWN, node


def _is_constant(node: ast.expr) -> bool:
    """Whether a value is the same wherever it is written: a constant, a short tuple of constants,
    or a dotted name of a module.
    """
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    if isinstance(node, ast.Tuple | ast.List):
        return len(node.elts) <= _MAX_ITEMS and all(map(_is_constant, node.elts))
    if isinstance(node, ast.Attribute):
        return bool(_OF_MODULE.fullmatch(ast.unparse(node)))
    return isinstance(node, ast.Constant)
