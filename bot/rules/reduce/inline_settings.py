"""Settings by their constants: names, attributes and dictionary entries that are set once."""

import ast
import re
from collections.abc import Iterator

from bot.rules.reduce.edits import ParsedFile, Reduction

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
    match node:
        case ast.Name(name, context()):
            return "name", name
        case ast.Attribute(_, name, context()):
            return "attribute", name
        case ast.Subscript(_, ast.Constant(str(key)), context()):
            return "entry", key
    return None


def _settings(node: ast.AST, own: set[str]) -> Iterator[_Setting]:
    """What a node itself sets; `own` are the classes of the program."""
    match node:
        case ast.Call(ast.Attribute(attr="add_argument"), [ast.Constant(str(name)), *_]):
            defaults = (word.value for word in node.keywords if word.arg == "default")
            option = name.lstrip("-").replace("-", "_")
            yield from (("attribute", option, value, node) for value in defaults)
        case ast.Call(ast.Name(name)) if name in own:
            words = (word for word in node.keywords if word.arg)
            yield from (("attribute", str(word.arg), word.value, word) for word in words)
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            rows = ((key.value, value) for key, value in pairs if isinstance(key, ast.Constant))
            yield from (("entry", key, value, node) for key, value in rows if isinstance(key, str))
        case ast.ClassDef():
            for kind, name, value, place in (one for s in node.body for one in _settings(s, own)):
                if kind == "name":
                    yield "attribute", name, value, place
        case ast.arg(name):
            yield "name", name, _UNKNOWN, node
        case _ if isinstance(node, _BINDING):
            yield from _bound(node)


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
    match node:
        case ast.UnaryOp(operand=operand):
            return _is_constant(operand)
        case ast.Tuple(items) | ast.List(items):
            return len(items) <= _MAX_ITEMS and all(map(_is_constant, items))
        case ast.Attribute():
            return bool(_OF_MODULE.fullmatch(ast.unparse(node)))
    return isinstance(node, ast.Constant)
