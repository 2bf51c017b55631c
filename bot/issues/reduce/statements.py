"""Statements to remove or to unwrap, as a tree; and what no program needs."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from contextlib import suppress

from pyflakes import checker, messages

from bot.environment.imports import apply, lines
from bot.issues.reduce.edits import (
    Files,
    ParsedFile,
    Reduction,
    ReductionNode,
    Replacement,
    blocks,
    first_line,
    module_name,
    parenthesised,
    parsed_files,
)
from bot.kernel.attempt import Reached
from bot.kernel.source.syntax import Function as AnyFunction, nodes, tree_of

# Statements to remove or to unwrap, as a tree: what cannot go whole may go in parts. Those that a
# run never reached and those that the failure does not depend on by name go as one set each: most
# of a long program goes with them in the first tries.

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNWRAPPED_KINDS = (ast.If, ast.With, ast.AsyncWith, ast.Try, ast.While)
Stack = frozenset[tuple[str, int]]
_Nodes = set[ast.AST]


def trees(files: Files) -> tuple[tuple[ReductionNode, ...], ...]:
    """One list of siblings a file: its statements in order, with those within as children."""
    return tuple(_block(file, file.tree.body) for file in parsed_files(files))


def _block(file: ParsedFile, body: list[ast.stmt]) -> tuple[ReductionNode, ...]:
    if len(body) == 1 and isinstance(body[0], ast.Pass):
        return ()
    return tuple(removal(file, statement) for statement in body)


def removal(file: ParsedFile, statement: ast.stmt) -> ReductionNode:
    """The removal of a statement, and the reductions within it."""
    name = f" {statement.name}" if isinstance(statement, DEFINITIONS) else ""
    whole = Reduction(f"drop {type(statement).__name__.lower()}{name}", (file.remove(statement),))
    unwraps = tuple(ReductionNode(reduction) for reduction in _unwraps(file, statement))
    inner = (unwraps, *(_block(file, body) for body in blocks(statement)))
    return ReductionNode(whole, tuple(group for group in inner if group))


def outermost(
    file: ParsedFile, droppable: Callable[[ast.stmt], bool], body: list[ast.stmt] | None = None
) -> Iterator[ReductionNode]:
    """The removals of the outermost statements that are droppable."""
    for statement in file.tree.body if body is None else body:
        if droppable(statement):
            yield removal(file, statement)
            continue
        for inner in blocks(statement):
            yield from outermost(file, droppable, inner)


def _unwraps(file: ParsedFile, statement: ast.stmt) -> Iterator[Reduction]:
    """One of the blocks of a compound statement in its place."""
    if isinstance(statement, _UNWRAPPED_KINDS):
        yield from unwrap(file, statement, statement.body)
        yield from unwrap(file, statement, getattr(statement, "orelse", []))
        if isinstance(statement, ast.If) and statement.orelse:
            last = statement.body[-1]
            start = file.offset((last.end_lineno or last.lineno) + 1, 0)
            yield Reduction("drop else", (file.cut(start, file.whole_lines(statement)[1]),))
    elif isinstance(statement, ast.For | ast.AsyncFor):
        counts = getattr(getattr(statement.iter, "func", None), "id", "") == "range"
        first = "0" if counts else f"next(iter({file.of(statement.iter)}))"
        yield from unwrap(file, statement, statement.body)
        head = f"{file.of(statement.target)} = {first}"
        yield from unwrap(file, statement, statement.body, head)


def unwrap(
    file: ParsedFile, statement: ast.stmt, body: list[ast.stmt], head: str = ""
) -> Iterator[Reduction]:
    """The block in the place of its statement, after a line in the place of the statement's head;
    nothing for a block on the line of its head.
    """
    start, end = file.whole_lines(statement)
    inner = file.whole_lines(body[0])[0] if body else start
    if inner <= start:
        return
    around = [file.cut(start, inner, " " * statement.col_offset + head + "\n" if head else "")]
    if (last := file.whole_lines(body[-1])[1]) < end:
        around.append(file.cut(last, end))
    what = f"unwrap {type(statement).__name__.lower()}"
    yield Reduction(what, (*around, *dedent(file, body, statement.col_offset)))


def dedent(file: ParsedFile, body: list[ast.stmt], column: int) -> list[Replacement]:
    """What moves a block left to a column; lines within strings stay as they are."""
    by, cuts, strings = body[0].col_offset - column, list[Replacement](), inside_strings(body)
    for line in range(first_line(body[0]), (body[-1].end_lineno or body[-1].lineno) + 1):
        start = file.offset(line, 0)
        margin = file.source[start : start + by]
        if line not in strings and margin and not margin.strip(" "):
            cuts.append(file.cut(start, start + by))
    return cuts


def inside_strings(body: list[ast.stmt]) -> set[int]:
    """The lines that begin within a string of several lines."""
    return {
        line
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }


def unread(files: Files, stack: Stack = frozenset()) -> tuple[ReductionNode, ...]:
    """Definitions, assignments and imports whose names nothing else reads, transitively.

    `stack` holds the lines (path, number) on which the failure arises, from the outermost call to
    the innermost. What they belong to stays. Where they are known, calls made for their effect
    alone are assumed to have no part in the failure.
    """
    parsed, dropped_nodes = parsed_files(files), _Nodes()
    own = {module_name(path) for path in files}
    while True:
        live = [(file.path, node) for file in parsed for node in _live(file.tree, dropped_nodes)]
        names_read = {name for _, node in live for name in _names_read(node, own)}
        more = {
            node
            for path, node in live
            if isinstance(node, ast.stmt)
            and not _on_stack(path, node, stack)
            and _unread(node, names_read, dropped_nodes, loose=bool(stack))
        }
        if not more:
            break
        dropped_nodes |= more
    return tuple(node for file in parsed for node in outermost(file, dropped_nodes.__contains__))


def _live(tree: ast.AST, dropped_nodes: _Nodes) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node not in dropped_nodes:
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _names_read(node: ast.AST, own: set[str]) -> Iterator[str]:
    """The names that a node itself reads: variables, attributes, imports from another file."""
    match node:
        case ast.Name(name, ast.Load() | ast.Del()) | ast.Attribute(
            _, name, ast.Load() | ast.Del()
        ):
            yield name
        case ast.keyword(str(name)):
            yield name
        case ast.ImportFrom(module, names) if module in own:
            yield from (alias.name for alias in names)


def _on_stack(path: str, node: ast.stmt, stack: Stack) -> bool:
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return any(frame_path == path and line in lines for frame_path, line in stack)


def _unread(node: ast.stmt, names_read: set[str], dropped_nodes: _Nodes, *, loose: bool) -> bool:
    match node:
        case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
            return name not in names_read and not name.startswith("__") and name != "forward"
        case ast.Import() | ast.ImportFrom():
            names_bound = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            return names_bound.isdisjoint(names_read)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {name for target in targets for name in _names_bound(target)}
            return bool(names) and not names & names_read and (loose or "*" not in names)
        case ast.Expr(ast.Constant() | ast.Name() | ast.Attribute()):
            return True
        case ast.Expr():
            return loose and not ast.unparse(node).startswith("super()")
        case ast.If() | ast.For() | ast.With() | ast.While():
            inner = [statement for body in blocks(node) for statement in body]
            return all(one in dropped_nodes or isinstance(one, ast.Pass) for one in inner)
    return False


def _names_bound(target: ast.expr) -> list[str]:
    match target:
        case ast.Name(name) | ast.Attribute(_, name):
            return [name]
        case ast.Tuple(parts) | ast.List(parts):
            return [name for part in parts for name in _names_bound(part)]
    return ["*"]  # an item of a container: its readers cannot be seen


def unreached(files: Files, reached_lines: Reached) -> tuple[ReductionNode, ...]:
    """What can be dropped because no line of it ran; a function counts by its body. () when no
    run was watched.
    """
    ran = {path for path, _ in reached_lines}
    watched_files = (file for file in parsed_files(files) if file.path in ran)
    return tuple(node for file in watched_files for node in _unreached(file, reached_lines))


def _unreached(file: ParsedFile, reached_lines: Reached) -> tuple[ReductionNode, ...]:
    ran = {line for path, line in reached_lines if path == file.path}

    def idle(statement: ast.stmt) -> bool:
        first = statement.body[0] if isinstance(statement, AnyFunction) else statement
        return ran.isdisjoint(range(first.lineno, (statement.end_lineno or first.lineno) + 1))

    return tuple(outermost(file, idle))


# What no program needs: comments, docstrings, unused imports, blank lines; and the layout of the
# result.

_IMPORTS = (ast.Import, ast.ImportFrom)
_DOCUMENTED = (ast.Module, *DEFINITIONS)


def comments(files: Files) -> tuple[Reduction, ...]:
    """All comments and docstrings at once."""
    removals = [
        one for file in parsed_files(files) for one in (*_comments(file), *_docstrings(file))
    ]
    return (Reduction("drop comments", tuple(removals)),) if removals else ()


def _comments(file: ParsedFile) -> Iterator[Replacement]:
    tokens = list[tokenize.TokenInfo]()
    with suppress(tokenize.TokenError, IndentationError):
        tokens = list(tokenize.generate_tokens(io.StringIO(file.source).readline))
    for token in tokens:
        if token.type == tokenize.COMMENT:
            line, column = file.offset(token.start[0], 0), token.start[1]
            code = file.source[line : line + column].rstrip()
            end = line + column + len(token.string)
            yield file.cut(line + len(code), end if code else min(end + 1, len(file.source)))


def _docstrings(file: ParsedFile) -> Iterator[Replacement]:
    for node in ast.walk(file.tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node):
            first = node.body[0]
            if file.source[file.offset(first.lineno, 0) :][: first.col_offset].strip() == "":
                yield file.remove(first)


def unused(files: Files) -> tuple[Reduction, ...]:
    """The imports that pyflakes finds unused."""
    return tuple(reduction for file in parsed_files(files) for reduction in _unused(file))


def _unused(file: ParsedFile) -> Iterator[Reduction]:
    messages_of_file = checker.Checker(file.tree, filename=file.path).messages
    idle = [message for message in messages_of_file if isinstance(message, messages.UnusedImport)]
    for node in file.tree.body:
        names = {str(message.message_args[0]) for message in idle if message.lineno == node.lineno}
        if isinstance(node, _IMPORTS) and names:
            aliases = [alias for alias in node.names if not _is_reported(node, alias, names)]
            rest = ast.unparse(importing(node, aliases)) + "\n" if aliases else ""
            yield Reduction("drop unused import", (file.replace_lines(node, rest),))


def importing(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    """The statement with other names."""
    if isinstance(node, ast.Import):
        return ast.Import(names=names)
    return ast.ImportFrom(module=node.module, names=names, level=node.level)


def _is_reported(node: ast.Import | ast.ImportFrom, alias: ast.alias, names: set[str]) -> bool:
    whole = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
    return bool({whole, f"{whole} as {alias.asname}"} & names)


def format_files(files: Files) -> dict[str, str]:
    """The files with conventional blank lines: two around the definitions of a module, one within
    a class, one after the imports. Nothing that Python reads changes.
    """
    return {path: _format(path, text) for path, text in files.items()}


def _format(path: str, source: str) -> str:
    tree = tree_of(source) if path.endswith(".py") else None
    if tree is None:
        return source
    strings, gaps, result = inside_strings(tree.body), dict(_gaps(tree.body, 2)), list[str]()
    for number, line in enumerate(source.splitlines(), 1):
        if line.strip() or number in strings:
            result += [""] * gaps.get(number, 0)
            result.append(line if number + 1 in strings else line.rstrip())
    new = "\n".join(result) + "\n"
    again = tree_of(new)
    return new if again is not None and ast.dump(again) == ast.dump(tree) else source


def _gaps(body: list[ast.stmt], blank: int) -> Iterator[tuple[int, int]]:
    """How many blank lines belong before the line on which a statement begins."""
    for before, node in zip([None, *body], body, strict=False):
        if before is not None and isinstance(before, DEFINITIONS) | isinstance(node, DEFINITIONS):
            yield first_line(node), blank
        elif isinstance(before, _IMPORTS) and not isinstance(node, _IMPORTS):
            yield first_line(node), 1
        if isinstance(node, ast.ClassDef):
            yield from _gaps(node.body, 1)


# The body of a function in the place of the call to it.

Function = ast.FunctionDef
_SIMPLE = (ast.Expr, ast.Assign, ast.Return, ast.AugAssign, ast.AnnAssign, ast.Assert)
_HEADS = {ast.For: "iter", ast.If: "test"}
_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.While)
_PLAIN = re.compile(r"[A-Za-z_][\w.]*|\d+(?:\.\d*)?|\"[^\"\\\\\n]*\"|'[^'\\\\\n]*'")
_Arguments = list[tuple[str, str]]


def spliced(
    file: ParsedFile, function: Function, call: ast.Call, me: str = "", result_name: str = ""
) -> tuple[Replacement, ...]:
    """What puts the body in the place of the call: parameters become assignments, a last `return`
    the value.

    `me` is what a method was called on; for an `__init__` it is what the object is assigned to,
    and `made` is its class. () when the body cannot stand before the statement that makes the call.
    """
    target, arguments = _statement_of(file, call), arguments_of(file, function, call, bool(me))
    if target is None or arguments is None or function in file.above(call):
        return ()
    file_after, body, arguments = _substitute(file, function, arguments, me)
    value, statements = _value(file_after, body)
    if value is None:
        return ()
    heads = [f"{name} = {argument}" for name, argument in arguments if name != argument]
    if result_name:
        super_call = super_arguments(file_after, body)
        heads.append(f"{me} = {result_name}({super_call or ''})")
        statements = statements[super_call is not None :]
    margin = " " * target.col_offset
    text = "".join(f"{margin}{line}\n" for line in heads) + _move(file_after, statements, margin)
    if result_name or (value == "None" and isinstance(target, ast.Expr) and target.value is call):
        return (file.replace_lines(target, text),)
    start, simple = file.whole_lines(target)[0], isinstance(file.parents[call], _SIMPLE)
    in_call = file.replace(call, value if simple else parenthesised(value))
    return file.cut(start, start, text), in_call


def super_arguments(file: ParsedFile, method: Function) -> str | None:
    """What a method first passes to the `__init__` of the base class; None when it does not call
    that first.
    """
    match getattr(method.body[0], "value", None):
        case ast.Call(ast.Attribute(ast.Call(ast.Name("super")), "__init__") as function) as call:
            return file.source[file.span(function)[1] + 1 : file.span(call)[1] - 1]
    return None


def _substitute(
    file: ParsedFile, function: Function, arguments: _Arguments, me: str
) -> tuple[ParsedFile, Function, _Arguments]:
    """The function with plain arguments in the place of its parameters, in its file, and the
    other arguments: all of them where a parameter is read in an f-string.
    """
    names = nodes(function, ast.Name)
    stored_names = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    rest = [row for row in arguments if row[0] in stored_names or not _PLAIN.fullmatch(row[1])]
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
    file: ParsedFile, function: Function, call: ast.Call, is_bound: bool
) -> _Arguments | None:
    """The parameters with what is passed for them, None when that is not plain to see. The first
    parameter of a `bound` function is not passed.
    """
    every = [*function.args.posonlyargs, *function.args.args]
    positional, keyword_only = every[is_bound:], function.args.kwonlyargs
    if function.args.vararg or function.args.kwarg or len(call.args) > len(positional):
        return None
    has_stars = any(isinstance(value, ast.Starred) for value in call.args)
    has_unpacking = any(word.arg is None for word in call.keywords)
    if has_stars or has_unpacking or (is_bound and not function.args.args):
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


def _move(file: ParsedFile, body: list[ast.stmt], margin: str) -> str:
    if not body:
        return ""
    start, end = file.whole_lines(body[0])[0], file.whole_lines(body[-1])[1]
    cuts = {cut.start: cut.end for cut in dedent(file, body, 0)}
    result, at = list[str](), start
    for line in lines(file.source[start:end]):
        cut = cuts.get(at, at)
        result.append((margin if cut > at and line.strip() else "") + line[cut - at :])
        at += len(line)
    return "".join(result)
