"""The statements that a run never reached, as one set: most of a long program goes with them in the first try."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.mends.edits import Text
from bot.rules.reduce.edits import Files, Node, programs
from bot.rules.reduce.statements import node_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Reached = frozenset[tuple[str, int]]


def unreached(files: Files, reached: Reached) -> tuple[Node, ...]:
    """What can be dropped because no line of it ran; a function counts by its body. () when nothing is known."""
    ran = {path for path, _ in reached}
    return tuple(
        node
        for path, source, tree in programs(files)
        if path in ran
        for node in _idle(path, Text(source), tree.body, "", frozenset(line for each, line in reached if each == path))
    )


def _idle(path: str, text: Text, body: list[ast.stmt], label: str, ran: frozenset[int]) -> Iterator[Node]:
    for statement in body:
        first = statement.body[0].lineno if isinstance(statement, _FUNCTIONS) else statement.lineno
        if ran.isdisjoint(range(first, (statement.end_lineno or first) + 1)):
            yield node_of(path, text, statement, label, len(body))
            continue
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, [])
            if inner and isinstance(inner[0], ast.stmt):
                yield from _idle(path, text, inner, f"{statement.lineno}.{name}", ran)
