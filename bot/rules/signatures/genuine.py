"""Telling a failure of the library from words that the program utters by itself.

"A run that merely prints or raises the expected words by itself does not count" (product.md). An assertion, or a guarded
raise, over computed values is the reporter's own check and counts; a raise that nothing computed decides does not, and
neither does one that imitates hardware or driver errors. Strings are folded over `+`, adjacent literals and f-strings first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from bot.rules.signatures import wording

_HARDWARE = re.compile(r"cuda|cudnn|cublas|nccl|device-side|hip error|rocm|out of memory|segmentation fault", re.IGNORECASE)
_SENDS = re.compile(r"\b(?:os\.kill|os\.abort|os\.killpg|raise_signal|_sigsegv|_sigabrt|_sigfpe|pthread_kill)\b")
_RAISES = re.compile(r"raise\s+(?P<name>[\w.]+(?=\s*\()|(?:\w+\.)*_*[A-Z]\w*)")
_FRAME, _SAME = 4, 0.95
_HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
_PRINTERS = {"print", "write", "writelines", "warn", "warning", "error", "info", "debug", "critical", "exception", "log"}


def literal(node: ast.AST) -> str:
    """All text that an expression holds as literals, folded into one string; what is computed becomes a space."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return literal(node.left) + literal(node.right)
    if isinstance(node, ast.Call):
        return " ".join(literal(part) for part in (node.func, *node.args, *(word.value for word in node.keywords)))
    if isinstance(node, ast.Attribute):
        return literal(node.value)
    return " ".join(literal(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))


def is_computed(test: ast.expr) -> bool:
    """Whether a condition depends on anything but constants."""
    return any(isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Subscript) for node in ast.walk(test))


def utters(said: str, message: str) -> bool:
    """Whether literal text holds the core of a message, or is the frame that computed parts were put into."""
    if not message.strip() or len(said.strip()) < 4:
        return False
    whole = wording.resemblance(message, said) >= wording.ENOUGH
    return whole or (len(said.split()) >= _FRAME and wording.resemblance(said, message) >= _SAME)


def _guarded(tree: ast.Module) -> Iterator[tuple[ast.stmt, bool]]:
    """Every statement with whether something computed decides if it runs: an `if` or `while` around it or, except for a raise
    (which there merely replaces another error), an `except`.
    """
    stack: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while stack:
        node, condition, handler = stack.pop()
        for child in ast.iter_child_nodes(node):
            inside = condition
            if isinstance(node, ast.If | ast.While) and child is not node.test and is_computed(node.test):
                inside = True
            if isinstance(child, ast.stmt):
                yield child, inside or (handler and not isinstance(child, ast.Raise))
            if isinstance(child, _HOLDERS):
                stack.append((child, inside, handler or isinstance(child, ast.ExceptHandler)))


@lru_cache(maxsize=256)
def self_raised(source: str, message: str) -> str:
    """The source line with which a program raises or prints a reported message by itself, or "" when it does not."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    given: dict[str, list[ast.expr]] | None = None
    for statement, guarded in _guarded(tree):
        spoken = _spoken(statement, guarded=guarded, imitates=bool(_HARDWARE.search(message)))
        if spoken is None:
            continue
        given = _given(tree) if given is None else given
        names = [part.id for part in ast.walk(spoken) if isinstance(part, ast.Name)]
        parts = (spoken, *(value for name in names for value in given.get(name, ())))
        if any(utters(literal(part), message) for part in parts):
            return ast.get_source_segment(source, statement) or ast.unparse(statement)
    return ""


def _given(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """What each name is set to anywhere."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _spoken(statement: ast.stmt, *, guarded: bool, imitates: bool) -> ast.expr | None:
    """The words of a statement that cannot be evidence: any raise but a guarded AssertionError, an assertion that nothing
    computed decides, a print or warning that nothing computed decides.
    """
    if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
        own_check = guarded and not imitates and _called(statement.exc) == "AssertionError"
        return None if own_check else statement.exc
    if isinstance(statement, ast.Assert):
        return None if is_computed(statement.test) else statement.msg
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _called(statement.value) in _PRINTERS:
        return None if guarded and not imitates else statement.value
    return None


def self_made(source: str, exception: str, message: str) -> str:
    """The line with which a program brings about a reported failure by itself (words, or the sending of a signal), or ""."""
    if exception.startswith("SIG"):
        found = _SENDS.search(source)
        return found[0] if found else ""
    return self_raised(source, message)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def raised_by_itself(code: str, *, guarded: bool) -> bool:
    """Whether the source line on which an exception arose is the program's own raise, and no check of computed values."""
    found = _RAISES.match(code.strip())
    return found is not None and not (guarded and found["name"].rsplit(".", 1)[-1] == "AssertionError")


def guarded_lines(source: str) -> frozenset[int]:
    """The line numbers of statements that a computed condition decides."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return frozenset()
    return frozenset(
        line
        for statement, guarded in _guarded(tree)
        if guarded
        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    )


def constant_lines(source: str) -> tuple[str, ...]:
    """What the program prints whatever happens: the literal text of unguarded prints without any computed part."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    said: list[str] = []
    for statement, guarded in _guarded(tree):
        if guarded or not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        if _called(call) in _PRINTERS and not any(is_computed(part) for part in call.args):
            said.extend(literal(ast.Tuple(elts=call.args)).splitlines())
    return tuple(said)


def own_names(source: str) -> frozenset[str]:
    """Names of classes and functions that the program defines (they may be called otherwise in the report)."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return frozenset()
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, kinds) and len(node.name) > 1 and node.name != "forward"
    )
