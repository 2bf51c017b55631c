"""Objects that only hold values taken apart: attributes become variables, named tuples and data
classes plain tuples.
"""

import ast
from collections.abc import Iterator, Mapping

from bot.rules.code.syntax import nodes
from bot.rules.intake.python import name_of
from bot.rules.reduce.edits import ParsedFile, Reduction, Replacement

_Fields = dict[str, str]
"""The fields of a class with their defaults, "" where there is none."""


def edits(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Every class of such objects, and every object of such a class; programs of one file only."""
    for file in files if len(files) == 1 else []:
        for holder in nodes(file.tree, ast.Assign):
            made = holder.value
            if isinstance(made, ast.Call) and not (made.args or made.keywords):
                yield from _apart(file, holder, {}, None)  # made empty and filled from outside
        for owner in file.tree.body:
            if isinstance(owner, ast.ClassDef) and (fields := _fields(file, owner)) is not None:
                calls = _calls(file, owner.name)
                yield from _variables(file, owner, fields, calls)
                yield from _tuples(file, owner, fields, calls)


def _fields(file: ParsedFile, owner: ast.ClassDef) -> _Fields | None:
    """None for a class that is more than its fields."""
    bases = {file.of(base).split(".")[-1] for base in owner.bases}
    marks = {file.of(mark).split("(")[0].split(".")[-1] for mark in owner.decorator_list}
    if not (bases <= {"NamedTuple", "object"} and marks <= {"dataclass"} and not owner.keywords):
        return None
    fields = _Fields()
    for statement in owner.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            fields[statement.target.id] = _default(file, statement.value)
        elif not isinstance(statement, ast.Pass):
            return None
    return fields


def _default(file: ParsedFile, value: ast.expr | None) -> str:
    if value is None:
        return ""
    words = {word.arg: word.value for word in value.keywords} if isinstance(value, ast.Call) else {}
    if "default_factory" in words:
        return f"{file.of(words['default_factory'])}()"
    return file.of(words.get("default", value))


def _calls(file: ParsedFile, name: str) -> list[ast.Call]:
    """The calls that make objects of a class; [] when the class is used in another way too."""
    uses = [node for node in nodes(file.tree, ast.Name) if node.id == name]
    calls = [call for use in uses if isinstance(call := file.parents[use], ast.Call)]
    every = len(calls) == len(uses) and all(call.func in uses for call in calls)
    return calls if every else []


def _passed(file: ParsedFile, fields: _Fields, call: ast.Call) -> _Fields | None:
    """The fields with what a call passes for them, in the order of the fields."""
    starred = any(isinstance(value, ast.Starred) for value in call.args)
    unknown = any(word.arg not in fields for word in call.keywords)
    if starred or unknown or len(call.args) > len(fields):
        return None
    passed = dict(zip(fields, map(file.of, call.args), strict=False))
    passed |= {str(word.arg): file.of(word.value) for word in call.keywords}
    found = fields | passed
    return found if all(found.values()) else None


def _variables(
    file: ParsedFile, owner: ast.ClassDef, fields: _Fields, calls: list[ast.Call]
) -> Iterator[Reduction]:
    """Each object of a class as variables, where only its attributes are used."""
    for call in calls:
        holder, values = file.parents[call], _passed(file, fields, call)
        if isinstance(holder, ast.Assign) and values is not None:
            yield from _apart(file, holder, values, owner if len(calls) == 1 else None)


def _apart(
    file: ParsedFile, holder: ast.Assign, values: Mapping[str, str], owner: ast.ClassDef | None
) -> Iterator[Reduction]:
    """An object of which only attributes are used, each passed or set in the function that makes
    the object. The `owner` goes too, where this is its only object.
    """
    target, taken = holder.targets[0], _taken(file)
    parts = _attributes(file, target)
    if not parts or len(holder.targets) > 1 or name_of(target) in _parameters(file):
        return
    stored = [part for part in parts if not isinstance(part.ctx, ast.Load)]
    known = {*values, *(part.attr for part in stored)}
    elsewhere = any(file.scope(part) is not file.scope(holder) for part in stored)
    if elsewhere or not known.issuperset(part.attr for part in parts):
        return
    names = {part.attr: part.attr for part in parts}
    for name in names:
        if owner is None or name in taken:
            names[name] = f"{name_of(target)}_{name}"
    margin = " " * holder.col_offset
    made = [f"{margin}{names[name]} = {value}\n" for name, value in values.items() if name in names]
    new = file.replace_lines(holder, "".join(made)) if made else file.remove(holder)
    reads = [file.replace(part, names[part.attr]) for part in parts]
    gone = [file.remove(owner)] if owner is not None else []
    yield Reduction(f"{name_of(target)} as variables", (*reads, new, *gone))


def _attributes(file: ParsedFile, target: ast.expr) -> list[ast.Attribute]:
    """Where attributes of an object are used; [] when the object is used in another way too."""
    if not isinstance(target, ast.Name | ast.Attribute):
        return []
    alike = nodes(file.tree, type(target))
    uses = [node for node in alike if name_of(node) == name_of(target) and node is not target]
    if any(file.of(use) != file.of(target) for use in uses):
        return []
    parts = [file.parents[use] for use in uses]
    found = [part for part in parts if isinstance(part, ast.Attribute)]
    return found if len(found) == len(parts) else []


def _taken(file: ParsedFile) -> set[str]:
    above = [(name.id, file.parents[file.parents[name]]) for name in nodes(file.tree, ast.Name)]
    return {name for name, node in above if type(node) is not ast.ClassDef} | _parameters(file)


def _parameters(file: ParsedFile) -> set[str]:
    return {node.arg for node in nodes(file.tree, ast.arg)}


def _tuples(
    file: ParsedFile, owner: ast.ClassDef, fields: _Fields, calls: list[ast.Call]
) -> Iterator[Reduction]:
    """Objects of a class as tuples, where no attribute of theirs is set later."""
    names = list(fields)
    parts = [node for node in nodes(file.tree, ast.Attribute) if node.attr in fields]
    stored = any(not isinstance(part.ctx, ast.Load) for part in parts)
    made = [list(_as_tuple(file, fields, call)) for call in calls]
    if not made or not names or stored or not all(made):
        return
    read = [
        file.cut(file.span(part.value)[1], file.span(part)[1], f"[{names.index(part.attr)}]")
        for part in parts
    ]
    pieces = (piece for tuple_ in made for piece in tuple_)
    yield Reduction(f"{owner.name} as tuples", (*pieces, *read, file.remove(owner)))


def _as_tuple(file: ParsedFile, fields: _Fields, call: ast.Call) -> Iterator[Replacement]:
    """A call as a tuple; nothing where its arguments are not in the order of the fields."""
    names, values = list(fields), _passed(file, fields, call)
    order = [*names[: len(call.args)], *(word.arg for word in call.keywords)]
    if values is None or order != names[: len(order)]:
        return
    yield file.replace(call.func, "")
    for word in call.keywords:
        yield file.cut(file.span(word)[0], file.span(word.value)[0])
    end, rest = file.span(call)[1] - 1, [values[name] for name in names[len(order) :]]
    lead = ", " if rest and order else ""
    comma = "," if len(names) == 1 and file.source[:end].rstrip()[-1:] != "," else ""
    yield file.cut(end, end, lead + ", ".join(rest) + comma)
