"""Names replaced by what they stand for: settings by their constants, functions that are called once by their bodies, modules
of the program by their text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.mends.edits import Text
from bot.rules.reduce import aliases, methods, objects, rebound
from bot.rules.reduce.edits import Edit, Files, Piece, programs
from bot.rules.reduce.splice import Source, spliced
from bot.rules.reduce.statements import whole_lines

_Program = tuple[str, Text, ast.Module]
_Function = ast.FunctionDef


def edits(files: Files, entry: str) -> tuple[Edit, ...]:
    """Everything that can be put in the place of its name."""
    found = [(path, Text(source), tree) for path, source, tree in programs(files)]
    sources = [Source.of(*each) for each in programs(files)]
    names = (*_settings(found), *_functions(found), *_parameters(found), *_modules(found, entry))
    made = (*methods.edits(sources), *objects.edits(sources), *aliases.edits(sources), *rebound.edits(sources))
    return (*names, *made)


def plain(files: Files, entry: str) -> tuple[tuple[Edit, ...], ...]:
    """Those of them that rarely go wrong, in sets to be made together: settings; parameters that nothing reads; functions."""
    found = [(path, Text(source), tree) for path, source, tree in programs(files)]
    sources = [Source.of(*each) for each in programs(files)]
    calls = (*_functions(found), *_modules(found, entry), *methods.edits(sources), *objects.edits(sources))
    return (tuple(_settings(found)), tuple(_parameters(found, unread=True)), *((each,) for each in calls))


def _settings(found: list[_Program]) -> Iterator[Edit]:
    """Names, attributes and entries of dictionaries that are set once, to a constant: replaced where they are read."""
    own = {node.name for _, _, tree in found for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    given: dict[tuple[str, str], list[tuple[str, ast.expr, ast.AST]]] = {}
    for path, _, tree in found:
        for kind, name, value, place in _given(tree, own):
            given.setdefault((kind, name), []).append((path, value, place))
    for (kind, name), rows in given.items():
        texts = {ast.unparse(value) for _, value, _ in rows}
        if len(texts) != 1 or not _plain(rows[0][1]):
            continue
        read = [
            Piece(path, *text.span(use), texts.copy().pop()) for path, text, tree in found for use in _read(tree, kind, name)
        ]
        set_at = [_dropped(path, _text(found, path), place) for path, _, place in rows if isinstance(place, ast.stmt)]
        if read:
            yield Edit(f"{name} by its value", (*read, *(piece for piece in set_at if kind == "name")))


def _given(tree: ast.Module, own: set[str]) -> Iterator[tuple[str, str, ast.expr, ast.AST]]:
    """What is set: (kind, name, value, where)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.withitem | ast.comprehension):
            yield from _targets(node)
        elif isinstance(node, ast.Call):
            words = node.keywords if getattr(node.func, "id", "") in own else []
            yield from (("attribute", word.arg, word.value, word) for word in words if word.arg)
            yield from _option(node)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield "entry", key.value, value, node
        elif isinstance(node, ast.ClassDef):
            yield from _fields(node)
        elif isinstance(node, ast.arg):
            yield "name", node.arg, ast.Name("?"), node


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, ast.expr, ast.AST]]:
    """The fields of a class with their defaults."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign | ast.Assign) and each.value is not None:
            for target in each.targets if isinstance(each, ast.Assign) else [each.target]:
                if isinstance(target, ast.Name):
                    yield "attribute", target.id, each.value, each


def _option(node: ast.Call) -> Iterator[tuple[str, str, ast.expr, ast.AST]]:
    """An option of argparse with its default."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument" and node.args:
        default = next((word.value for word in node.keywords if word.arg == "default"), None)
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str) and default is not None:
            yield "attribute", node.args[0].value.lstrip("-").replace("-", "_"), default, node


def _targets(node: ast.AST) -> Iterator[tuple[str, str, ast.expr, ast.AST]]:
    value = getattr(node, "value", None) if isinstance(node, ast.Assign | ast.AnnAssign) else None
    targets = getattr(node, "targets", None) or [getattr(node, "target", None) or getattr(node, "optional_vars", None)]
    for target in targets:
        for part in ast.walk(target) if target is not None else ():
            whole = value if part is target and value is not None else ast.Name("?")
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield "name", part.id, whole, node
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                yield "attribute", part.attr, whole, node
            elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
                yield "entry", str(part.slice.value), whole, node


def _read(tree: ast.Module, kind: str, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        if (
            (kind == "name" and isinstance(node, ast.Name) and node.id == name)
            or (kind == "attribute" and isinstance(node, ast.Attribute) and node.attr == name)
            or (kind == "entry" and isinstance(node, ast.Subscript) and _key(node.slice) == name)
        ):
            assert isinstance(node, ast.expr)
            yield node


def _key(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _plain(node: ast.expr) -> bool:
    """A value that is the same wherever it is written: a constant, or a tuple of such, or a dotted name of a module."""
    if isinstance(node, ast.UnaryOp):
        return _plain(node.operand)
    if isinstance(node, ast.Tuple | ast.List):
        return all(_plain(each) for each in node.elts) and len(node.elts) <= 3
    if isinstance(node, ast.Attribute):
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(root, ast.Name) and root.id in {"torch", "np", "numpy", "tf", "jnp"}
    return isinstance(node, ast.Constant)


def _text(found: list[_Program], path: str) -> Text:
    return next(text for each, text, _ in found if each == path)


def _dropped(path: str, text: Text, statement: ast.stmt) -> Piece:
    start, end = whole_lines(text, statement)
    return Piece(path, start, end)


def _functions(found: list[_Program]) -> Iterator[Edit]:
    """Functions of a module that are called once, by a statement of their own or one that takes their value."""
    for path, text, tree in found:
        source = Source.of(path, text.source, tree)
        for function in tree.body:
            if isinstance(function, _Function) and not function.decorator_list:
                uses = [name for _, _, each in found for name in _named(each, function.name)]
                calls = [call for call in ast.walk(tree) if isinstance(call, ast.Call) and _is(call.func, function.name)]
                if len(calls) == 1 == len(uses) and (pieces := spliced(source, function, calls[0])):
                    yield Edit(f"{function.name} in its caller", (*pieces, _dropped(path, text, function)))


def _named(tree: ast.Module, name: str) -> list[ast.AST]:
    return [node for node in ast.walk(tree) if _is(node, name) or (isinstance(node, ast.alias) and node.name == name)]


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _parameters(found: list[_Program], *, unread: bool = False) -> Iterator[Edit]:
    """A parameter taken away with what is passed for it, everywhere that a function or class of this name is called."""
    for path, text, tree in found:
        for owner, function in _owned(tree):
            called = owner if function.name == "__init__" else function.name
            bound = bool(owner)
            for place, each in enumerate(function.args.args):
                if (bound and place == 0) or (unread and _reads(function, each.arg)):
                    continue
                pieces = [Piece(path, *_parameter(text, function, place))]
                for other, its, calls in ((p, t, _calls(tr, called)) for p, t, tr in found):
                    for call in calls:
                        pieces.extend(_argument(other, its, call, each.arg, place - bound))
                yield Edit(f"drop parameter {each.arg}", tuple(pieces))


def _reads(function: _Function, name: str) -> bool:
    return any(_is(node, name) for each in function.body for node in ast.walk(each))


def _owned(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    for node in tree.body:
        if isinstance(node, _Function):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            yield from ((node.name, each) for each in node.body if isinstance(each, _Function))


def _calls(tree: ast.Module, name: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if name in {getattr(call.func, "id", None), getattr(call.func, "attr", None)}]


def _parameter(text: Text, function: _Function, place: int) -> tuple[int, int]:
    found, first = function.args.args, len(function.args.args) - len(function.args.defaults)
    spans = list[tuple[int, int]]()
    for number, each in enumerate(found):
        last: ast.expr | ast.arg = function.args.defaults[number - first] if number >= first else each
        end = text.offset(last.end_lineno or last.lineno, last.end_col_offset or 0)
        spans.append((text.offset(each.lineno, each.col_offset), end))
    return _cut(spans, place)


def _argument(path: str, text: Text, call: ast.Call, name: str, place: int) -> Iterator[Piece]:
    spans = [text.span(each) for each in call.args]
    words = [(text.offset(word.lineno, word.col_offset), text.span(word.value)[1]) for word in call.keywords]
    hit = next((len(spans) + at for at, word in enumerate(call.keywords) if word.arg == name), None)
    hit = place if hit is None and place < len(spans) else hit
    if hit is not None:
        yield Piece(path, *_cut([*spans, *words], hit))


def _cut(spans: list[tuple[int, int]], place: int) -> tuple[int, int]:
    if place + 1 < len(spans):
        return spans[place][0], spans[place + 1][0]
    return (spans[place - 1][1], spans[place][1]) if place else spans[place]


def _modules(found: list[_Program], entry: str) -> Iterator[Edit]:
    """The text of another file of the program in the place of the statement that imports from it."""
    for path, text, _ in found:
        module = path.removesuffix(".py").replace("/", ".")
        if path == entry:
            continue
        for other, its, above in found:
            for node in above.body:
                plain = isinstance(node, ast.Import) and [(each.name, each.asname) for each in node.names] == [(module, None)]
                if plain or (isinstance(node, ast.ImportFrom) and node.module == module and not node.level):
                    body = Piece(other, *whole_lines(its, node), text.source.rstrip("\n") + "\n")
                    pieces = (body, *(_bare(other, its, above, module) if plain else ()))
                    yield Edit(f"{path} in {other}", pieces, drops=(path,))


def _bare(path: str, text: Text, tree: ast.Module, module: str) -> Iterator[Piece]:
    """What is read from a module, without its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == module:
            yield Piece(path, *text.span(node), node.attr)
