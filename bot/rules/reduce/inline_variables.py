"""Variables by what is assigned to them, and what is saved and loaded again by what was saved."""

import ast
from collections import Counter
from collections.abc import Iterator

from bot.rules.code.syntax import nodes
from bot.rules.intake.python import name_of
from bot.rules.reduce.edits import ParsedFile, Reduction, Replacement, own_blocks
from bot.rules.reduce.expressions import MAX_WIDTH, assigned
from bot.rules.reduce.splice import Function

_WRITES = frozenset({"save", "dump", "dumps", "write"})
_READS = frozenset({"load", "loads", "read"})
_PURE = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)
_LATER = (Function, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Scope = ast.Module | Function


def edits(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Every variable that can go, every round trip, and every value where it is read next."""
    for file in files:
        yield from _attributes(file)
        for scope in ast.walk(file.tree):
            if isinstance(scope, _Scope):
                yield from _variables(file, scope)
                yield from _round_trips(file, scope)
    for file in files:
        yield from rebound(file)


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
    for node in nodes(file.tree, ast.Attribute):
        named.setdefault(node.attr, []).append(node)
    for every in named.values():
        stores = [node for node in every if not isinstance(node.ctx, ast.Load)]
        reads = [node for node in every if isinstance(node.ctx, ast.Load)]
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
    names = nodes(scope, ast.Name)
    taken = {node.arg for node in nodes(scope, ast.arg)}
    taken |= {name for node in nodes(scope, ast.Global) for name in node.names}
    taken |= {name for node in nodes(scope, ast.Nonlocal) for name in node.names}
    taken |= {node.id for node in names if node in file.in_f_strings}
    stored = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
    reads = {name: list[ast.Name]() for name in stored if stored[name] == 1 and name not in taken}
    for node in names:
        if node.id in reads and isinstance(node.ctx, ast.Load):
            reads[node.id].append(node)
    for holder in nodes(scope, ast.Assign):
        if file.scope(holder) is scope:
            yield from _in_its_place(file, holder, reads)


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
    return all(isinstance(part, _PURE) for part in ast.walk(node))


def _round_trips(file: ParsedFile, scope: _Scope) -> Iterator[Reduction]:
    """What is saved once and loaded once, without the file between."""
    own = [call for call in nodes(scope, ast.Call) if file.scope(call) is scope]
    saved = [call for call in own if name_of(call.func) in _WRITES and len(call.args) > 1]
    loaded = [call for call in own if name_of(call.func) in _READS and call.args]
    if len(saved) == 1 == len(loaded) and saved[0].lineno < loaded[0].lineno:
        made = (file.replace(loaded[0], file.of(saved[0].args[0])),)
        yield Reduction("what was saved", made, alters_values=True)


def rebound(file: ParsedFile) -> Iterator[Reduction]:
    """Values of names that are assigned again and again, as `x` on its way through a model: each
    in the place of its only read before the next one.
    """
    names = nodes(file.tree, ast.Name)
    stored = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
    for block in (block for node in ast.walk(file.tree) for block in own_blocks(node)):
        for at, holder in enumerate(block):
            match holder:
                case ast.Assign([ast.Name(name)]) if stored[name] > 1:
                    yield from _where_read(file, holder, name, block[at + 1 :])


def _where_read(
    file: ParsedFile, holder: ast.Assign, name: str, after: list[ast.stmt]
) -> Iterator[Reduction]:
    reads, rebound = _next_reads(after, name)
    if len(reads) != 1:
        return
    place, read = reads[0]
    value = substituted(file, read, holder.value)
    if value is not None and _is_readable(file, read, after[place]):
        made, alters = (value, file.remove(holder)), place > 0 or not rebound
        yield Reduction(f"{name} where it is read", made, alters_values=alters)


def _next_reads(after: list[ast.stmt], name: str) -> tuple[list[tuple[int, ast.Name]], bool]:
    """Where a name is read before a statement sets it again, with the numbers of the statements,
    and whether one does; nothing where that depends on more than the order of the statements.
    """
    found = list[tuple[int, ast.Name]]()
    for place, statement in enumerate(after):
        names = [node for node in nodes(statement, ast.Name) if node.id == name]
        found += [(place, node) for node in names if isinstance(node.ctx, ast.Load)]
        if any(not isinstance(node.ctx, ast.Load) for node in names):
            targets = statement.targets if isinstance(statement, ast.Assign) else [None]
            plain = all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
            return (found, True) if plain else ([], False)
    return found, False


def _is_readable(file: ParsedFile, read: ast.Name, statement: ast.stmt) -> bool:
    """Whether another text may stand there: not in an f-string, nor in what runs later."""
    inside = [*file.above(read)]
    within = inside[: inside.index(statement) + 1]
    return read not in file.in_f_strings and not any(isinstance(node, _LATER) for node in within)
