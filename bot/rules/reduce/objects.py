"""Objects that only hold values taken apart: attributes become variables, named tuples and data classes plain tuples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.reduce.edits import Edit, Piece
from bot.rules.reduce.expressions import name_of
from bot.rules.reduce.splice import Source
from bot.rules.reduce.statements import whole_lines


def edits(sources: list[Source]) -> Iterator[Edit]:
    """Every class of such objects, and every object of such a class; programs of one file only."""
    if len(sources) != 1:
        return
    (source,) = sources
    yield from _bags(source)
    for owner in source.tree.body:
        if isinstance(owner, ast.ClassDef) and (fields := _fields(source, owner)) is not None:
            calls = _calls(source, owner.name)
            if calls is not None:
                yield from _variables(source, owner, fields, calls)
                yield from _tuples(source, owner, fields, calls)


def _fields(source: Source, owner: ast.ClassDef) -> dict[str, str] | None:
    """The fields of a class with their defaults ("" where there is none); None when it is more than its fields."""
    bases = {source.text.of(base).split(".")[-1] for base in owner.bases}
    marks = {source.text.of(mark).split("(")[0].split(".")[-1] for mark in owner.decorator_list}
    if not (bases <= {"NamedTuple", "object"} and marks <= {"dataclass"} and not owner.keywords):
        return None
    found: dict[str, str] = {}
    for each in owner.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found[each.target.id] = _default(source, each.value) if each.value is not None else ""
        elif not isinstance(each, ast.Pass):
            return None
    return found


def _default(source: Source, value: ast.expr) -> str:
    words = {word.arg: word.value for word in value.keywords} if isinstance(value, ast.Call) else {}
    if "default_factory" in words:
        return f"{source.text.of(words['default_factory'])}()"
    return source.text.of(words.get("default", value))


def _calls(source: Source, name: str) -> list[ast.Call] | None:
    """The calls that make objects of a class; None when it is used in another way too."""
    uses = [node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == name]
    calls = [(use, source.parents[use]) for use in uses]
    made = [call for use, call in calls if isinstance(call, ast.Call) and call.func is use]
    return made if made and len(made) == len(uses) else None


def _given(source: Source, fields: dict[str, str], call: ast.Call) -> dict[str, str] | None:
    """The fields with what is passed for them, in the order of the fields."""
    names = list(fields)
    if any(isinstance(each, ast.Starred) for each in call.args) or any(word.arg not in fields for word in call.keywords):
        return None
    if len(call.args) > len(names):
        return None
    passed = dict(zip(names, (source.text.of(each) for each in call.args), strict=False))
    passed |= {str(word.arg): source.text.of(word.value) for word in call.keywords}
    found = {name: passed.get(name, default) for name, default in fields.items()}
    return found if all(found.values()) else None


def _variables(source: Source, owner: ast.ClassDef, fields: dict[str, str], calls: list[ast.Call]) -> Iterator[Edit]:
    """Each object of a class as variables, where only its attributes are used."""
    for call in calls:
        holder, given = source.parents[call], _given(source, fields, call)
        if isinstance(holder, ast.Assign) and given is not None:
            gone = [Piece(source.path, *whole_lines(source.text, owner))] if len(calls) == 1 else []
            yield from _apart(source, holder, given, gone, alone=len(calls) == 1)


def _bags(source: Source) -> Iterator[Edit]:
    """Objects that are made empty and filled from outside, as variables."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and not (node.value.args or node.value.keywords):
            yield from _apart(source, node, {}, [], alone=False)


def _apart(source: Source, holder: ast.Assign, given: dict[str, str], gone: list[Piece], *, alone: bool) -> Iterator[Edit]:
    """An object that only its attributes are used of; each must be `given` or set in the function that it is made in."""
    target, text, taken, parameters = holder.targets[0], source.text, _taken(source), _parameters(source)
    if len(holder.targets) != 1 or not isinstance(target, ast.Name | ast.Attribute) or name_of(target) in parameters:
        return
    named = [node for node in ast.walk(source.tree) if isinstance(node, type(target)) and name_of(node) == name_of(target)]
    parts = [(source.parents[use], use) for use in named if use is not target]
    held = [part for part, use in parts if isinstance(part, ast.Attribute) and text.of(use) == text.of(target)]
    stored = [part for part in held if not isinstance(part.ctx, ast.Load)]
    if len(held) != len(parts) or any(source.scope(part) is not source.scope(holder) for part in stored):
        return
    if not held or not {part.attr for part in held} <= {*given, *(part.attr for part in stored)}:
        return
    names = {part.attr: f"{name_of(target)}_{part.attr}" if part.attr in taken or not alone else part.attr for part in held}
    lines = [f"{' ' * holder.col_offset}{names[name]} = {value}\n" for name, value in given.items() if name in names]
    made = "".join(lines) or (f"{' ' * holder.col_offset}pass\n" if _only(source, holder) else "")
    pieces = [Piece(source.path, *text.span(part), names[part.attr]) for part in held]
    yield Edit(f"{name_of(target)} as variables", (*pieces, Piece(source.path, *whole_lines(text, holder), made), *gone))


def _taken(source: Source) -> set[str]:
    names = [node for node in ast.walk(source.tree) if isinstance(node, ast.Name)]
    return {node.id for node in names if not isinstance(source.parents[source.parents[node]], ast.ClassDef)} | _parameters(
        source
    )


def _only(source: Source, statement: ast.stmt) -> bool:
    """Whether a statement is all there is in its block."""
    above = source.parents[statement]
    return not isinstance(above, ast.Module) and any(
        getattr(above, name, None) == [statement] for name in ("body", "orelse", "finalbody")
    )


def _parameters(source: Source) -> set[str]:
    return {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}


def _tuples(source: Source, owner: ast.ClassDef, fields: dict[str, str], calls: list[ast.Call]) -> Iterator[Edit]:
    """Objects of a class as tuples, where no attribute of theirs is set later."""
    names, text = list(fields), source.text
    parts = [node for node in ast.walk(source.tree) if isinstance(node, ast.Attribute) and node.attr in fields]
    if not names or any(not isinstance(part.ctx, ast.Load) for part in parts):
        return
    pieces = list[Piece]()
    for call in calls:
        words = [word.arg for word in call.keywords]
        given = _given(source, fields, call)
        if given is None or [*names[: len(call.args)], *words] != names[: len(call.args) + len(words)]:
            return
        rest = [given[name] for name in names[len(call.args) + len(words) :]]
        end = text.span(call)[1] - 1
        more = ", ".join(rest) if not (call.args or words) else "".join(f", {each}" for each in rest)
        comma = "," if len(names) == 1 and text.source[:end].rstrip()[-1:] != "," else ""
        pieces.append(Piece(source.path, *text.span(call.func)))
        names_at = [(text.offset(word.lineno, word.col_offset), text.span(word.value)[0]) for word in call.keywords]
        pieces.extend(Piece(source.path, *span) for span in names_at)
        pieces.append(Piece(source.path, end, end, more + comma))
    for part in parts:
        pieces.append(Piece(source.path, text.span(part.value)[1], text.span(part)[1], f"[{names.index(part.attr)}]"))
    yield Edit(f"{owner.name} as tuples", (*pieces, Piece(source.path, *whole_lines(text, owner))))
