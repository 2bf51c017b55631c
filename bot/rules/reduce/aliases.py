"""Variables that are assigned once, by what is assigned; and what is written and read back, by what was written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.reduce.edits import Edit, Piece
from bot.rules.reduce.expressions import name_of
from bot.rules.reduce.splice import Function, Source
from bot.rules.reduce.statements import node_of

_WRITES, _READS = frozenset({"save", "dump", "dumps", "write"}), frozenset({"load", "loads", "read"})
_WIDE = 110
_Pairs = list[tuple[str, ast.expr]]
_PURE = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)


def edits(sources: list[Source]) -> Iterator[Edit]:
    """Every variable that can go, and every round trip."""
    for source in sources:
        yield from _attributes(source)
        for scope in ast.walk(source.tree):
            if not isinstance(scope, ast.Module | Function):
                continue
            yield from _variables(source, scope)
            yield from _round_trips(source, scope)


def _attributes(source: Source) -> Iterator[Edit]:
    """Attributes that are set once and read once, by what is set: a layer where it is called."""
    named: dict[str, list[ast.Attribute]] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            named.setdefault(node.attr, []).append(node)
    for several in named.values():
        stores = [node for node in several if not isinstance(node.ctx, ast.Load)]
        reads = [node for node in several if isinstance(node.ctx, ast.Load)]
        holder = source.parents[stores[0]] if len(stores) == 1 == len(reads) else None
        if not isinstance(holder, ast.Assign) or holder.targets != stores:
            continue
        value, line = source.text.of(holder.value), source.text.source.splitlines()[reads[0].lineno - 1]
        if (
            "\n" in value
            or len(line) + len(value) > _WIDE
            or any(isinstance(each, ast.JoinedStr) for each in source.inside(reads[0]))
        ):
            continue
        gone = _gone(source, holder)
        if gone is not None and source.text.of(stores[0]) == source.text.of(reads[0]):
            piece = Piece(source.path, *source.text.span(reads[0]), source.as_read(reads[0], value))
            yield Edit(f"{source.text.of(stores[0])} in its place", (piece, gone), bold=True)


def _gone(source: Source, holder: ast.stmt) -> Piece | None:
    """What takes a statement away."""
    block = _block(source, holder)
    if block is None:
        return None
    part, several = block
    above = source.parents[holder]
    label = "" if isinstance(above, ast.Module) else f"{getattr(above, 'lineno', 0)}.{part}"
    return node_of(source.path, source.text, holder, label, len(several)).edit.pieces[0]


def _block(source: Source, holder: ast.stmt) -> tuple[str, list[ast.stmt]] | None:
    """The block that a statement stands in, and which one of its statement's that is."""
    above = source.parents[holder]
    blocks = [(part, getattr(above, part, [])) for part in ("body", "orelse", "finalbody")]
    return next(((part, block) for part, block in blocks if isinstance(block, list) and holder in block), None)


def _variables(source: Source, scope: ast.Module | Function) -> Iterator[Edit]:
    inside = {part for node in ast.walk(scope) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    taken = {node.arg for node in ast.walk(scope) if isinstance(node, ast.arg)}
    taken |= {name for node in ast.walk(scope) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    names: dict[str, list[ast.Name]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Name):
            names.setdefault(node.id, []).append(node)
    once = {name for name, nodes in names.items() if sum(not isinstance(node.ctx, ast.Load) for node in nodes) == 1}
    once -= taken | {node.id for node in inside if isinstance(node, ast.Name)}
    for holder in [node for node in ast.walk(scope) if isinstance(node, ast.Assign) and source.scope(node) is scope]:
        pairs = _pairs(holder)
        reads = {name: [node for node in names[name] if isinstance(node.ctx, ast.Load)] for name, _ in pairs}
        single = {name for name, _ in pairs} <= once and all(len(reads[name]) <= 1 or _pure(value) for name, value in pairs)
        if single and any(reads.values()):
            yield from _put(source, holder, pairs, reads)


def _pairs(holder: ast.Assign) -> _Pairs:
    """The names that are set with their values."""
    target, value = holder.targets[0], holder.value
    if len(holder.targets) == 1 and isinstance(target, ast.Name):
        return [(target.id, value)]
    if len(holder.targets) > 1 or not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return []
    pairs = [(part.id, each) for part, each in zip(target.elts, value.elts, strict=False) if isinstance(part, ast.Name)]
    return pairs if len(pairs) == len(target.elts) == len(value.elts) else []


def _pure(node: ast.expr) -> bool:
    """Whether a value is but another name."""
    return all(isinstance(each, _PURE) for each in ast.walk(node))


def _put(source: Source, holder: ast.Assign, pairs: _Pairs, reads: dict[str, list[ast.Name]]) -> Iterator[Edit]:
    """The values in the place of the names, where no line gets long by it."""
    pieces, lines = list[Piece](), source.text.source.splitlines()
    found, gone = _block(source, holder), _gone(source, holder)
    for name, node in pairs:
        value = source.text.of(node)
        if "\n" in value or any(len(lines[read.lineno - 1]) + len(value) - len(name) > _WIDE for read in reads[name]):
            return
        pieces += [Piece(source.path, *source.text.span(read), source.as_read(read, value)) for read in reads[name]]
    if found is None or gone is None:
        return
    after = found[1][found[1].index(holder) + 1 :]
    near = bool(after) and all(after[0] in source.above(read) for name, _ in pairs for read in reads[name])
    plain = near or all(_pure(value) for _, value in pairs)
    yield Edit(f"{pairs[0][0]} in its place", (*pieces, gone), bold=not plain)


def _round_trips(source: Source, scope: ast.Module | Function) -> Iterator[Edit]:
    """What is saved once and loaded once, without the way over a file."""
    calls = [node for node in ast.walk(scope) if isinstance(node, ast.Call) and source.scope(node) is scope]
    saved = [call for call in calls if name_of(call.func) in _WRITES and len(call.args) > 1]
    loaded = [call for call in calls if name_of(call.func) in _READS and call.args]
    if len(saved) == 1 == len(loaded) and saved[0].lineno < loaded[0].lineno:
        value = source.text.of(saved[0].args[0])
        yield Edit("what was saved", (Piece(source.path, *source.text.span(loaded[0]), value),), bold=True)
