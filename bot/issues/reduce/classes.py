"""Classes and objects taken apart: attributes become variables, methods stand in the place
of their calls.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bot.environment.imports import apply
from bot.issues.reduce.edits import ParsedFile, Reduction, Replacement, parenthesised
from bot.issues.reduce.statements import Function, arguments_of, spliced, super_arguments
from bot.kernel.source.syntax import name_of, nodes

# Objects that only hold values taken apart: attributes become variables, named tuples and data
# classes plain tuples.

_Fields = dict[str, str]
"""The fields of a class with their defaults, "" where there is none."""


def object_edits(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Every class of such objects, and every object of such a class; programs of one file only."""
    for file in files if len(files) == 1 else []:
        for holder in nodes(file.tree, ast.Assign):
            call = holder.value
            if isinstance(call, ast.Call) and not (call.args or call.keywords):
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
    has_stars = any(isinstance(value, ast.Starred) for value in call.args)
    unknown = any(word.arg not in fields for word in call.keywords)
    if has_stars or unknown or len(call.args) > len(fields):
        return None
    passed = dict(zip(fields, map(file.of, call.args), strict=False))
    passed |= {str(word.arg): file.of(word.value) for word in call.keywords}
    values = fields | passed
    return values if all(values.values()) else None


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
    target, names_in_file = holder.targets[0], _names_in_file(file)
    parts = _attributes(file, target)
    if not parts or len(holder.targets) > 1 or name_of(target) in _parameters(file):
        return
    stores = [part for part in parts if not isinstance(part.ctx, ast.Load)]
    attribute_names = {*values, *(part.attr for part in stores)}
    elsewhere = any(file.scope(part) is not file.scope(holder) for part in stores)
    if elsewhere or not attribute_names.issuperset(part.attr for part in parts):
        return
    names = {part.attr: part.attr for part in parts}
    for name in names:
        if owner is None or name in names_in_file:
            names[name] = f"{name_of(target)}_{name}"
    margin = " " * holder.col_offset
    assignments = [
        f"{margin}{names[name]} = {value}\n" for name, value in values.items() if name in names
    ]
    new = file.replace_lines(holder, "".join(assignments)) if assignments else file.remove(holder)
    reads = [file.replace(part, names[part.attr]) for part in parts]
    removals = [file.remove(owner)] if owner is not None else []
    yield Reduction(f"{name_of(target)} as variables", (*reads, new, *removals))


def _attributes(file: ParsedFile, target: ast.expr) -> list[ast.Attribute]:
    """Where attributes of an object are used; [] when the object is used in another way too."""
    if not isinstance(target, ast.Name | ast.Attribute):
        return []
    alike = nodes(file.tree, type(target))
    uses = [node for node in alike if name_of(node) == name_of(target) and node is not target]
    if any(file.of(use) != file.of(target) for use in uses):
        return []
    parts = [file.parents[use] for use in uses]
    attributes = [part for part in parts if isinstance(part, ast.Attribute)]
    return attributes if len(attributes) == len(parts) else []


def _names_in_file(file: ParsedFile) -> set[str]:
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
    is_stored = any(not isinstance(part.ctx, ast.Load) for part in parts)
    tuples = [list(_as_tuple(file, fields, call)) for call in calls]
    if not tuples or not names or is_stored or not all(tuples):
        return
    accesses = [
        file.cut(file.span(part.value)[1], file.span(part)[1], f"[{names.index(part.attr)}]")
        for part in parts
    ]
    pieces = (piece for tuple_ in tuples for piece in tuple_)
    yield Reduction(f"{owner.name} as tuples", (*pieces, *accesses, file.remove(owner)))


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


# Classes taken apart: methods that are short or called once in the place of the calls, and
# `__init__` done from outside.

_CALL_METHODS = ("forward", "__call__")
_Class = ast.ClassDef
_Reads = Mapping[str, list[ast.expr]]


def method_edits(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Everything of a class that can be put where it is used."""
    every = (node for file in files for node in ast.walk(file.tree))
    count = Counter(node.name for node in every if isinstance(node, Function | _Class))
    reads_by_file = [_reads(file) for file in files]
    for file, reads in zip(files, reads_by_file, strict=True):
        elsewhere = {name for other in reads_by_file if other is not reads for name in other}
        for node in file.tree.body:
            if isinstance(node, _Class) and node.name not in elsewhere:
                yield from _base_class(file, node, reads)
                yield from _parts(file, node, reads, count)
            elif isinstance(node, Function) and count[node.name] == 1 and len(files) == 1:
                yield from _as_expression(file, node, reads.get(node.name, []), method=False)


def _reads(file: ParsedFile) -> _Reads:
    """Where names, and attributes of anything but an imported module, are read."""
    by_name = dict[str, list[ast.expr]]()
    aliases = nodes(file.tree, ast.alias)
    modules = {(alias.asname or alias.name).split(".")[0] for alias in aliases}
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node, ast.Name) or name_of(node.value) not in modules:
            by_name.setdefault(name_of(node), []).append(node)
    return by_name


def _parts(
    file: ParsedFile, owner: _Class, reads: _Reads, count: Counter[str]
) -> Iterator[Reduction]:
    constructions = reads.get(owner.name, [])
    for method in owner.body:
        if not isinstance(method, Function) or method.decorator_list:
            continue
        uses = reads.get(method.name, [])
        if method.name == "__init__":
            yield from _init_outside(file, owner, method, constructions)
        elif method.name in _CALL_METHODS:
            yield from _instance_called(file, owner, method, constructions)
        elif count[method.name] == 1 and not method.name.startswith("__"):
            yield from _as_expression(file, method, uses, method=True)
            calls = [(file.parents[use], getattr(use, "value", use)) for use in uses]
            if all(_is_dotted(me) and _calls_on(call, me) for call, me in calls):
                what = f"{owner.name}.{method.name} in its caller"
                calls_and_texts = [(call, file.of(me)) for call, me in calls]
                yield from _in_callers(file, method, what, calls_and_texts)


def _calls_on(call: ast.AST, me: ast.expr) -> bool:
    return isinstance(call, ast.Call) and getattr(call.func, "value", None) is me


def _in_callers(
    file: ParsedFile,
    method: Function,
    what: str,
    calls: Sequence[tuple[ast.AST, str]],
    result_name: str = "",
    skipped: int = 0,
) -> Iterator[Reduction]:
    """A method in the place of its calls, where the program grows by no line; `calls` come with
    what they are made on. `skipped` statements of the method are not moved.
    """
    lines = len(method.body) - skipped
    if not calls or len(calls) * lines > len(calls) + lines + 1:
        return
    bodies = [
        spliced(file, method, call, me, result_name) if isinstance(call, ast.Call) else ()
        for call, me in calls
    ]
    if all(bodies):
        pieces = (piece for body in bodies for piece in body)
        yield Reduction(what, (*pieces, file.remove(method)))


def _is_dotted(node: ast.expr) -> bool:
    parts = (ast.Name, ast.Attribute, ast.expr_context)
    return all(isinstance(part, parts) for part in ast.walk(node))


def _instances(file: ParsedFile, uses: list[ast.expr]) -> list[tuple[ast.AST, ast.expr]]:
    """The calls that make instances of a class, and what they are assigned to; [] when the class
    is used in another way too.
    """
    instances = list[tuple[ast.AST, ast.expr]]()
    for use in uses:
        call = file.parents[use]
        match file.parents.get(call):
            case ast.Assign([target], ast.Call(function)) if function is use and _is_dotted(target):
                instances.append((call, target))
            case _:
                return []
    return instances


def _init_outside(
    file: ParsedFile, owner: _Class, method: Function, uses: list[ast.expr]
) -> Iterator[Reduction]:
    """What the instances of a class are made with, set from outside."""
    above = sum(node.id == "super" for node in nodes(method, ast.Name))
    skipped = int(super_arguments(file, method) is not None)
    if above == skipped:
        calls_and_names = [(call, file.of(target)) for call, target in _instances(file, uses)]
        what = f"{owner.name} set from outside"
        yield from _in_callers(file, method, what, calls_and_names, owner.name, skipped)


def _instance_called(
    file: ParsedFile, owner: _Class, method: Function, uses: list[ast.expr]
) -> Iterator[Reduction]:
    """What happens when the only instance of a class is called, where that happens once."""
    instances = _instances(file, uses)
    if len(instances) == 1:
        call, me = _only_call(file, name_of(instances[0][1]))
    elif instances or len(uses) != 1:
        return
    else:
        call, me = _direct_call(file, method, uses[0])
    if me and isinstance(call, ast.Call) and (body := spliced(file, method, call, me)):
        what = f"{owner.name}.{method.name} in its caller"
        yield Reduction(what, (*body, file.remove(method)))


def _only_call(file: ParsedFile, name: str) -> tuple[ast.AST | None, str]:
    """The only call of a named instance, and what it is made on."""
    dotted_calls = [node for node in nodes(file.tree, ast.Call) if _is_dotted(node.func)]
    calls = [node for node in dotted_calls if name_of(node.func) in {name, "forward"}]
    if len(calls) != 1:
        return None, ""
    return calls[0], file.of(calls[0].func).removesuffix(".forward")


def _direct_call(file: ParsedFile, method: Function, use: ast.expr) -> tuple[ast.AST | None, str]:
    """The call of an instance in the expression that makes it, where the method does not read its
    object.
    """
    instance = file.parents[use]
    call = file.parents.get(instance)
    own = method.args.args[0].arg if method.args.args else ""
    names = {node.id for node in nodes(method, ast.Name)}
    is_called = getattr(call, "func", None) is instance
    return call, own if is_called and own not in names else ""


def _base_class(file: ParsedFile, owner: _Class, reads: _Reads) -> Iterator[Reduction]:
    """The base class in the place of a class that adds nothing to it."""
    plain = not owner.keywords and not owner.decorator_list and len(owner.bases) == 1
    if plain and _is_dotted(owner.bases[0]) and all(type(one) is ast.Pass for one in owner.body):
        base = file.of(owner.bases[0])
        uses = (file.replace(use, base) for use in reads.get(owner.name, []))
        yield Reduction(f"{base} for {owner.name}", (*uses, file.remove(owner)))


def _as_expression(
    file: ParsedFile, function: Function, uses: list[ast.expr], *, method: bool
) -> Iterator[Reduction]:
    """The expression that is all there is to a function, in the place of every call."""
    value = function.body[0].value if isinstance(function.body[0], ast.Return) else None
    if len(function.body) != 1 or value is None or function.decorator_list:
        return
    candidates = [_in_place(file, function, value, use, method=method) for use in uses]
    pieces = [piece for piece in candidates if piece is not None]
    if pieces and len(pieces) == len(candidates):
        replacements = (*pieces, file.remove(function))
        yield Reduction(f"{function.name} by its expression", replacements, alters_values=True)


def _in_place(
    file: ParsedFile, function: Function, value: ast.expr, use: ast.expr, *, method: bool
) -> Replacement | None:
    """The value that a function returns in the place of one call."""
    call, me = file.parents[use], getattr(use, "value", None)
    if not isinstance(call, ast.Call) or call.func is not use or (me is not None) != method:
        return None
    arguments = arguments_of(file, function, call, method)
    if arguments is None or function in file.above(use) or (me and not _is_dotted(me)):
        return None
    values = dict(arguments)
    if me is not None:
        values[function.args.args[0].arg] = file.of(me)
    names = [node for node in nodes(value, ast.Name) if node.id in values]
    if not file.in_f_strings.isdisjoint(names):
        return None
    start, swaps = file.span(value)[0], list[tuple[int, int, str]]()
    for name in names:
        first, last = file.span(name)
        swaps.append((first - start, last - start, parenthesised(values[name.id])))
    return file.replace(call, parenthesised(apply(file.of(value), swaps)))
