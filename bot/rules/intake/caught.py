"""Exceptions that a program of the report catches and prints in words of its own."""

import ast
import re
from collections.abc import Iterator, Sequence

from bot.models.bug import Fence, FenceKind, Traceback
from bot.rules.intake.python import is_call_of, module_of, name_of

_MOST_LINES = 200
_FEWEST_WORDS = 3
_PRINTED = {FenceKind.OUTPUT, FenceKind.LOG, FenceKind.TRACEBACK}
_ROOTS = {"", "Exception", "BaseException"}


def find(fences: Sequence[Fence]) -> Iterator[Traceback]:
    """What lines of pasted output tell of an exception, by the prints in the handlers of the
    report's programs.
    """
    programs = [fence for fence in fences if fence.kind is FenceKind.PROGRAM]
    forms = [form for fence in programs for form in _forms(module_of(fence.text))]
    for fence in fences if forms else ():
        lines = fence.raw.split("\n")[:_MOST_LINES] if fence.kind in _PRINTED else ()
        for number, line in enumerate(lines, fence.line):
            rows = (_row(form, kind, line) for form, kind in forms)
            if row := next(filter(None, rows), None):
                yield row.model_copy(update={"fence": fence.index, "line": number})


def _row(form: re.Pattern[str], kind: str, line: str) -> Traceback | None:
    match = form.fullmatch(line.strip()) if len(line) < 1000 else None
    words = match["words"].strip() if match else ""
    named = (match.groupdict().get("kind") or kind) if match else ""
    enough = len(words.split()) >= (1 if named else _FEWEST_WORDS)
    return Traceback(exception=named, message=words) if enough else None


def _forms(tree: ast.Module) -> Iterator[tuple[re.Pattern[str], str]]:
    """How each print in a handler shows the exception, and the class that the handler catches."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.name:
            kind = name_of(node.type) if node.type else ""
            calls = (part for each in node.body for part in ast.walk(each))
            for call in calls:
                if isinstance(call, ast.Call) and is_call_of(call, "print"):
                    pattern = r"\s*".join(_pattern(part, node.name) for part in call.args)
                    known = "<kind>" in pattern or _labels(call)
                    if known and pattern.count("<words>") == 1 and pattern.count("<kind>") <= 1:
                        yield re.compile(pattern), "" if kind in _ROOTS else kind


def _labels(call: ast.Call) -> bool:
    """Whether a print has words of its own, by which its lines are known."""
    return any(
        isinstance(part, ast.Constant) and re.search(r"[A-Za-z]{3}", str(part.value))
        for part in ast.walk(call)
    )


def _pattern(node: ast.expr, name: str) -> str:
    """A regular expression for what printing an expression shows of the exception `name`."""
    match node:
        case ast.Constant(value=value):
            return re.escape(str(value).strip())
        case ast.JoinedStr(values=values):
            return r"\s*".join(_pattern(value, name) for value in values)
        case ast.FormattedValue(value=value):
            return _pattern(value, name)
        case ast.Call(func=ast.Name(id="str"), args=[value]):
            return _pattern(value, name)
        case ast.Name(id=found) if found == name:
            return "(?P<words>.+)"
        case ast.Attribute(value=ast.Call(func=ast.Name(id="type")), attr="__name__"):
            return r"(?P<kind>\w+)"
    return ".*?"
