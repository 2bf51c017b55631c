"""Shows where the exceptions arose that a program catches and reports in words of its own."""

import ast

from bot.models.bug import ScriptFix
from bot.rules.intake.python import module_of, name_of
from bot.rules.script_fixes.edits import Edit, Text, apply

_SHOWS = '__import__("traceback").print_exc()'
_OPTIONAL = {"ImportError", "ModuleNotFoundError"}
_TOLD = {"print", "exit", "fail", "write", "format_exc", "exc_info", "error", "warning", "info"}
_TRACED = {"print_exc", "print_exception", "exception"}


def show_caught(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with a traceback printed by each of its handlers that reports an exception. How
    it goes on and ends stays the same.
    """
    handlers = (node for node in ast.walk(module_of(source)) if _reports(node))
    text = Text(source)
    edits = [_shown(text, node) for node in handlers if isinstance(node, ast.ExceptHandler)]
    fix = ScriptFix(
        what="printed the traceback of what the program catches",
        why="its own words do not say where the exception arose",
    )
    return apply(source, edits), (fix,) if edits else ()


def _shown(text: Text, handler: ast.ExceptHandler) -> Edit:
    first = handler.body[0]
    start = text.span(first)[0]
    before = text.source[:start].rpartition("\n")[2]
    between = "; " if before.strip() else f"\n{before}"
    return start, start, _SHOWS + between


def _reports(node: ast.AST) -> bool:
    """Whether a handler says something about what it caught, without a traceback and without
    raising again. What an optional import raises is no failure.
    """
    if not isinstance(node, ast.ExceptHandler):
        return False
    parts = [part for statement in node.body for part in ast.walk(statement)]
    types = {name_of(part) for part in ast.walk(node.type)} if node.type else set[str]()
    called = {name_of(part.func) for part in parts if isinstance(part, ast.Call)}
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    silent = node.name not in names and not called & _TOLD
    raised = any(isinstance(part, ast.Raise) for part in parts)
    return not (silent or raised or types & _OPTIONAL or called & _TRACED)
