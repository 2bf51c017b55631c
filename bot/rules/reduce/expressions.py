"""Expressions made simpler: arguments and elements taken away, a part in the place of the whole."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.mends.edits import Text
from bot.rules.reduce.edits import Edit, Files, Piece, programs
from bot.rules.reduce.tidy import importing

_WIDE = 110
_SEEDED = frozenset({"Random", "RandomState", "default_rng", "Generator", "SeedSequence", "PCG64"})
"""Without their argument they draw from the system, and what failed under every seed fails now and then."""


def edits(files: Files) -> tuple[Edit, ...]:
    """Every simplification of every expression, the outermost first."""
    found = list[Edit]()
    for path, source, tree in programs(files):
        text = Text(source)
        imports = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        modules = {(alias.asname or alias.name).split(".")[0] for alias in imports}
        for node in _outermost(tree):
            found.extend(_of(path, text, node, modules))
    return tuple(dict.fromkeys(found))


def _outermost(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes, parents before children, without the insides of f-strings (their positions are not to be relied on)."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.JoinedStr):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _of(path: str, text: Text, node: ast.AST, modules: set[str]) -> Iterator[Edit]:
    if isinstance(node, ast.Call):
        yield from _call(path, text, node, modules)
    elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _definition(path, text, node)
    elif isinstance(node, ast.List | ast.Tuple | ast.Set) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        yield from _elements(path, text, node, list(node.elts))
    elif isinstance(node, ast.Dict):
        yield from _pairs(path, text, node)
    elif isinstance(node, ast.Import | ast.ImportFrom) and len(node.names) > 1:
        for alias in node.names:
            rest = [each for each in node.names if each is not alias]
            yield Edit("drop import", (Piece(path, *text.span(node), ast.unparse(importing(node, rest))),))
    elif isinstance(node, ast.stmt):
        yield from _statement(path, text, node)
    elif isinstance(node, ast.expr):
        yield from (_put(path, text, node, part) for part in parts(node))
        if isinstance(node, ast.Subscript) and (chosen := _chosen(node)) is not None:
            yield _put(path, text, node, chosen, bold=False)


def _put(path: str, text: Text, node: ast.expr | ast.stmt, part: ast.expr, bold: bool = True) -> Edit:
    new = text.of(part)
    if isinstance(part, ast.Tuple | ast.GeneratorExp | ast.BinOp | ast.BoolOp | ast.IfExp | ast.Lambda) and new[:1] != "(":
        new = f"({new})" if isinstance(node, ast.expr) else new
    return Edit(f"{type(node).__name__.lower()} → part", (Piece(path, *text.span(node), new),), bold=bold)


def parts(node: ast.expr) -> list[ast.expr]:
    """The parts of an expression that may stand for it."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.BoolOp):
        return list(node.values)
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        return [node.operand]
    if isinstance(node, ast.Subscript | ast.Await | ast.Starred) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return [node.value]
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp) and len(node.generators) == 1:
        return [node.generators[0].iter]
    return []


def _chosen(node: ast.Subscript) -> ast.expr | None:
    """What is chosen from a list, a tuple or a dictionary that is written down."""
    if not isinstance(node.slice, ast.Constant) or not isinstance(node.ctx, ast.Load):
        return None
    key, held = node.slice.value, node.value
    if isinstance(held, ast.Tuple | ast.List) and type(key) is int and not any(isinstance(e, ast.Starred) for e in held.elts):
        return held.elts[key] if 0 <= key < len(held.elts) else None
    if isinstance(held, ast.Dict):
        pairs = zip(held.keys, held.values, strict=True)
        return next((value for each, value in pairs if isinstance(each, ast.Constant) and each.value == key), None)
    return None


def _call(path: str, text: Text, node: ast.Call, modules: set[str]) -> Iterator[Edit]:
    given = [*node.args, *(word.value for word in node.keywords)]
    outer = isinstance(node.func, ast.Attribute)
    if isinstance(node.func, ast.Attribute) and text.of(node.func.value).split(".")[0] not in modules:
        yield _put(path, text, node, node.func.value)
    yield from (_put(path, text, node, part) for part in given if not isinstance(part, ast.Starred))
    spans = [text.span(each) for each in node.args] + [_word(text, word) for word in node.keywords]
    if name_of(node.func) in _SEEDED:
        return
    if len(spans) > 1:
        open_at, close = text.span(node.func)[1], text.span(node)[1]
        yield Edit("drop all arguments", (Piece(path, open_at, close, "()"),), bold=not outer)
    for place in range(len(spans)):
        yield Edit("drop argument", (Piece(path, *_with_comma(text, spans, place)),))


def name_of(node: ast.expr) -> str:
    """The last part of a (dotted) name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _word(text: Text, word: ast.keyword) -> tuple[int, int]:
    return text.offset(word.lineno, word.col_offset), text.span(word.value)[1]


def _with_comma(text: Text, spans: list[tuple[int, int]], place: int) -> tuple[int, int]:
    """The span of one of several things with commas between, with the comma that goes with it."""
    if place + 1 < len(spans):
        return spans[place][0], spans[place + 1][0]
    if place:
        return spans[place - 1][1], spans[place][1]
    end = spans[place][1]
    rest = text.source[end:].lstrip()
    return spans[place][0], end + text.source[end:].index(",") + 1 if rest.startswith(",") else end


def _elements(path: str, text: Text, node: ast.expr, elements: list[ast.expr]) -> Iterator[Edit]:
    spans = [text.span(each) for each in elements]
    if isinstance(node, ast.List) and len(elements) > 1:
        yield Edit("empty list", (Piece(path, *text.span(node), "[]"),), bold=True)
    for place in range(len(spans)):
        if len(spans) > 1 or isinstance(node, ast.List):
            yield Edit("drop element", (Piece(path, *_with_comma(text, spans, place)),), bold=True)
    yield from (_put(path, text, node, part) for part in elements if not isinstance(part, ast.Starred))


def _pairs(path: str, text: Text, node: ast.Dict) -> Iterator[Edit]:
    if any(key is None for key in node.keys) or not node.keys:
        return
    spans = [(text.span(key)[0], text.span(value)[1]) for key, value in zip(node.keys, node.values, strict=True) if key]
    if len(spans) > 1:
        yield Edit("empty dict", (Piece(path, *text.span(node), "{}"),))
    for place in range(len(spans)):
        yield Edit("drop entry", (Piece(path, *_with_comma(text, spans, place)),))


def _definition(path: str, text: Text, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Edit]:
    for mark in node.decorator_list:
        start = text.offset(mark.lineno, 0)
        yield Edit("drop decorator", (Piece(path, start, text.offset((mark.end_lineno or mark.lineno) + 1, 0)),))
    if isinstance(node, ast.ClassDef):
        spans = [text.span(each) for each in node.bases]
        for place in range(len(spans)):
            span = _with_comma(text, spans, place)
            if len(spans) == 1 and not node.keywords:
                span = text.source.rindex("(", 0, span[0]), text.source.index(")", span[1]) + 1
            yield Edit("drop base", (Piece(path, *span),))
        return
    notes = [each for each in ast.walk(node.args) if isinstance(each, ast.arg) and each.annotation]
    pieces = [
        Piece(path, text.offset(each.lineno, each.col_offset) + len(each.arg), text.span(each.annotation)[1])
        for each in notes
        if each.annotation
    ]
    if node.returns is not None:
        end = text.span(node.returns)[1]
        start = text.source.rindex("->", 0, end)
        pieces.append(Piece(path, len(text.source[:start].rstrip()), end))
    if pieces:
        yield Edit("drop annotations", tuple(pieces))


def _statement(path: str, text: Text, node: ast.stmt) -> Iterator[Edit]:
    span = text.span(node)
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr) and node.value is not None:
        if not isinstance(node, ast.Expr):
            yield Edit("value alone", (Piece(path, *span, text.of(node.value)),))
        if isinstance(node, ast.AnnAssign):
            new = f"{text.of(node.target)} = {text.of(node.value)}"
            yield Edit("drop annotation", (Piece(path, *span, new),))
        if isinstance(node, ast.Return):
            yield Edit("return nothing", (Piece(path, *span, "return"),), bold=True)
        if isinstance(node, ast.Assign):
            yield from _of_several(path, text, node)
        flat, now = ast.unparse(node), text.of(node)
        if len(flat) < len(now) if node.end_lineno == node.lineno else len(flat) <= _WIDE:
            yield Edit("written plainly", (Piece(path, *span, flat),))
    elif isinstance(node, ast.If | ast.While):
        yield Edit("condition alone", (Piece(path, *text.span(node.test), "True"),), bold=True)


def _of_several(path: str, text: Text, node: ast.Assign) -> Iterator[Edit]:
    """An assignment of several values to as many names, without one of them."""
    target, value = node.targets[0], node.value
    if len(node.targets) > 1 or not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return
    pairs = list(zip(target.elts, value.elts, strict=False))
    if len(target.elts) != len(value.elts) or any(isinstance(each, ast.Starred) for pair in pairs for each in pair):
        return
    for place in range(len(pairs) if len(pairs) > 1 else 0):
        rest = [pair for at, pair in enumerate(pairs) if at != place]
        new = " = ".join(", ".join(text.of(pair[side]) for pair in rest) for side in (0, 1))
        yield Edit("drop pair", (Piece(path, *text.span(node), new),))
