"""Replaces names by their values: settings by constants, variables by what is assigned,
functions by their bodies.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from bot.environment.imports import Positioned, apply
from bot.issues.reduce import classes
from bot.issues.reduce.edits import (
    Files,
    ParsedFile,
    Reduction,
    Replacement,
    module_name,
    own_blocks,
    parsed_files,
)
from bot.issues.reduce.expressions import MAX_WIDTH, assignment_pairs, with_comma
from bot.issues.reduce.statements import Function, importing, spliced
from bot.kernel.source.syntax import name_of, nodes

# Settings by their constants: names, attributes and dictionary entries that are set once.

_UNKNOWN = ast.Name("?")
_OF_MODULE = re.compile(r"(?:torch|np|numpy|tf|jnp)(?:\.\w+)+")
_MAX_ITEMS = 3
_NAMESPACES = {"Namespace", "SimpleNamespace"}
_BINDING = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.withitem, ast.comprehension)
_Import = ast.Import | ast.ImportFrom
_Setting = tuple[str, str, ast.expr, ast.AST]
"""The kind, the name, the value, and the node that sets it."""


def setting_edits(files: list[ParsedFile]) -> Iterator[Reduction]:
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
            if isinstance(node, ast.expr) and _access_of(node, ast.Load) == (kind, name)
        ]
        sets = [file.remove(place) for file, _, place in rows if isinstance(place, ast.stmt)]
        if reads:
            replacements = (*reads, *sets) if kind == "name" else tuple(reads)
            yield Reduction(f"{name} by its value", replacements)


def _access_of(node: ast.AST, context: type[ast.expr_context]) -> tuple[str, str] | None:
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
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if name in own | _NAMESPACES:
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
            yield from _bindings(node)


def _bindings(node: ast.AST) -> Iterator[_Setting]:
    single = getattr(node, "target", None) or getattr(node, "optional_vars", None)
    value = getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign) else None
    for target in getattr(node, "targets", None) or [single]:
        for part in ast.walk(target) if target is not None else ():
            if access := _access_of(part, ast.Store):
                yield *access, (value if part is target else None) or _UNKNOWN, node


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


# Variables by what is assigned to them, and what is saved and loaded again by what was saved.

_WRITES = frozenset({"save", "dump", "dumps", "write"})
_READS = frozenset({"load", "loads", "read"})
_PURE = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)
_LATER = (Function, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Scope = ast.Module | Function


def variable_edits(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Every variable that can go, every round trip, and every value where it is read next."""
    for file in files:
        yield from _attributes(file)
        for scope in ast.walk(file.tree):
            if isinstance(scope, _Scope):
                yield from _variables(file, scope)
                yield from _round_trips(file, scope)
    for file in files:
        yield from rebound(file)


def substitute(file: ParsedFile, node: ast.expr, value: ast.expr) -> Replacement | None:
    """A value in the place of a name; None where the line would get long or the value has several
    lines.
    """
    text = file.of(value)
    freed = len(node.id) if isinstance(node, ast.Name) else 0
    long = file.width(node) + len(text) - freed > MAX_WIDTH
    return None if "\n" in text or long else file.substitute(node, text)


def _attributes(file: ParsedFile) -> Iterator[Reduction]:
    """Attributes that are set once and read once, by what is set: a layer where it is called."""
    by_attribute: dict[str, list[ast.Attribute]] = {}
    for node in nodes(file.tree, ast.Attribute):
        by_attribute.setdefault(node.attr, []).append(node)
    for every in by_attribute.values():
        stores = [node for node in every if not isinstance(node.ctx, ast.Load)]
        reads = [node for node in every if isinstance(node.ctx, ast.Load)]
        holder = file.parents[stores[0]] if len(stores) == 1 == len(reads) else None
        if not isinstance(holder, ast.Assign) or holder.targets != stores:
            continue
        name = file.of(stores[0])
        if file.of(reads[0]) != name or reads[0] in file.in_f_strings:
            continue
        if (value := substitute(file, reads[0], holder.value)) is not None:
            replacements = (value, file.remove(holder))
            yield Reduction(f"{name} in its place", replacements, alters_values=True)


def _variables(file: ParsedFile, scope: _Scope) -> Iterator[Reduction]:
    names = nodes(scope, ast.Name)
    names_to_skip = {node.arg for node in nodes(scope, ast.arg)}
    names_to_skip |= {name for node in nodes(scope, ast.Global) for name in node.names}
    names_to_skip |= {name for node in nodes(scope, ast.Nonlocal) for name in node.names}
    names_to_skip |= {node.id for node in names if node in file.in_f_strings}
    store_counts = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
    reads = {
        name: list[ast.Name]()
        for name in store_counts
        if store_counts[name] == 1 and name not in names_to_skip
    }
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
        for target, value in assignment_pairs(holder)
    ]
    candidates, places = list[Replacement | None](), list[ast.Name]()
    for uses, value in pairs:
        if uses is None or (len(uses) > 1 and not _is_pure(value)):
            return
        places += uses
        candidates += [substitute(file, node, value) for node in uses]
    values = [value for value in candidates if value is not None]
    if not values or len(values) < len(candidates):
        return
    near = all(_next_statement(file, holder) in [*file.above(node)] for node in places)
    alters = not near and not all(_is_pure(value) for _, value in pairs)
    replacements = (*values, file.remove(holder))
    first = name_of(assignment_pairs(holder)[0][0])
    yield Reduction(f"{first} in its place", replacements, alters_values=alters)


def _next_statement(file: ParsedFile, holder: ast.stmt) -> ast.stmt | None:
    body = next(body for body in own_blocks(file.parents[holder]) if holder in body)
    return next(iter(body[body.index(holder) + 1 :]), None)


def _is_pure(node: ast.expr) -> bool:
    return all(isinstance(part, _PURE) for part in ast.walk(node))


def _round_trips(file: ParsedFile, scope: _Scope) -> Iterator[Reduction]:
    """What is saved once and loaded once, without the file between."""
    own = [call for call in nodes(scope, ast.Call) if file.scope(call) is scope]
    save_calls = [call for call in own if name_of(call.func) in _WRITES and len(call.args) > 1]
    load_calls = [call for call in own if name_of(call.func) in _READS and call.args]
    if len(save_calls) == 1 == len(load_calls) and save_calls[0].lineno < load_calls[0].lineno:
        replacements = (file.replace(load_calls[0], file.of(save_calls[0].args[0])),)
        yield Reduction("what was saved", replacements, alters_values=True)


def rebound(file: ParsedFile) -> Iterator[Reduction]:
    """Values of names that are assigned again and again, as `x` on its way through a model: each
    in the place of its only read before the next one.
    """
    names = nodes(file.tree, ast.Name)
    store_counts = Counter(node.id for node in names if not isinstance(node.ctx, ast.Load))
    for block in (block for node in ast.walk(file.tree) for block in own_blocks(node)):
        for at, holder in enumerate(block):
            match holder:
                case ast.Assign([ast.Name(name)]) if store_counts[name] > 1:
                    yield from _where_read(file, holder, name, block[at + 1 :])


def _where_read(
    file: ParsedFile, holder: ast.Assign, name: str, after: list[ast.stmt]
) -> Iterator[Reduction]:
    reads, rebound = _next_reads(after, name)
    if len(reads) != 1:
        return
    place, node = reads[0]
    value = substitute(file, node, holder.value)
    if value is not None and _is_readable(file, node, after[place]):
        replacements, alters = (value, file.remove(holder)), place > 0 or not rebound
        yield Reduction(f"{name} where it is read", replacements, alters_values=alters)


def _next_reads(after: list[ast.stmt], name: str) -> tuple[list[tuple[int, ast.Name]], bool]:
    """Where a name is read before a statement sets it again, with the numbers of the statements,
    and whether one does; nothing where that depends on more than the order of the statements.
    """
    reads = list[tuple[int, ast.Name]]()
    for place, statement in enumerate(after):
        names = [node for node in nodes(statement, ast.Name) if node.id == name]
        reads += [(place, node) for node in names if isinstance(node.ctx, ast.Load)]
        if any(not isinstance(node.ctx, ast.Load) for node in names):
            targets = statement.targets if isinstance(statement, ast.Assign) else [None]
            plain = all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
            return (reads, True) if plain else ([], False)
    return reads, False


def _is_readable(file: ParsedFile, node: ast.Name, statement: ast.stmt) -> bool:
    """Whether another text may stand there: not in an f-string, nor in what runs later."""
    inside = [*file.above(node)]
    within = inside[: inside.index(statement) + 1]
    return node not in file.in_f_strings and not any(isinstance(node, _LATER) for node in within)


# Replaces names by their values: settings by their constants, functions that are called once by
# their bodies, modules of the program by their text.


def inline_edits(files: Files, entry: str) -> tuple[Reduction, ...]:
    """Everything that can be put in the place of its name."""
    parsed = parsed_files(files)
    return (
        *setting_edits(parsed),
        *_functions(parsed),
        *_parameters(parsed),
        *modules(parsed, entry),
        *classes.method_edits(parsed),
        *classes.object_edits(parsed),
        *variable_edits(parsed),
    )


def plain(files: Files, entry: str) -> tuple[tuple[Reduction, ...], ...]:
    """Those that rarely go wrong, in sets to make together: settings, unread parameters, and each
    function, module, method and object alone.
    """
    parsed = parsed_files(files)
    bodies = (*_functions(parsed), *modules(parsed, entry))
    objects = (*classes.method_edits(parsed), *classes.object_edits(parsed))
    return (
        tuple(setting_edits(parsed)),
        tuple(_parameters(parsed, unread=True)),
        *((reduction,) for reduction in (*bodies, *objects)),
    )


def _functions(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Functions of a module that are called once, in the place of the call."""
    for file in files:
        for function in file.tree.body:
            if not isinstance(function, Function) or function.decorator_list:
                continue
            uses = [node for other in files for node in _nodes_named(other.tree, function.name)]
            match [file.parents.get(use) for use in uses]:
                case [ast.Call(callee) as call] if callee is uses[0]:
                    if body := spliced(file, function, call):
                        replacements = (*body, file.remove(function))
                        yield Reduction(f"{function.name} in its caller", replacements)


def _nodes_named(tree: ast.Module, name: str) -> list[ast.AST]:
    return [
        node
        for node in ast.walk(tree)
        if _is(node, name) or (isinstance(node, ast.alias) and node.name == name)
    ]


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _parameters(files: list[ParsedFile], *, unread: bool = False) -> Iterator[Reduction]:
    """A parameter with what is passed for it wherever something of this name is called."""
    for file in files:
        for owner, function in _owned(file.tree):
            name_called = owner if function.name == "__init__" else function.name
            for place, parameter in enumerate(function.args.args):
                if (owner and place == 0) or (unread and _reads(function, parameter.arg)):
                    continue
                passed = [
                    argument
                    for other in files
                    for call in _calls(other.tree, name_called)
                    for argument in _argument(other, call, parameter.arg, place - bool(owner))
                ]
                drop = _parameter(file, function, place)
                yield Reduction(f"drop parameter {parameter.arg}", (drop, *passed))


def _reads(function: Function, name: str) -> bool:
    return any(_is(node, name) for statement in function.body for node in ast.walk(statement))


def _owned(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """The functions of a module, and the methods of its classes with their class."""
    for node in tree.body:
        name = node.name if isinstance(node, ast.ClassDef) else ""
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from ((name, function) for function in inner if isinstance(function, Function))


def _calls(tree: ast.Module, name: str) -> list[ast.Call]:
    return [call for call in nodes(tree, ast.Call) if name_of(call.func) == name]


def _parameter(file: ParsedFile, function: Function, place: int) -> Replacement:
    parameters = function.args.args
    defaults: dict[ast.arg, Positioned] = dict(
        zip(reversed(parameters), reversed(function.args.defaults), strict=False)
    )
    spans = [(file.span(one)[0], file.span(defaults.get(one, one))[1]) for one in parameters]
    return file.cut(*with_comma(file, spans, place))


def _argument(file: ParsedFile, call: ast.Call, name: str, place: int) -> Iterator[Replacement]:
    items: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    passed = place if place < len(call.args) else None
    at = next((items.index(word) for word in call.keywords if word.arg == name), passed)
    if at is not None:
        yield file.cut(*with_comma(file, [file.span(item) for item in items], at))


def modules(files: list[ParsedFile], entry: str) -> Iterator[Reduction]:
    """The text of a file of the program in the only other file that imports it, at its first
    import.
    """
    for module in files:
        name = module_name(module.path)
        importers = [
            (file, uses)
            for file in files
            if file is not module and (uses := list(_imports_of(file, name)))
        ]
        if module.path != entry and len(importers) == 1:
            file, uses = importers[0]
            what = f"{module.path} in {file.path}"
            places = dict.fromkeys((_after_imports(file), _at_import(file, uses)))
            for place in places:
                replacements = _inlined(file, name, uses, _text(module), place)
                if replacements is not None:
                    yield Reduction(what, tuple(replacements), drops=(module.path,))


def without_idle_modules(files: Files, entry: str) -> dict[str, str]:
    """The files without modules that no file imports by a statement."""
    parsed, result = parsed_files(files), dict(files)
    for module in parsed:
        name = module_name(module.path)
        others = (file for file in parsed if file is not module)
        if module.path != entry and not any(any(_imports_of(file, name)) for file in others):
            del result[module.path]
    return result if len(result) == len(files) else without_idle_modules(result, entry)


def _imports_of(file: ParsedFile, name: str) -> Iterator[tuple[_Import, list[ast.alias]]]:
    """The statements of a file that import a module of the program, each with the names of it."""
    above, _, last = name.rpartition(".")
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Import):
            mine = [alias for alias in node.names if alias.name == name]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            whole = node.module == name
            mine = [
                alias
                for alias in node.names
                if whole or (above and node.module == above and alias.name == last)
            ]
        else:
            continue
        if mine:
            yield node, mine


def _inlined(
    file: ParsedFile,
    name: str,
    uses: list[tuple[_Import, list[ast.alias]]],
    text: str,
    place: int,
) -> list[Replacement] | None:
    """What puts a module's text at a place of a file; None where the module itself is used as a
    value.
    """
    replacements, handles = list[Replacement](), set[str]()
    for node, mine in uses:
        from_it = isinstance(node, ast.ImportFrom) and node.module == name
        aliases = [f"{one.asname} = {one.name}\n" for one in mine if from_it and one.asname]
        handles |= set[str]() if from_it else {one.asname or one.name for one in mine}
        rest = [alias for alias in node.names if alias not in mine]
        margin = " " * node.col_offset
        new = f"{margin}{ast.unparse(importing(node, rest))}\n" if rest else ""
        start, end = file.whole_lines(node)
        if file.source[start : file.span(node)[0]].strip():
            return None  # it shares its line with another statement
        if node in file.tree.body:
            text += "".join(aliases)
        else:
            new += "".join(f"{margin}{row}" for row in aliases) or (
                "" if rest else f"{margin}pass\n"
            )
        replacements.append(file.cut(start, end, new))
    at = next((i for i, one in enumerate(replacements) if one.start == place), None)
    if at is None:
        replacements.append(file.cut(place, place, text))
    else:
        replacements[at] = replace(replacements[at], new=text + replacements[at].new)
    reads = _unqualified(file, handles, {one for node, _ in uses for one in ast.walk(node)})
    return None if reads is None else [*replacements, *reads]


def _after_imports(file: ParsedFile) -> int:
    """The place of the first statement that is no import."""
    imports = (ast.Import, ast.ImportFrom)
    rest = (one for one in file.tree.body if _is_code(one) and not isinstance(one, imports))
    return next((file.whole_lines(one)[0] for one in rest), len(file.source))


def _at_import(file: ParsedFile, uses: list[tuple[_Import, list[ast.alias]]]) -> int:
    first = next((node for node, _ in uses if node in file.tree.body), None)
    return file.whole_lines(first)[0] if first is not None else _after_imports(file)


def _text(module: ParsedFile) -> str:
    """The text of a module without what may stand at the beginning of a file only."""
    future = [n for n in nodes(module.tree, ast.ImportFrom) if n.module == "__future__"]
    cuts = [(*module.whole_lines(node), "") for node in future]
    return apply(module.source, cuts).rstrip("\n") + "\n"


def _is_code(node: ast.stmt) -> bool:
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return not is_future and not isinstance(getattr(node, "value", None), ast.Constant)


def _unqualified(
    file: ParsedFile, handles: set[str], imports: set[ast.AST]
) -> list[Replacement] | None:
    """What is read from a module, without the module's name; None where that is used otherwise."""
    reads = list[Replacement]()
    for node in nodes(file.tree, ast.expr):
        is_handle = isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in handles
        if not is_handle or node in imports:
            continue
        above = file.parents[node]
        if not isinstance(above, ast.Attribute) or node in file.in_f_strings:
            return None
        reads.append(file.replace(above, above.attr))
    return reads
