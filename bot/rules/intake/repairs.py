"""Single repairs of a pasted program, chosen by what the parser complains about."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from bot.models.bug import Mend
from bot.rules.intake.exceptions import lone
from bot.rules.intake.plain import is_label, is_output, is_prose
from bot.rules.intake.python import bound_names, evidence, is_repr, tree_of
from bot.rules.intake.text import indent_of

_ELLIPSIS_ARGUMENT = re.compile(r"(?<=[(,])\s*\.\.\.\s*(?=[,)])")
_DEF = re.compile(r"^\s*(?:async\s+)?def\b|^\s*class\b")
_OPENER = re.compile(r"^\s*(?:@|def |class |async def |if __name__)")
_TRACE = re.compile(r"Traceback \(most recent call last\)|^\s*File \"|^(?:[\w.]+\.)?\w*(?:Error|Exception)\b(?::|$)")


@dataclass(frozen=True, slots=True)
class Repair:
    """A repaired text, the note about it, and output that was set aside."""

    text: str
    mend: Mend
    shown: tuple[tuple[int, str], ...] = ()


def next_repair(text: str, error: SyntaxError) -> Repair | None:
    """The repair that answers this complaint, or None when there is none that is plainly right."""
    lines = text.split("\n")
    at = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    message = error.msg or ""
    return (
        _prose(lines, at)
        or _tail(lines, at)
        or _placeholder(lines, at)
        or (_empty_body(lines, message) if "expected an indented block" in message else None)
        or (_shift(lines, at) if isinstance(error, IndentationError) else None)
    )


def _prose(lines: list[str], at: int) -> Repair | None:
    """Comment out the sentence that the parser stumbled over, or the one just before."""
    for here in (at, at - 1, at + 1):
        if not 0 <= here < len(lines) or not is_prose(lines[here]) or is_label(lines[here]):
            continue
        last = here
        while last + 1 < len(lines) and is_prose(lines[last + 1]) and not is_label(lines[last + 1]):
            last += 1
        changed = [*lines]
        for i in range(here, last + 1):
            changed[i] = f"{lines[i][: indent_of(lines[i])]}# {lines[i].strip()}"
        return Repair("\n".join(changed), Mend(what=f"commented out: {lines[here].strip()[:120]}", why="a sentence, not code"))
    return None


def _tail(lines: list[str], at: int) -> Repair | None:
    """Set output aside that was pasted below the code."""
    cut = next((i for i in range(max(0, at - 1), min(len(lines), at + 2)) if is_label(lines[i])), None)
    if cut is None:
        cut = _start_of_output(lines, at)
    if cut is None or cut == 0:
        return None
    head = "\n".join(lines[:cut]).rstrip()
    tree = tree_of(head)
    if tree is None or evidence(tree) != "strong":
        return None
    rest = lines[cut:]
    code_again = [
        i for i, line in enumerate(rest) if re.match(r"(?:import |from \S+ import |def |class |with |for .*:$)", line)
    ]
    if code_again and not any(map(_tells, rest)):
        return None
    shown = rest[1:] if is_label(rest[0]) else rest
    output = "\n".join(shown).strip("\n")
    mend = Mend(what="set output aside that stood below the code", why="it is what the program printed")
    return Repair(head, mend, ((cut + len(rest) - len(shown), output),) if output.strip() else ())


def _tells(line: str) -> bool:
    """Whether a line is part of a traceback, or names an exception."""
    return bool(_TRACE.search(line) or lone(line))


def _start_of_output(lines: list[str], at: int) -> int | None:
    """Where the run of output lines around a line begins."""
    trace = next((i for i, line in enumerate(lines) if _tells(line) and not line.lstrip().startswith("#")), None)
    if trace is not None and trace <= at + 1:
        return trace
    if not is_output(lines[at]) and not (at + 1 < len(lines) and is_output(lines[at + 1])):
        return None
    rest = [line for line in lines[at:] if line.strip()]
    if sum(is_output(line) or is_prose(line) for line in rest) < 0.6 * len(rest):
        return None
    start = at
    while start > 0 and lines[start - 1].strip() and is_output(lines[start - 1]) and _not_code(lines[start - 1]):
        start -= 1
    return start


def _not_code(line: str) -> bool:
    tree = tree_of(line.strip())
    return tree is None or evidence(tree) == "none"


def _placeholder(lines: list[str], at: int) -> Repair | None:
    """`def f(self, ...)` as people write when the arguments do not matter."""
    if not _DEF.match(lines[at]) or not _ELLIPSIS_ARGUMENT.search(lines[at]):
        return None
    changed = [*lines]
    changed[at] = _ELLIPSIS_ARGUMENT.sub(
        " *args, **kwargs" if "(..." not in lines[at] else "*args, **kwargs", lines[at], count=1
    )
    return Repair(
        "\n".join(changed), Mend(what="`...` among parameters became *args, **kwargs", why="an ellipsis is no parameter")
    )


def _empty_body(lines: list[str], message: str) -> Repair | None:
    """A definition without a body, before another definition or the end."""
    header = re.search(r"on line (\d+)", message)
    if not header:
        return None
    opener = min(int(header[1]), len(lines)) - 1
    following = next((line for line in lines[opener + 1 :] if line.strip() and not line.lstrip().startswith("#")), "")
    if following and not (_OPENER.match(following) and indent_of(following) <= indent_of(lines[opener])):
        return None
    end = next((i for i in range(opener, len(lines)) if lines[i].split("#")[0].rstrip().endswith(":")), opener)
    changed = [*lines[: end + 1], " " * (indent_of(lines[opener]) + 4) + "pass", *lines[end + 1 :]]
    return Repair("\n".join(changed), Mend(what="added `pass`", why="a definition had no body"))


def _shift(lines: list[str], at: int) -> Repair | None:
    """Move a stretch back to a margin that the lines before it know."""
    depth = indent_of(lines[at])
    known = {indent_of(line) for line in lines[:at] if line.strip()} | {0}
    before = next((line for line in reversed(lines[:at]) if line.strip() and not line.lstrip().startswith("#")), "")
    target = indent_of(before) if depth > indent_of(before) else min(known, key=lambda level: (abs(level - depth), level))
    if target == depth:
        return None
    changed = [*lines]
    for i in range(at, len(lines)):
        if not lines[i].strip():
            continue
        if indent_of(lines[i]) < min(depth, target + 1):
            break
        changed[i] = " " * max(0, indent_of(lines[i]) + target - depth) + lines[i].lstrip()
    return Repair("\n".join(changed), Mend(what="set indentation straight", why="lines stood off their margin"))


def echoes(text: str, tree: ast.Module) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Comment out values pasted among the code: `tensor([1.])`, `nan` where no such name exists."""
    if not any(isinstance(node, ast.Expr) for node in tree.body) or evidence(tree) != "strong":
        return text, ()
    known = bound_names(tree)
    lines = text.split("\n")
    shown: list[tuple[int, str]] = []
    for i, node in enumerate(tree.body):
        if i == 0 or not isinstance(node, ast.Expr) or not _echo(node.value, known):
            continue
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        shown.append((first, "\n".join(lines[first : last + 1])))
        before = tree.body[i - 1]
        if isinstance(before, ast.Expr) and before.lineno == before.end_lineno and not _is_print(before.value):
            lines[before.lineno - 1] = f"print(repr({lines[before.lineno - 1].strip()}))"
        for k in range(first, last + 1):
            lines[k] = "# " + lines[k]
    return "\n".join(lines), tuple(shown)


def _is_print(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _echo(node: ast.expr, known: frozenset[str]) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id not in known and is_repr(node)
    if isinstance(node, ast.Name):
        return node.id in {"nan", "inf"} and node.id not in known
    return False
