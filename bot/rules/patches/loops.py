"""How often a program does its operation, as far as its text tells: the loops round it and what they rest on."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from bot.rules.patches import shape
from bot.rules.patches.operation import Operation, places, results

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_REPEATS = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, *_COMPREHENSIONS)


def objections(before: ast.Module, after: ast.Module, operation: Operation) -> Iterator[str]:
    """Where a change has the operation done over something else, or on a line on which it cannot be seen whether it is done."""
    old, new = _heads(before, operation), _heads(after, operation)
    if Counter(map(ast.unparse, old)) != Counter(map(ast.unparse, new)):
        yield "It changes what a loop or comprehension round the operation runs over, or takes the operation out of it."
    fixed = set(shape.imported(before)) | (results(operation, before) if operation.valued else set())
    read = (node for head in old for node in ast.walk(head) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    for name in sorted({node.id for node in read} - fixed):
        if _makes(before, operation, name) != _makes(after, operation, name):
            yield f"It changes `{name}`, on which it hangs how often the operation is done."
    if len(places(operation, after)) != len(places(operation, before)):
        yield "It does the operation in more or in fewer places."
    if _crowded(after, operation) > _crowded(before, operation):
        yield "It puts the operation on a line with another statement, so that it cannot be seen whether it is done."


def straight(tree: ast.Module, statement: ast.stmt) -> bool:
    """Whether a statement is done once if it is done at all: it stands in no loop and no function."""
    inner = (node for part in shape.expressions(statement) for node in ast.walk(part))
    return not any(isinstance(node, _REPEATS) for node in (*shape.around(tree, statement), *inner))


def _heads(tree: ast.Module, operation: Operation) -> list[ast.expr]:
    """What the loops and comprehensions round the operation run over, and what a `while` round it tests."""
    found: list[ast.expr] = []
    for place in places(operation, tree):
        for node in shape.around(tree, place):
            if isinstance(node, ast.For | ast.AsyncFor):
                found += [node.iter, node.target]
            elif isinstance(node, ast.While):
                found.append(node.test)
        ours = [each for each in shape.calls(place) if shape.called(each) in operation.calls] or shape.spine(place)
        comprehensions = (node for part in shape.expressions(place) for node in ast.walk(part))
        for node in comprehensions:
            if isinstance(node, _COMPREHENSIONS) and _repeats(node, ours):
                found += [part for each in node.generators for part in (each.iter, each.target)]
    return found


def _repeats(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, calls: list[ast.Call]) -> bool:
    """Whether a comprehension does one of the calls for each of what it runs over."""
    once = {id(each) for each in ast.walk(node.generators[0].iter)}
    return any(id(call) not in once and any(each is call for each in ast.walk(node)) for call in calls)


def _makes(tree: ast.Module, operation: Operation, name: str) -> Counter[str]:
    """The statements that set a name or call a method of what it holds, but for the operation itself."""
    own = set(map(id, places(operation, tree)))
    return Counter(
        shape.skeleton(each, lambda _: False)
        for each in shape.statements(tree)
        if id(each) not in own and not isinstance(each, ast.For | ast.AsyncFor) and _touches(each, name)
    )


def _touches(statement: ast.stmt, name: str) -> bool:
    nodes = [node for part in shape.expressions(statement) for node in ast.walk(part)]
    stores = (node for node in nodes if isinstance(node, ast.Name | ast.Attribute | ast.Subscript))
    if any(not isinstance(node.ctx, ast.Load) and shape.root(node) == name for node in stores):
        return True
    methods = (node.func for node in nodes if isinstance(node, ast.Call) and isinstance(statement, ast.Expr))
    return any(isinstance(func, ast.Attribute) and shape.root(func) == name for func in methods)


def _crowded(tree: ast.Module, operation: Operation) -> int:
    """How many operations stand on a line with another statement."""
    rows = Counter(line for each in shape.statements(tree) for line in shape.lines(each))
    return sum(any(rows[line] > 1 for line in shape.lines(place)) for place in places(operation, tree))
