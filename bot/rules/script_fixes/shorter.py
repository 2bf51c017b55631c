"""Shortens a long training by lowering its counts. Used only after a run took too long."""

from __future__ import annotations

import ast
import re

from bot.models.bug import ScriptFix
from bot.rules.intake.python import is_call_of, module_of
from bot.rules.script_fixes.edits import Text, apply_noted

_COUNT = re.compile(
    r"^(?:max_|num_|n_|nb_|total_)?(?:epochs?|steps?|iters?|iterations?|updates|timesteps|trials)$",
    re.IGNORECASE,
)
WHY = "the program did not end in time; fewer rounds of the same work"
FEW = 3


def shorten(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with its counts of epochs, steps or iterations lowered to 3."""
    text = Text(source)
    changes = [
        ((*text.span(value), str(FEW)), f"{name}: {value.value} → {FEW}")
        for node in ast.walk(module_of(source))
        for name, value in _named_values(node)
        if _COUNT.match(name)
        and isinstance(value, ast.Constant)
        and isinstance(value.value, int)
        and value.value > FEW
    ]
    return apply_noted(source, changes, WHY)


def _named_values(node: ast.AST) -> list[tuple[str, ast.expr]]:
    if isinstance(node, ast.keyword) and node.arg:
        return [(node.arg, node.value)]
    if isinstance(node, ast.Assign):
        return [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if not (isinstance(node, ast.For) and isinstance(node.target, ast.Name)):
        return []
    loop = node.iter
    bounds = loop.args if isinstance(loop, ast.Call) and is_call_of(loop, "range") else []
    return [(node.target.id, bounds[0])] if len(bounds) == 1 else []
