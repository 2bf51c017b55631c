"""Remarks in a program that say which statement fails: `# raises ValueError`, `# <- crashes`."""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from bot.models.bug import Fence, FenceKind, Frame, Role, Traceback
from bot.rules.intake.python import module_of

_REMARK = re.compile(r"^(?P<code>[^#]*)#+\s*(?P<note>\S.*)$")
_CLASS = (
    r"(?<![\w./])(?P<exc>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b"
    r"(?::\s+(?P<msg>\S.*))?"
)
_FAILS = (
    r"\b(?:fails?|crash(?:es)?|raises|throws?|breaks|boom|does(?: not|n't) work)\b"
    r"|\berrors?(?: (?:here|out)\b|!|$)"
)
_TOLD = re.compile(rf"{_CLASS}|(?i:{_FAILS})")
_DENIED = re.compile(
    r"\b(?:no|not|never|without|should|would|could|might|may|can|expect\w*|used to|instead|when"
    r"|if|until|avoids?|prevents?|handles?|catch\w*|ignores?|suppress\w*)\b|n't\b",
    re.I,
)
_ELSEWHERE = re.compile(
    r"\?|\b(?:works?|worked|fixed|expected|if|when|unless|only|for|in|on|with|without)\b", re.I
)
_LONGEST, _MOST_LINES, _MOST = 160, 3000, 2
_SHOWN = {Role.REPRODUCER, Role.UNSTATED, Role.OBSERVED}
_ACTIVE = (ast.Call, ast.BinOp, ast.Subscript, ast.Attribute, ast.Compare)
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Delete)
_HEADED = (ast.For, ast.With, ast.If, ast.While)


def find(fences: Sequence[Fence]) -> Iterator[Traceback]:
    """The failures that remarks name, each at its statement: on its line, or alone above or below
    it. The class is "" where the remark gives none.
    """
    shown = (row for row in fences if row.kind is FenceKind.PROGRAM and row.role in _SHOWN)
    yield from islice((row for fence in shown for row in _of(fence)), _MOST)


def _of(fence: Fence) -> Iterator[Traceback]:
    tree, lines = module_of(fence.text), fence.text.split("\n")
    for at, line in enumerate(lines[:_MOST_LINES]):
        match = _REMARK.match(line) if "#" in line and len(line) < 1000 else None
        said = _said(match["note"]) if match else None
        if match is None or said is None or match["code"].count('"') % 2:
            continue
        following = lines[at + 1] if at + 1 < len(lines) else ""
        number = at + 1 if match["code"].strip() else at + 2 if following.strip() else at
        if code := _statement(tree, lines, number):
            frames = (Frame(path="", code=code),)
            yield said.model_copy(update={"frames": frames, "fence": fence.index})


def _said(note: str) -> Traceback | None:
    """The failure that a remark names; None where it names none, denies one, expects one or sets
    a condition.
    """
    told = list(_TOLD.finditer(note)) if len(note) <= _LONGEST else []
    if not told or _DENIED.search(note[: told[0].start()]):
        return None
    named = next((match for match in told if match["exc"]), told[-1])
    words = (named["msg"] or "").strip()
    rest = "" if words else note[told[-1].end() :]
    exception = named["exc"] or ""
    return None if _ELSEWHERE.search(rest) else Traceback(exception=exception, message=words)


def _statement(tree: ast.Module, lines: list[str], number: int) -> str:
    """The lines of the statement on a line: what it calls, or the head of a block."""
    for node in ast.walk(tree):
        if isinstance(node, _SIMPLE) and node.lineno <= number <= (node.end_lineno or node.lineno):
            acts = any(isinstance(part, _ACTIVE) for part in ast.walk(node))
            shown = lines[node.lineno - 1 : node.end_lineno]
            return "\n".join(line.strip() for line in shown) if acts else ""
        if isinstance(node, _HEADED) and node.lineno == number:
            return lines[number - 1].strip()
    return ""
