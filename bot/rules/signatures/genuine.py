"""Distinguishes a failure of the library from words that the program itself prints or raises.

A run that merely prints or raises the expected words does not count (docs/method.md). An assertion
over computed values is the reporter's own check and counts, and so does any raise that a value from
a library decides. A raise that depends on nothing computed does not, and neither does one that
imitates hardware or driver errors.
"""

import ast
import re
import sys
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache

from bot.rules.intake import exceptions
from bot.rules.intake.python import module_of, name_of
from bot.rules.parsing import parse
from bot.rules.signatures import taint, wording

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


class Guard(IntEnum):
    """What decides whether a statement runs: nothing, something computed, a library's value."""

    NONE = 0
    COMPUTED = 1
    LIBRARY = 2


def handles(source: str) -> bool:
    """Whether a program catches anything; one that cannot be read may."""
    try:
        tree = parse(source)
    except SyntaxError:
        return True
    return any(isinstance(node, ast.ExceptHandler) for node in ast.walk(tree))


def _guarded(tree: ast.Module) -> Iterator[tuple[ast.stmt, Guard]]:
    """Each statement and what decides if it runs.

    A raise inside an `except` is not guarded: it merely replaces another error.
    """
    libraries = _library_values(tree)
    stack: list[tuple[ast.AST, Guard, bool]] = [(tree, Guard.NONE, False)]
    while stack:
        node, condition, handler = stack.pop()
        test = node.test if isinstance(node, ast.If | ast.While) else None
        decided = _decides(test, libraries) if test is not None else Guard.NONE
        for child in ast.iter_child_nodes(node):
            inside = max(condition, decided if child is not test else Guard.NONE)
            if isinstance(child, ast.stmt):
                caught = handler and not isinstance(child, ast.Raise)
                yield child, max(inside, Guard.COMPUTED if caught else Guard.NONE)
            if isinstance(child, _HOLDERS):
                stack.append((child, inside, handler or isinstance(child, ast.ExceptHandler)))


def _decides(test: ast.expr, libraries: set[str]) -> Guard:
    if not is_computed(test):
        return Guard.NONE
    return Guard.LIBRARY if taint.names_in(test) & libraries else Guard.COMPUTED


def _library_values(tree: ast.Module) -> set[str]:
    """The names of a program that hold a library, or what was computed with one."""
    imported = {name for node in ast.walk(tree) for name in _imported(node)}
    flows = (*taint.assignment_flows(tree), *taint.block_flows(tree), *taint.call_flows(tree))
    return imported | taint.tainted_names(
        flows, lambda node: isinstance(node, ast.Name) and node.id in imported
    )


def _imported(node: ast.AST) -> Iterator[str]:
    """The names that a statement imports from outside the standard library."""
    names = node.names if isinstance(node, ast.Import | ast.ImportFrom) else ()
    for alias in names:
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        if module.partition(".")[0] not in sys.stdlib_module_names:
            yield alias.asname or alias.name.partition(".")[0]


@lru_cache(maxsize=256)
def self_raised(source: str, message: str, *, prints: bool = True) -> str:
    """The statement with which a program itself raises or, where `prints` count, prints a reported
    message; or "".
    """
    tree = module_of(source)
    assigned, imitates = _assigned(tree), bool(_HARDWARE.search(message))
    for statement, guard in _guarded(tree):
        if not prints and _printing(statement) is not None:
            continue
        own = _words(statement, guard=guard, imitates=imitates)
        for words in filter(None, (own, *_made(statement, guard))):
            values = (value for name in taint.names_in(words) for value in assigned.get(name, ()))
            if any(utters(literal(part), message) for part in (words, *values)):
                return ast.get_source_segment(source, statement) or ast.unparse(statement)
    return ""


def _made(statement: ast.stmt, guard: Guard) -> Iterator[ast.expr]:
    """The exceptions that a statement makes without raising them: for a mock, a future, a later
    raise.
    """
    if isinstance(statement, ast.Raise):
        return
    parts = (part for part in ast.iter_child_nodes(statement) if not isinstance(part, _HOLDERS))
    for node in (node for part in parts for node in ast.walk(part)):
        made = isinstance(node, ast.Call) and exceptions.suffixed(name_of(node.func))
        if isinstance(node, ast.Call) and made and not is_check(name_of(node.func), guard):
            yield from node.args


def _assigned(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Every value that is assigned to each name."""
    found: dict[str, list[ast.expr]] = {}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Assign)):
        for target in node.targets:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(node.value)
    return found


def _words(statement: ast.stmt, *, guard: Guard, imitates: bool) -> ast.expr | None:
    """The words of a statement that cannot be evidence, or None.

    These are a raise that is no check of a computed value, and an assertion, print or warning that
    depends on nothing computed.
    """
    own_check = guard and not imitates
    if isinstance(statement, ast.Assert):
        return None if is_computed(statement.test) else statement.msg
    if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
        counts = is_check(name_of(statement.exc.func), guard)
        return None if own_check and counts else statement.exc
    return None if own_check else _printing(statement)


def _printing(statement: ast.stmt) -> ast.Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call if isinstance(call, ast.Call) and name_of(call.func) in _PRINTERS else None


def self_made(source: str, exception: str, message: str, *, prints: bool) -> str:
    """The line with which a program itself causes a reported exception or signal, or "". Only an
    exception that was seen in the program's output could come from one of its `prints`.
    """
    if not exception.startswith("SIG"):
        return self_raised(source, message, prints=prints)
    return found[0] if (found := _SENDS.search(source)) else ""


def is_check(exception: str, guard: Guard) -> bool:
    """Whether a raise is the program's own check: an assertion over anything computed, or any
    error over a library's value.
    """
    return guard >= (Guard.COMPUTED if exception == "AssertionError" else Guard.LIBRARY)


def raised_by_itself(source: str, line: int | None, code: str) -> bool:
    """Whether a line of a program that raised is its own raise and no check of a computed value."""
    found = _RAISES.match(code.strip())
    if found is None:
        return False
    guards = (
        guard
        for statement, guard in _guarded(module_of(source))
        if line is not None and statement.lineno <= line <= (statement.end_lineno or line)
    )
    return not is_check(found["name"].rsplit(".", 1)[-1], max(guards, default=Guard.NONE))


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
