"""Statements that a run never reached, and those that the failure does not depend on by name, each
kind as one set: most of a long program goes with them in the first tries.
"""

import ast
from collections.abc import Iterator

from bot.rules.code.syntax import Function
from bot.rules.reduce.edits import Files, ParsedFile, ReductionNode, blocks, parsed_files
from bot.rules.reduce.statements import outermost

Stack = frozenset[tuple[str, int]]
Reached = frozenset[tuple[str, int]]
_Nodes = set[ast.AST]


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
