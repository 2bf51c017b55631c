"""Tells a failure of the library from words that the program itself prints or raises.

A run that merely prints or raises the expected words does not count (docs/method.md). An assertion,
or a guarded raise, over computed values is the reporter's own check and counts. A raise that
depends on nothing computed does not, and neither does one that imitates hardware or driver errors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from bot.rules.intake.python import module_of, name_of
from bot.rules.signatures import wording

_HARDWARE = re.compile(
    r"cuda|cudnn|cublas|nccl|device-side|hip error|rocm|out of memory|segmentation fault",
    re.IGNORECASE,
)
_SENDS = re.compile(
    r"\b(?:os\.kill|os\.abort|os\.killpg|raise_signal|_sigsegv|_sigabrt|_sigfpe|pthread_kill)\b"
)
_RAISES = re.compile(r"raise\s+(?P<name>[\w.]+(?=\s*\()|(?:\w+\.)*_*[A-Z]\w*)")
_FRAME, _SAME = 4, 0.95
_HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
_PRINTERS = {
    *("print", "write", "writelines", "warn", "warning", "error"),
    *("info", "debug", "critical", "exception", "log"),
}


def literal(node: ast.AST) -> str:
    """The literal text in an expression folded into one string; computed parts become a space."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(literal, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return literal(node.left) + literal(node.right)
    if isinstance(node, ast.Attribute):
        return literal(node.value)
    parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    if isinstance(node, ast.Call):
        parts = [node.func, *node.args, *(word.value for word in node.keywords)]
    return " ".join(map(literal, parts))


def is_computed(test: ast.expr) -> bool:
    """Whether a condition depends on anything but constants."""
    computed = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)
    return any(isinstance(node, computed) for node in ast.walk(test))


def utters(text: str, message: str) -> bool:
    """Whether literal text contains the core of a message, or is its template."""
    if not message.strip() or len(text.strip()) < 4:
        return False
    whole = wording.resemblance(message, text) >= wording.ENOUGH
    return whole or (len(text.split()) >= _FRAME and wording.resemblance(text, message) >= _SAME)


def _guarded(tree: ast.Module) -> Iterator[tuple[ast.stmt, bool]]:
    """Each statement, and whether something computed decides if it runs.

    A raise inside an `except` is not guarded: it merely replaces another error.
    """
    stack: list[tuple[ast.AST, bool, bool]] = [(tree, False, False)]
    while stack:
        node, condition, handler = stack.pop()
        test = node.test if isinstance(node, ast.If | ast.While) else None
        decided = test is not None and is_computed(test)
        for child in ast.iter_child_nodes(node):
            inside = condition or (decided and child is not test)
            if isinstance(child, ast.stmt):
                yield child, inside or (handler and not isinstance(child, ast.Raise))
            if isinstance(child, _HOLDERS):
                stack.append((child, inside, handler or isinstance(child, ast.ExceptHandler)))


@lru_cache(maxsize=256)
def self_raised(source: str, message: str) -> str:
    """The statement with which a program itself raises or prints a reported message, or ""."""
    tree = module_of(source)
    assigned, imitates = _assigned(tree), bool(_HARDWARE.search(message))
    for statement, guarded in _guarded(tree):
        words = _words(statement, guarded=guarded, imitates=imitates)
        parts = () if words is None else ast.walk(words)
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        values = (value for name in names for value in assigned.get(name, ()))
        if words and any(utters(literal(part), message) for part in (words, *values)):
            return ast.get_source_segment(source, statement) or ast.unparse(statement)
    return ""


def _assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Every value that is assigned to each name."""
    found: dict[str, list[ast.expr]] = {}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Assign)):
        for target in node.targets:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(node.value)
    return found


def _words(statement: ast.stmt, *, guarded: bool, imitates: bool) -> ast.expr | None:
    """The words of a statement that cannot be evidence, or None.

    These are a raise that is not a guarded AssertionError, and an assertion, print or warning that
    depends on nothing computed.
    """
    own_check = guarded and not imitates
    if isinstance(statement, ast.Assert):
        return None if is_computed(statement.test) else statement.msg
    if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
        asserts = name_of(statement.exc.func) == "AssertionError"
        return None if own_check and asserts else statement.exc
    return None if own_check else _printing(statement)


def _printing(statement: ast.stmt) -> ast.Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call if isinstance(call, ast.Call) and name_of(call.func) in _PRINTERS else None


def self_made(source: str, exception: str, message: str) -> str:
    """The line with which a program itself causes a reported exception or signal, or ""."""
    if not exception.startswith("SIG"):
        return self_raised(source, message)
    return found[0] if (found := _SENDS.search(source)) else ""


def raised_by_itself(code: str, *, guarded: bool) -> bool:
    """Whether a source line that raised is the program's own raise and not a guarded check."""
    found = _RAISES.match(code.strip())
    return found is not None and not (
        guarded and found["name"].rsplit(".", 1)[-1] == "AssertionError"
    )


def guarded_lines(source: str) -> frozenset[int]:
    """The line numbers of statements that a computed condition decides."""
    return frozenset(
        line
        for statement, guarded in _guarded(module_of(source))
        if guarded
        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    )


def constant_lines(source: str) -> tuple[str, ...]:
    """The lines that a program prints whatever happens: unguarded prints of constants."""
    return tuple(
        line
        for statement, guarded in _guarded(module_of(source))
        if not guarded and (call := _printing(statement))
        if not any(map(is_computed, call.args))
        for line in literal(ast.Tuple(elts=call.args)).splitlines()
    )


def own_names(source: str) -> frozenset[str]:
    """Classes and functions that the program defines; the report may name them differently."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        node.name
        for node in ast.walk(module_of(source))
        if isinstance(node, kinds) and len(node.name) > 1 and node.name != "forward"
    )
