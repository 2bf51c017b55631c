"""Variables that are assigned once, by what is assigned; and what is saved and loaded again, by
what was saved.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.reduce.edits import Reduction, Replacement
from bot.rules.reduce.expressions import MAX_WIDTH, assigned, name_of
from bot.rules.reduce.parsed_file import ParsedFile, own_blocks
from bot.rules.reduce.splice import Function

_WRITES = frozenset({"save", "dump", "dumps", "write"})
_READS = frozenset({"load", "loads", "read"})
_PURE = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)
_Scope = ast.Module | Function


def edits(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Every variable that can go, and every round trip."""
    for file in files:
        yield from _attributes(file)
        for scope in ast.walk(file.tree):
            if isinstance(scope, _Scope):
                yield from _variables(file, scope)
                yield from _round_trips(file, scope)


def substituted(file: ParsedFile, read: ast.expr, value: ast.expr) -> Replacement | None:
    """A value in the place of a name; None where the line would get long or the value has several
    lines.
    """
    text = file.of(value)
    freed = len(read.id) if isinstance(read, ast.Name) else 0
    long = file.width(read) + len(text) - freed > MAX_WIDTH
    return None if "\n" in text or long else file.substitute(read, text)


def _attributes(file: ParsedFile) -> Iterator[Reduction]:
    """Attributes that are set once and read once, by what is set: a layer where it is called."""
    named: dict[str, list[ast.Attribute]] = {}
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute):
            named.setdefault(node.attr, []).append(node)
    for nodes in named.values():
        stores = [node for node in nodes if not isinstance(node.ctx, ast.Load)]
        reads = [node for node in nodes if isinstance(node.ctx, ast.Load)]
        holder = file.parents[stores[0]] if len(stores) == 1 == len(reads) else None
        if not isinstance(holder, ast.Assign) or holder.targets != stores:
            continue
        name = file.of(stores[0])
        if file.of(reads[0]) != name or reads[0] in file.in_f_strings:
            continue
        if (value := substituted(file, reads[0], holder.value)) is not None:
            made = (value, file.remove(holder))
            yield Reduction(f"{name} in its place", made, alters_values=True)


def _variables(file: ParsedFile, scope: _Scope) -> Iterator[Reduction]:
    nodes = list(ast.walk(scope))
    taken = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names: dict[str, list[ast.Name]] = {}
    for node in nodes:
        if isinstance(node, ast.Global | ast.Nonlocal):
            taken.update(node.names)
        elif isinstance(node, ast.Name):
            names.setdefault(node.id, []).append(node)
            if node in file.in_f_strings:
                taken.add(node.id)
    reads = {
        name: [node for node in found if isinstance(node.ctx, ast.Load)]
        for name, found in names.items()
        if name not in taken and sum(not isinstance(node.ctx, ast.Load) for node in found) == 1
    }
    for node in nodes:
        if isinstance(node, ast.Assign) and file.scope(node) is scope:
            yield from _in_its_place(file, node, reads)


def _in_its_place(
    file: ParsedFile, holder: ast.Assign, reads: dict[str, list[ast.Name]]
) -> Iterator[Reduction]:
    """The values of an assignment in the place of its names, where no line gets long by it."""
    pairs = [
        (reads.get(target.id) if isinstance(target, ast.Name) else None, value)
        for target, value in assigned(holder)
    ]
    found, places = list[Replacement | None](), list[ast.Name]()
    for uses, value in pairs:
        if uses is None or (len(uses) > 1 and not _is_pure(value)):
            return
        places += uses
        found += [substituted(file, read, value) for read in uses]
    values = [value for value in found if value is not None]
    if not values or len(values) < len(found):
        return
    near = all(_next_statement(file, holder) in [*file.above(read)] for read in places)
    alters = not near and not all(_is_pure(value) for _, value in pairs)
    made = (*values, file.remove(holder))
    first = name_of(assigned(holder)[0][0])
    yield Reduction(f"{first} in its place", made, alters_values=alters)


def _next_statement(file: ParsedFile, holder: ast.stmt) -> ast.stmt | None:
    body = next(body for body in own_blocks(file.parents[holder]) if holder in body)
    return next(iter(body[body.index(holder) + 1 :]), None)


def _is_pure(node: ast.expr) -> bool:
    """Whether a value is but another name."""
    return all(isinstance(part, _PURE) for part in ast.walk(node))


def _round_trips(file: ParsedFile, scope: _Scope) -> Iterator[Reduction]:
    """What is saved once and loaded once, without the file between."""
    calls = [node for node in ast.walk(scope) if isinstance(node, ast.Call)]
    own = [call for call in calls if file.scope(call) is scope]
    saved = [call for call in own if name_of(call.func) in _WRITES and len(call.args) > 1]
    loaded = [call for call in own if name_of(call.func) in _READS and call.args]
    if len(saved) == 1 == len(loaded) and saved[0].lineno < loaded[0].lineno:
        made = (file.replace(loaded[0], file.of(saved[0].args[0])),)
        yield Reduction("what was saved", made, alters_values=True)
