"""The body of a function in the place of the call to it."""

import ast
import re

from bot.rules.code.syntax import nodes
from bot.rules.parsing import tree_of
from bot.rules.reduce.edits import ParsedFile, Replacement, parenthesised
from bot.rules.reduce.statements import dedented
from bot.rules.script_fixes.edits import apply, lines

Function = ast.FunctionDef
_SIMPLE = (ast.Expr, ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Assert)
_HEADS = {ast.For: "iter", ast.If: "test"}
_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.While)
_PLAIN = re.compile(r"[A-Za-z_][\w.]*|\d+(?:\.\d*)?|\"[^\"\\\\\n]*\"|'[^'\\\\\n]*'")
_Arguments = list[tuple[str, str]]


def spliced(
    file: ParsedFile, function: Function, call: ast.Call, me: str = "", made: str = ""
) -> tuple[Replacement, ...]:
    """What puts the body in the place of the call: parameters become assignments, a last `return`
    the value.

    `me` is what a method was called on; for an `__init__` it is what the object is assigned to,
    and `made` is its class. () when the body cannot stand before the statement that makes the call.
    """
    target, arguments = _statement_of(file, call), arguments_of(file, function, call, bool(me))
    if target is None or arguments is None or function in file.above(call):
        return ()
    file_after, body, arguments = _substituted(file, function, arguments, me)
    value, statements = _value(file_after, body)
    if value is None:
        return ()
    heads = [f"{name} = {given}" for name, given in arguments if name != given]
    if made:
        given = super_arguments(file_after, body)
        heads.append(f"{me} = {made}({given or ''})")
        statements = statements[given is not None :]
    margin = " " * target.col_offset
    moved = "".join(f"{margin}{line}\n" for line in heads) + _moved(file_after, statements, margin)
    if made or (value == "None" and isinstance(target, ast.Expr) and target.value is call):
        return (file.replace_lines(target, moved),)
    start, simple = file.whole_lines(target)[0], isinstance(file.parents[call], _SIMPLE)
    in_call = file.replace(call, value if simple else parenthesised(value))
    return file.cut(start, start, moved), in_call


def super_arguments(file: ParsedFile, method: Function) -> str | None:
    """What a method first passes to the `__init__` of the base class; None when it does not call
    that first.
    """
    match getattr(method.body[0], "value", None):
        case ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__") as function) as call:
            return file.source[file.span(function)[1] + 1 : file.span(call)[1] - 1]
    return None


def _substituted(
    file: ParsedFile, function: Function, arguments: _Arguments, me: str
) -> tuple[ParsedFile, Function, _Arguments]:
    """The function with plain arguments in the place of its parameters, in its file, and the
    other arguments: all of them where a parameter is read in an f-string.
    """
    names = nodes(function, ast.Name)
    stored = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    rest = [row for row in arguments if row[0] in stored or not _PLAIN.fullmatch(row[1])]
    swaps = dict(row for row in arguments if row not in rest)
    if me:
        swaps[function.args.args[0].arg] = me
    inside = {node for statement in function.body for node in ast.walk(statement)}
    uses = [node for node in names if node in inside and node.id in swaps]
    new = apply(file.source, [(*file.span(node), swaps[node.id]) for node in uses])
    tree = tree_of(new) if file.in_f_strings.isdisjoint(uses) else None
    if tree is None:
        return file, function, [*rest, *swaps.items()]
    body = next(node for node in nodes(tree, Function) if node.lineno == function.lineno)
    return ParsedFile(file.path, new, tree), body, rest


def _value(file: ParsedFile, function: Function) -> tuple[str | None, list[ast.stmt]]:
    """What a function returns and the statements before that; no value when it also returns
    elsewhere.
    """
    *statements, last = function.body
    if any(node is not last for node in nodes(function, ast.Return)):
        return None, []
    if not isinstance(last, ast.Return):
        return "None", function.body
    return file.of(last.value) if last.value is not None else "None", statements


def _statement_of(file: ParsedFile, call: ast.Call) -> ast.stmt | None:
    """The statement before which the call may be made: it begins its line, and runs once for each
    time that it is reached.
    """
    below: ast.AST = call
    for node in file.above(call):
        if isinstance(node, _LATER):
            return None
        if isinstance(node, ast.stmt):
            in_head = getattr(node, _HEADS.get(type(node), ""), None) is below
            once = isinstance(node, _SIMPLE) or in_head or isinstance(below, ast.withitem)
            line = file.offset(node.lineno, 0)
            return node if once and not file.source[line : file.span(node)[0]].strip() else None
        below = node
    return None


def arguments_of(
    file: ParsedFile, function: Function, call: ast.Call, bound: bool
) -> _Arguments | None:
    """The parameters with what is passed for them, None when that is not plain to see. The first
    parameter of a `bound` function is not passed.
    """
    every = [*function.args.posonlyargs, *function.args.args]
    positional, keyword_only = every[bound:], function.args.kwonlyargs
    if function.args.vararg or function.args.kwarg or len(call.args) > len(positional):
        return None
    starred = any(isinstance(value, ast.Starred) for value in call.args)
    unpacked = any(word.arg is None for word in call.keywords)
    if starred or unpacked or (bound and not function.args.args):
        return None
    defaults = zip(reversed(positional), reversed(function.args.defaults), strict=False)
    keyword_defaults = zip(keyword_only, function.args.kw_defaults, strict=True)
    names = [parameter.arg for parameter in (*positional, *keyword_only)]
    values = {parameter.arg: value for parameter, value in (*defaults, *keyword_defaults) if value}
    values |= dict(zip(names, call.args, strict=False))
    values |= {word.arg: word.value for word in call.keywords if word.arg}
    if set(names) != set(values):
        return None
    return [(name, file.of(values[name])) for name in names]


def _moved(file: ParsedFile, body: list[ast.stmt], margin: str) -> str:
    if not body:
        return ""
    start, end = file.whole_lines(body[0])[0], file.whole_lines(body[-1])[1]
    cuts = {cut.start: cut.end for cut in dedented(file, body, 0)}
    result, at = list[str](), start
    for line in lines(file.source[start:end]):
        cut = cuts.get(at, at)
        result.append((margin if cut > at and line.strip() else "") + line[cut - at :])
        at += len(line)
    return "".join(result)
