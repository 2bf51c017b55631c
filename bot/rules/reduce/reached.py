"""Statements that a run never reached, as one set: most of a long program goes with them in the
first try.
"""

from __future__ import annotations

import ast

from bot.rules.reduce.edits import Files, ReductionNode
from bot.rules.reduce.parsed_file import ParsedFile, parsed_files
from bot.rules.reduce.statements import outermost

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Reached = frozenset[tuple[str, int]]


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
        first = statement.body[0] if isinstance(statement, _FUNCTIONS) else statement
        return ran.isdisjoint(range(first.lineno, (statement.end_lineno or first.lineno) + 1))

    return tuple(outermost(file, idle))
