"""Names and attributes that come to mean another thing in a changed program, so that what looks like the operation is none."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator

from bot.rules.patches import shape
from bot.rules.patches.operation import MAKES, Operation, places

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PLAIN = (
    ast.Constant,
    ast.UnaryOp,
    ast.BinOp,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)
# Methods by which a container of a library is changed from outside.
_MUTATES = frozenset({"update", "setdefault", "pop", "popitem", "clear"})
_ADDS = frozenset({"append", "extend", "insert", "remove", "add", "discard"})


def objections(before: ast.Module, after: ast.Module, operation: Operation) -> Iterator[str]:
    """Names of imports, definitions, built-ins and of what does the operation must go on standing for what they stood for."""
    old = shape.imports(before)
    ours = {name for name, _ in old} | _defined(before)
    fixed = ours | set(dir(builtins))
    for name, dotted in dict.fromkeys(each for each in shape.imports(after) if each not in old):
        if name in fixed | set(_set(before)):
            yield f"It makes `{name}` stand for another thing, `{dotted}`."
    for name in _set(after) - _set(before):
        if name in fixed:
            yield f"It makes `{name}` stand for another thing."
    aliases = ours | _aliases(before) | _aliases(after)
    for text, _ in _stores(after, aliases) - _stores(before, aliases):
        yield f"It replaces `{text}`, a part of a library, of an object or of the program's own definitions."
    for text in _mutations(after, aliases) - _mutations(before, aliases):
        yield f"It changes a part of a library from outside: `{text[:100]}`."
    doers = {text for place in places(operation, before) for call in _ours(operation, place) for text in _chain(call.func)}
    for name, maker in _makers(after, doers) - _makers(before, doers):
        if not (maker.startswith(f"{name}.") and maker.endswith("()")):
            yield f"It has `{name}`, which does the operation, made by `{maker[:100]}`."
    for name, part in _parts(before, doers) - _parts(after, doers):
        yield f"It has `{name}`, which does the operation, made without `{part}`."


def _defined(tree: ast.Module) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}


def _set(tree: ast.Module) -> Counter[str]:
    return Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _aliases(tree: ast.Module) -> set[str]:
    """Names that are set to an import, to a part of one, or to such a name, at whatever place."""
    held = set(shape.imported(tree)) | _defined(tree)
    while True:
        more = {target.id for target, value in _targets(tree) if isinstance(target, ast.Name) and _part(value, held)} - held
        if not more:
            return held
        held |= more


def _part(value: ast.expr | None, held: set[str]) -> bool:
    """Whether a value is one of those names, an attribute of one, or a tuple or a choice that has one in it."""
    if value is None or isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.NamedExpr):
        inner = value.value if isinstance(value, ast.NamedExpr) else value
        return (
            inner is not None and not any(isinstance(each, ast.Call) for each in ast.walk(inner)) and shape.root(inner) in held
        )
    parts = ast.iter_child_nodes(value) if isinstance(value, ast.Tuple | ast.List | ast.IfExp | ast.BoolOp) else ()
    return any(isinstance(each, ast.expr) and _part(each, held) for each in parts)


def _targets(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Every place that is set, with the value that it is set to, or that it is taken from; None for a context."""
    pairs: list[tuple[ast.expr, ast.expr | None]]
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=several, value=value):
                pairs = [(each, value) for each in several]
            case ast.AnnAssign() | ast.NamedExpr() | ast.AugAssign():
                pairs = [(node.target, node.value)]
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                pairs = [(node.target, node.iter)]
            case ast.withitem(optional_vars=ast.expr() as target):
                pairs = [(target, None)]
            case ast.Delete(targets=several):
                pairs = [(each, None) for each in several]
            case _:
                continue
        for target, given in pairs:
            yield from _unpacked(target, given)


def _unpacked(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, ast.Tuple | ast.List | ast.Starred):
        yield target, value
        return
    inner = [target.value] if isinstance(target, ast.Starred) else target.elts
    values = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(inner) else [value] * len(inner)
    for each, given in zip(inner, values, strict=True):
        yield from _unpacked(each, given)


def _stores(tree: ast.Module, aliases: set[str]) -> Counter[tuple[str, str]]:
    """Attributes and items that are set where that can replace what a library or an object does, each with what makes its
    value: all of libraries and definitions; of other objects those set to no plain value, or reached by a call or an item.
    """
    found = Counter[tuple[str, str]]()
    for target, value in _targets(tree):
        if isinstance(target, ast.Name) and value is not None and _in_class(tree, target):
            found[target.id, _maker(value)] += not _plain(value)
        if not isinstance(target, ast.Attribute | ast.Subscript):
            continue
        steps = list(_steps(target.value))
        attribute = isinstance(target, ast.Attribute)
        reached = any(isinstance(each, ast.Call | ast.Subscript if attribute else ast.Call) for each in steps)
        inside = attribute or any(isinstance(each, ast.Attribute) for each in steps)
        foreign = shape.root(target) in aliases or not shape.root(target) or reached
        if foreign or (inside and not (value is not None and _plain(value))):
            found[ast.unparse(target), _maker(value)] += 1
    return found


def _in_class(tree: ast.Module, target: ast.Name) -> bool:
    bodies = (each for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for each in node.body)
    return any(node is target for each in bodies if isinstance(each, ast.Assign | ast.AnnAssign) for node in ast.walk(each))


def _plain(value: ast.expr) -> bool:
    return all(isinstance(node, _PLAIN) for node in ast.walk(value))


def _maker(value: ast.expr | None) -> str:
    """What makes a value: the first call of a chain, without its arguments; of what is no call, its text. What only makes data,
    and plain values, are all the same.
    """
    if value is None:
        return "a context"
    if not isinstance(value, ast.Call):
        return "" if _plain(value) else ast.unparse(value)
    name = shape.called(value).split("()")[0]
    return "" if name.rsplit(".", 1)[-1] in MAKES else f"{name}()"


def _steps(node: ast.expr) -> Iterator[ast.expr]:
    yield node
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
        yield node


def _mutations(tree: ast.Module, aliases: set[str]) -> Counter[str]:
    """Calls that change a container of a library; `np.append(a, b)` is none, as something is done with what it gives."""
    alone = {id(each.value) for each in shape.statements(tree) if isinstance(each, ast.Expr)}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    return Counter(
        ast.unparse(call)
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and (call.func.attr in _MUTATES or (call.func.attr in _ADDS and id(call) in alone))
        and isinstance(call.func.value, ast.Attribute | ast.Name)
        and shape.root(call.func) in aliases
    )


def _ours(operation: Operation, place: ast.stmt) -> list[ast.Call]:
    return [each for each in shape.calls(place) if shape.called(each) in operation.calls] or shape.spine(place)


def _chain(func: ast.expr) -> set[str]:
    """What a call hangs on: of `self.net.run(x)` these are `self`, `self.net` and `self.net.run`."""
    return {ast.unparse(each) for each in _steps(func) if isinstance(each, ast.Name | ast.Attribute)}


def _makers(tree: ast.Module, doers: set[str]) -> Counter[tuple[str, str]]:
    """What sets each of these names."""
    pairs = ((ast.unparse(target), _maker(value)) for target, value in _targets(tree))
    return Counter((text, maker) for text, maker in pairs if text in doers and maker)


def _parts(tree: ast.Module, doers: set[str]) -> Counter[tuple[str, str]]:
    """Every call in what sets one of these names, such as those of the layers of a network."""
    rows = ((ast.unparse(target), value) for target, value in _targets(tree))
    values = ((text, value) for text, value in rows if text in doers and value is not None)
    calls = ((text, shape.called(node)) for text, value in values for node in ast.walk(value) if isinstance(node, ast.Call))
    return Counter((text, name) for text, name in calls if name.rsplit(".", 1)[-1] not in MAKES)
