"""Classes taken apart: short methods and those that are called once in the place of the calls, `__init__` set from outside."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from bot.rules.mends import edits as mends
from bot.rules.reduce.edits import Edit, Piece
from bot.rules.reduce.expressions import name_of
from bot.rules.reduce.splice import Function, Source, held, passed_to, spliced, super_arguments
from bot.rules.reduce.statements import node_of, whole_lines

_CALLED = ("forward", "__call__")
_Class = ast.ClassDef


def edits(sources: list[Source]) -> Iterator[Edit]:
    """Everything of a class that can be put where it is used."""
    count = Counter(node.name for each in sources for node in ast.walk(each.tree) if isinstance(node, Function | ast.ClassDef))
    every = [_uses(source) for source in sources]
    for source, uses in zip(sources, every, strict=True):
        for owner in (each for each in source.tree.body if isinstance(each, _Class)):
            if sum(len(each.get(owner.name, [])) for each in every) == len(uses.get(owner.name, [])):
                yield from _bare(source, owner, uses)
                yield from _parts(source, owner, uses, count)
        for function in source.tree.body:
            if isinstance(function, Function) and count[function.name] == 1 and len(sources) == 1:
                yield from _expressed(source, None, function, uses.get(function.name, []))


def _uses(source: Source) -> dict[str, list[ast.expr]]:
    """Where names, and attributes of anything but an imported module, are read, by their (last) names."""
    imports = [node for node in ast.walk(source.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and name_of(node.value) not in modules:
            found.setdefault(node.attr, []).append(node)
    return found


def _parts(source: Source, owner: _Class, uses: dict[str, list[ast.expr]], count: Counter[str]) -> Iterator[Edit]:
    for method in owner.body:
        if not isinstance(method, Function) or method.decorator_list:
            continue
        calls = [source.parents[each] for each in uses.get(method.name, [])]
        if method.name == "__init__":
            yield from _made(source, owner, method, uses.get(owner.name, []))
        elif method.name in _CALLED:
            yield from _called(source, owner, method, uses.get(owner.name, []))
        elif count[method.name] == 1 and not method.name.startswith("__"):
            yield from _expressed(source, owner, method, uses.get(method.name, []))
            if calls:
                yield from _in_callers(source, owner, method, calls)


def _in_callers(source: Source, owner: _Class, method: Function, calls: list[ast.AST]) -> Iterator[Edit]:
    """A method that is called once, or so short that the program grows by no line."""
    lines = len(method.body)
    if len(calls) * lines > len(calls) + lines + 1:
        return
    pieces = list[Piece]()
    for call in calls:
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == method.name):
            return
        part = spliced(source, method, call, source.text.of(call.func.value)) if _dotted(call.func.value) else None
        if part is None:
            return
        pieces.extend(part)
    yield Edit(f"{owner.name}.{method.name} in its caller", (*pieces, _without(source, owner, method)))


def _dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _dotted(node.value))


def _without(source: Source, owner: _Class, method: ast.stmt) -> Piece:
    """The class without one of its methods."""
    return node_of(source.path, source.text, method, f"{owner.lineno}.body", len(owner.body)).edit.pieces[0]


def _instances(source: Source, uses: list[ast.expr]) -> list[tuple[ast.Call, ast.expr]]:
    """The calls that make instances of a class, and what they are assigned to; none when it is used in another way too."""
    found = list[tuple[ast.Call, ast.expr]]()
    for use in uses:
        call = source.parents[use]
        holder = source.parents[call] if isinstance(call, ast.Call) and call.func is use else None
        if isinstance(call, ast.Call) and isinstance(holder, ast.Assign) and len(holder.targets) == 1 and holder.value is call:
            found.append((call, holder.targets[0]))
    return found if len(found) == len(uses) and all(_dotted(target) for _, target in found) else []


def _made(source: Source, owner: _Class, method: Function, uses: list[ast.expr]) -> Iterator[Edit]:
    """What the instances of a class are made with, set from outside."""
    above = [node for node in ast.walk(method) if isinstance(node, ast.Name) and node.id == "super"]
    skip = int(super_arguments(source.text, method.body[0]) is not None)
    lines, made = len(method.body) - skip, _instances(source, uses)
    if not made or len(above) != skip or len(made) * lines > len(made) + lines + 1:
        return
    pieces = list[Piece]()
    for call, target in made:
        part = spliced(source, method, call, source.text.of(target), made=owner.name)
        if part is None:
            return
        pieces.extend(part)
    yield Edit(f"{owner.name} set from outside", (*pieces, _without(source, owner, method)))


def _called(source: Source, owner: _Class, method: Function, uses: list[ast.expr]) -> Iterator[Edit]:
    """What happens when the only instance of a class is called, where that happens once."""
    call: ast.AST
    made = _instances(source, uses)
    if len(made) > 1:
        return
    if made:
        name = name_of(made[0][1])
        every = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and _dotted(node.func)]
        calls = [node for node in every if name_of(node.func) in {name, "forward"}]
        if len(calls) != 1:
            return
        call, direct = calls[0], isinstance(calls[0].func, ast.Attribute) and calls[0].func.attr == "forward"
        me = source.text.of(calls[0].func).removesuffix(".forward") if direct else source.text.of(calls[0].func)
    else:
        instance = source.parents[uses[0]] if len(uses) == 1 else None
        call = source.parents[instance] if instance is not None else source.tree
        own = method.args.args[0].arg if method.args.args else ""
        if any(isinstance(node, ast.Name) and node.id == own for node in ast.walk(method)) or not isinstance(call, ast.Call):
            return
        me = own if call.func is instance else ""
    pieces = spliced(source, method, call, me) if me and isinstance(call, ast.Call) else None
    if pieces:
        yield Edit(f"{owner.name}.{method.name} in its caller", (*pieces, _without(source, owner, method)))


def _bare(source: Source, owner: _Class, uses: dict[str, list[ast.expr]]) -> Iterator[Edit]:
    """The base class in the place of a class that adds nothing to it."""
    empty = all(isinstance(each, ast.Pass) for each in owner.body)
    if empty and len(owner.bases) == 1 and not owner.keywords and not owner.decorator_list and _dotted(owner.bases[0]):
        base = source.text.of(owner.bases[0])
        pieces = [Piece(source.path, *source.text.span(use), base) for use in uses.get(owner.name, [])]
        yield Edit(f"{base} for {owner.name}", (*pieces, Piece(source.path, *whole_lines(source.text, owner))))


def _expressed(source: Source, owner: _Class | None, function: Function, uses: list[ast.expr]) -> Iterator[Edit]:
    """The expression that is all there is to a function in the place of every call."""
    last = function.body[0]
    if len(function.body) != 1 or not isinstance(last, ast.Return) or last.value is None or function.decorator_list:
        return
    found = [_in_place(source, owner, function, last.value, use) for use in uses]
    pieces = [piece for piece in found if piece is not None]
    if pieces and len(pieces) == len(found):
        gone = Piece(source.path, *whole_lines(source.text, function)) if owner is None else _without(source, owner, function)
        yield Edit(f"{function.name} by its expression", (*pieces, gone), bold=True)


def _in_place(source: Source, owner: _Class | None, function: Function, value: ast.expr, use: ast.expr) -> Piece | None:
    """The value that a function returns in the place of one call."""
    text, call, me = source.text, source.parents[use], use.value if isinstance(use, ast.Attribute) else None
    if not isinstance(call, ast.Call) or call.func is not use or (owner is None) != (me is None):
        return None
    if function in source.above(use):
        return None
    passed = passed_to(text, function, call, bound=owner is not None)
    if passed is None or (me is not None and not (_dotted(me) and function.args.args)):
        return None
    given = dict(passed) | ({function.args.args[0].arg: text.of(me)} if me is not None else {})
    inside = {part for node in ast.walk(value) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    names = [node for node in ast.walk(value) if isinstance(node, ast.Name) and node.id in given]
    if any(node in inside for node in names):
        return None
    start = text.span(value)[0]
    swaps = [(text.span(node)[0] - start, text.span(node)[1] - start, held(given[node.id])) for node in names]
    return Piece(source.path, *text.span(call), held(mends.apply(text.of(value), swaps)))
