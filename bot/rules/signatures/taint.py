"""Which names of a program hold something of a kind: one coarse walk of its data flow, in one
namespace and without regard to order. It may find too much.
"""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator

from bot.rules.intake.python import name_of

Flow = tuple[set[str], ast.AST]
"""Names that are bound or changed, and what their values come from."""

Source = Callable[[ast.AST], bool]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def tainted_names(
    flows: Iterable[Flow], is_source: Source, clean: Collection[str] = ()
) -> set[str]:
    """All names that depend on a source: the least fixed point of the flows. Those that are
    `clean` never do.
    """
    found, rows, new = set[str](), list(flows), {""}
    while new:
        reached = [names for names, value in rows if depends_on(value, is_source, found)]
        new = set[str]().union(*reached) - found - set(clean)
        found |= new
    return found


def depends_on(node: ast.AST, is_source: Source, names: Collection[str]) -> bool:
    """Whether anything in a node is a source or reads one of these names."""
    return any(
        is_source(part) or (isinstance(part, ast.Name) and part.id in names)
        for part in ast.walk(node)
    )


def names_in(node: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """The names in a piece of a program, of those that are read or written alone if so wanted."""
    return {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, context)
    }


def assignment_flows(tree: ast.AST) -> Iterator[Flow]:
    """What assignments bind, or which objects they change."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((names_in(target), node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            yield names_in(node.target), node.value


def call_flows(tree: ast.AST) -> Iterator[Flow]:
    """What the program's own functions are given, and what they return."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
    for function in functions.values():
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield {function.name}, node.value
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and name_of(call.func) in functions:
            inside = ast.walk(functions[name_of(call.func)])
            parameters = {part.arg for part in inside if isinstance(part, ast.arg)}
            given = (*call.args, *(word.value for word in call.keywords))
            yield from ((parameters, part) for part in given)


def block_flows(tree: ast.AST) -> Iterator[Flow]:
    """What definitions, loops and `with` blocks bind, by all that stands in them."""
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield {node.name}, node
        elif isinstance(node, ast.For | ast.AsyncFor):
            # What a loop over something assigns in its body comes from it as well.
            stored = set[str]().union(*(names_in(row, ast.Store) for row in node.body))
            yield names_in(node.target) | stored, node.iter
        elif isinstance(node, ast.comprehension):
            yield names_in(node.target), node.iter
        elif isinstance(node, ast.With | ast.AsyncWith):
            targets = [item.optional_vars for item in node.items if item.optional_vars]
            bound = set[str]().union(*map(names_in, targets))
            sources = (*(item.context_expr for item in node.items), *node.body)
            yield from ((bound, source) for source in sources)
