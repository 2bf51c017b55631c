"""Statements to remove or to unwrap, as a tree: what cannot go whole may go in parts. Those that a
run never reached and those that the failure does not depend on by name go as one set each: most of
a long program goes with them in the first tries.
"""

import ast
from collections.abc import Callable, Iterator

from bot.models.attempt import Reached
from bot.rules.code.syntax import Function
from bot.rules.reduce.edits import (
    Files,
    ParsedFile,
    Reduction,
    ReductionNode,
    Replacement,
    blocks,
    first_line,
    parsed_files,
)

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNWRAPPED = (ast.If, ast.With, ast.AsyncWith, ast.Try, ast.While)
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
    unwrapped = tuple(ReductionNode(reduction) for reduction in _unwraps(file, statement))
    inner = (unwrapped, *(_block(file, body) for body in blocks(statement)))
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
    if isinstance(statement, _UNWRAPPED):
        yield from unwrapped(file, statement, statement.body)
        yield from unwrapped(file, statement, getattr(statement, "orelse", []))
        if isinstance(statement, ast.If) and statement.orelse:
            last = statement.body[-1]
            start = file.offset((last.end_lineno or last.lineno) + 1, 0)
            yield Reduction("drop else", (file.cut(start, file.whole_lines(statement)[1]),))
    elif isinstance(statement, ast.For | ast.AsyncFor):
        counts = getattr(getattr(statement.iter, "func", None), "id", "") == "range"
        first = "0" if counts else f"next(iter({file.of(statement.iter)}))"
        yield from unwrapped(file, statement, statement.body)
        head = f"{file.of(statement.target)} = {first}"
        yield from unwrapped(file, statement, statement.body, head)


def unwrapped(
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
    yield Reduction(what, (*around, *dedented(file, body, statement.col_offset)))


def dedented(file: ParsedFile, body: list[ast.stmt], column: int) -> list[Replacement]:
    """What moves a block left to a column; lines within strings stay as they are."""
    by, found, strings = body[0].col_offset - column, list[Replacement](), inside_strings(body)
    for line in range(first_line(body[0]), (body[-1].end_lineno or body[-1].lineno) + 1):
        start = file.offset(line, 0)
        margin = file.source[start : start + by]
        if line not in strings and margin and not margin.strip(" "):
            found.append(file.cut(start, start + by))
    return found


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
    found, dropped = parsed_files(files), _Nodes()
    own = {path.removesuffix(".py").replace("/", ".") for path in files}
    while True:
        live = [(file.path, node) for file in found for node in _live(file.tree, dropped)]
        read = {name for _, node in live for name in _read(node, own)}
        more = {
            node
            for path, node in live
            if isinstance(node, ast.stmt)
            and not _on_stack(path, node, stack)
            and _unread(node, read, dropped, loose=bool(stack))
        }
        if not more:
            break
        dropped |= more
    return tuple(node for file in found for node in outermost(file, dropped.__contains__))


def _live(tree: ast.AST, dropped: _Nodes) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node not in dropped:
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _read(node: ast.AST, own: set[str]) -> Iterator[str]:
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


def _unread(node: ast.stmt, read: set[str], dropped: _Nodes, *, loose: bool) -> bool:
    match node:
        case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
            return name not in read and not name.startswith("__") and name != "forward"
        case ast.Import() | ast.ImportFrom():
            bound = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            return bound.isdisjoint(read)
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {name for target in targets for name in _bound(target)}
            return bool(names) and not names & read and (loose or "*" not in names)
        case ast.Expr(ast.Constant() | ast.Name() | ast.Attribute()):
            return True
        case ast.Expr():
            return loose and not ast.unparse(node).startswith("super()")
        case ast.If() | ast.For() | ast.With() | ast.While():
            inner = [statement for body in blocks(node) for statement in body]
            return all(one in dropped or isinstance(one, ast.Pass) for one in inner)
    return False


def _bound(target: ast.expr) -> list[str]:
    match target:
        case ast.Name(name) | ast.Attribute(_, name):
            return [name]
        case ast.Tuple(parts) | ast.List(parts):
            return [name for part in parts for name in _bound(part)]
    return ["*"]  # an item of a container: its readers cannot be seen


def unreached(files: Files, reached: Reached) -> tuple[ReductionNode, ...]:
    """What can be dropped because no line of it ran; a function counts by its body. () when no
    run was watched.
    """
    ran = {path for path, _ in reached}
    watched = (file for file in parsed_files(files) if file.path in ran)
    return tuple(node for file in watched for node in _unreached(file, reached))


def _unreached(file: ParsedFile, reached: Reached) -> tuple[ReductionNode, ...]:
    ran = {line for path, line in reached if path == file.path}

    def idle(statement: ast.stmt) -> bool:
        first = statement.body[0] if isinstance(statement, Function) else statement
        return ran.isdisjoint(range(first.lineno, (statement.end_lineno or first.lineno) + 1))

    return tuple(outermost(file, idle))
