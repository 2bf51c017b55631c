"""A long training made short: counts of epochs, steps and iterations brought down. Done only after a run took too long."""

from __future__ import annotations

import ast
import re

from bot.models.bug import Mend
from bot.rules.mends.edits import Edit, Text, apply

_COUNT = re.compile(
    r"^(?:max_|num_|n_|nb_|total_)?(?:epochs?|steps?|iters?|iterations?|updates|timesteps|trials)$", re.IGNORECASE
)
WHY = "the program did not end in time; fewer rounds of the same work"
FEW = 3


def shorten(source: str) -> tuple[str, tuple[Mend, ...]]:
    """The program with counts above 3 of epochs, steps or iterations set to 3; as it is when there are none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source, ()
    text, edits, said = Text(source), list[Edit](), list[str]()
    for node in ast.walk(tree):
        for name, value in _named_values(node):
            if _COUNT.match(name) and isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value > FEW:
                edits.append((*text.span(value), str(FEW)))
                said.append(f"{name}: {value.value} → {FEW}")
    return apply(source, edits), tuple(Mend(what=what, why=WHY) for what in dict.fromkeys(said))


def _named_values(node: ast.AST) -> list[tuple[str, ast.expr]]:
    if isinstance(node, ast.keyword) and node.arg:
        return [(node.arg, node.value)]
    if isinstance(node, ast.Assign):
        return [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
        return [(node.target.id, count) for count in _counted(node.iter)]
    return []


def _counted(node: ast.expr) -> list[ast.expr]:
    """The bound of `range(n)`."""
    is_range = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range" and len(node.args) == 1
    return node.args if is_range and isinstance(node, ast.Call) else []
