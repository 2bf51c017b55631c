"""The body of a function in the place of the call to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.rules.mends import edits as mends
from bot.rules.mends.edits import Text, lines
from bot.rules.reduce.edits import Piece, parsed
from bot.rules.reduce.statements import dedented, whole_lines

Function = ast.FunctionDef
_SIMPLE = (ast.Expr, ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Assert)
_HEADS = {ast.For: "iter", ast.If: "test"}
_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.While)
_PLAIN = re.compile(r"[A-Za-z_][\w.]*|\d+(?:\.\d*)?|\"[^\"\\\\\n]*\"|'[^'\\\\\n]*'")
_WHOLE = (
    ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp,
    ast.SetComp, ast.JoinedStr,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a program with its text, its tree and the parents of its nodes."""

    path: str
    text: Text
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(repr=False)

    @classmethod
    def of(cls, path: str, source: str, tree: ast.Module) -> Source:
        """The file, looked through."""
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        return cls(path, Text(source), tree, parents)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the innermost to the module."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def inside(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node up to its statement, that one included."""
        for each in self.above(node):
            yield each
            if isinstance(each, ast.stmt):
                return

    def as_read(self, read: ast.expr, value: str) -> str:
        """A value as it may stand in the place of an expression: with parentheses where they may be needed."""
        above = self.parents[read]
        return value if isinstance(above, ast.stmt) and not isinstance(above, ast.For) else held(value)

    def scope(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the module."""
        return next((each for each in self.above(node) if isinstance(each, Function | ast.Lambda)), self.tree)


def spliced(source: Source, function: Function, call: ast.Call, me: str = "", made: str = "") -> tuple[Piece, ...] | None:
    """The pieces that put the body in the place of the call: parameters become assignments, a last `return` the value.

    `me` is what a method was called on; of an `__init__` what the object is assigned to, `made` then being its class. None when
    the call is not made by a statement that the body could stand before.
    """
    target, passed = _statement_of(source, call), passed_to(source.text, function, call, bound=bool(me))
    if target is None or passed is None or function in source.above(call) or (me and not function.args.args):
        return None
    swaps, passed = _swapped(function, passed)
    swaps |= {function.args.args[0].arg: me} if me else {}
    text, body = _renamed(source.text, function, swaps)
    passed += [(name, new) for name, new in swaps.items() if body is function]
    value, statements = _value(text, body)
    if value is None:
        return None
    column, lines = target.col_offset, [f"{name} = {given}" for name, given in passed if name != given]
    start, end = whole_lines(source.text, target)
    if made:
        given = super_arguments(text, body.body[0])
        lines, statements = [*lines, f"{me} = {made}({given or ''})"], statements[given is not None :]
    heads = "".join(f"{' ' * column}{line}\n" for line in lines) + "".join(_moved(source.path, text, statements, column))
    if made or (value == "None" and isinstance(target, ast.Expr) and target.value is call):
        return (Piece(source.path, start, end, heads),)
    value = value if isinstance(source.parents[call], _SIMPLE) else held(value)
    return Piece(source.path, start, start, heads), Piece(source.path, *source.text.span(call), value)


def super_arguments(text: Text, statement: ast.stmt) -> str | None:
    """What a statement passes to the base class, None when it does not make that."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "__init__":
        return None
    if not isinstance(call.func.value, ast.Call) or getattr(call.func.value.func, "id", "") != "super":
        return None
    return text.source[text.span(call.func)[1] + 1 : text.span(call)[1] - 1]


def _swapped(function: Function, passed: list[tuple[str, str]]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Of what is passed, that which can be written in the place of its parameter, and the rest."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    stored = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    swaps = {name: given for name, given in passed if name not in stored and _PLAIN.fullmatch(given)}
    return swaps, [row for row in passed if row[0] not in swaps]


def _renamed(text: Text, function: Function, swaps: dict[str, str]) -> tuple[Text, Function]:
    """The function with something else in the place of some of its parameters; itself where one stands in an f-string."""
    inside = {part for node in ast.walk(function) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    uses = [node for each in function.body for node in ast.walk(each) if isinstance(node, ast.Name) and node.id in swaps]
    if any(node in inside for node in uses):
        return text, function
    new = mends.apply(text.source, [(*text.span(node), swaps[node.id]) for node in uses])
    tree = parsed(new)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, Function) and (node.lineno, node.name) == (function.lineno, function.name):
            return Text(new), node
    return text, function


def _value(text: Text, function: Function) -> tuple[str | None, list[ast.stmt]]:
    """What a function returns and the statements before that; no value when it returns elsewhere too."""
    last, returns = function.body[-1], [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if any(each is not last for each in returns):
        return None, []
    if not isinstance(last, ast.Return):
        return "None", function.body
    return text.of(last.value) if last.value is not None else "None", function.body[:-1]


def _statement_of(source: Source, call: ast.Call) -> ast.stmt | None:
    """The statement before which the call may be made: alone on its lines, and once for each time it is reached."""
    below: ast.AST = call
    for node in source.above(call):
        if isinstance(node, _LATER):
            return None
        if isinstance(node, ast.stmt):
            head = getattr(node, _HEADS.get(type(node), ""), None) is below or isinstance(below, ast.withitem)
            line = source.text.offset(node.lineno, 0)
            alone = not source.text.source[line : source.text.span(node)[0]].strip()
            return node if alone and (isinstance(node, _SIMPLE) or head) else None
        below = node
    return None


def passed_to(text: Text, function: Function, call: ast.Call, *, bound: bool = False) -> list[tuple[str, str]] | None:
    """The parameters with what is passed for them, None when that is not plain to see. `bound`: the first one is not passed."""
    positional = [*function.args.posonlyargs, *function.args.args][bound:]
    names = [each.arg for each in (*positional, *function.args.kwonlyargs)]
    if function.args.vararg or function.args.kwarg or len(call.args) > len(positional):
        return None
    if any(isinstance(each, ast.Starred) for each in call.args) or any(word.arg is None for word in call.keywords):
        return None
    defaults = zip(reversed(positional), reversed(function.args.defaults), strict=False)
    values = {each.arg: text.of(value) for each, value in defaults}
    keyword = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    values |= {each.arg: text.of(value) for each, value in keyword if value is not None}
    values |= {name: text.of(value) for name, value in zip(names, call.args, strict=False)}
    values |= {word.arg: text.of(word.value) for word in call.keywords if word.arg}
    return [(name, values[name]) for name in names] if set(names) == set(values) else None


def _moved(path: str, text: Text, body: list[ast.stmt], column: int) -> Iterator[str]:
    """The lines of a block, moved to a column."""
    if not body:
        return
    start, end = whole_lines(text, body[0])[0], whole_lines(text, body[-1])[1]
    pieces = {piece.start: piece.end for piece in dedented(path, text, body, 0) or []}
    at = start
    for line in lines(text.source[start:end]):
        cut = pieces.get(at)
        yield (" " * column if cut is not None and line.strip() else "") + line[(cut - at) if cut is not None else 0 :]
        at += len(line)


def held(text: str) -> str:
    """An expression as it may stand anywhere."""
    tree = ast.parse(f"({text}\n)", mode="eval").body
    return text if isinstance(tree, _WHOLE) and "\n" not in text else f"({text})"
