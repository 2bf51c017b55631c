"""The operation that a report complains of: what a run must reach before its good end, or another
failure, says anything about the report.
"""

import ast
import builtins
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from bot.models.attempt import Script
from bot.models.bug import BugReport, Frame, Traceback
from bot.models.signature import CrashSignature, Member, ObservationSignature
from bot.rules.intake.python import module_of, name_of

Functions = tuple[tuple[str, str], ...]
_NEAR = 3  # a version without the bug may no longer call the very function that raised
_CODE = 80


@dataclass(frozen=True, slots=True)
class Operation:
    """Functions (file below site-packages, name) of which one must be entered; or, without any,
    lines of the program of which `needed` must run.
    """

    says: str
    functions: Functions = ()
    lines: frozenset[int] = frozenset()
    needed: int = 1

    def reached(self, entered: Functions, lines: frozenset[int]) -> bool:
        """Whether a run reached it."""
        if self.functions:
            return bool(set(self.functions) & set(entered))
        return len(self.lines & lines) >= self.needed


def operation(
    bug: BugReport, members: tuple[Member, ...], script: Script, *, failed: bool
) -> Operation:
    """The operation, by the best that the report offers: frames of a library, lines of the
    program in its traceback, the API it names, the program's calls. `failed`: runs ended in
    another failure, so that only the last call shows that they came far enough.
    """
    crashes = [member for member in members if isinstance(member, CrashSignature)]
    names = {member.exception.rsplit(".", 1)[-1] for member in crashes}
    rows = [row for row in bug.tracebacks if row.exception.rsplit(".", 1)[-1] in names]
    return (
        _functions(rows)
        or _quoted_lines(rows, script.source)
        or _named(bug, members, script.source)
        or _calls(script.source, failed=failed)
    )


def _functions(rows: list[Traceback]) -> Operation | None:
    found: list[Frame] = []
    for row in rows:
        libraries = [
            frame
            for frame in row.frames
            if frame.package not in {"", "<stdlib>"} and frame.module_path and frame.function
        ]
        found += libraries[-_NEAR:]
    if not found:
        return None
    pairs = dict.fromkeys((frame.module_path, _last(frame.function)) for frame in found)
    path, name = list(pairs)[-1]
    return Operation(f"`{name}` in {path}", functions=tuple(pairs))


def _quoted_lines(rows: list[Traceback], source: str) -> Operation | None:
    code = [" ".join(line.split()) for line in source.splitlines()]
    for row in rows:
        own = (" ".join(frame.code.split()) for frame in reversed(row.frames) if not frame.package)
        for quoted in filter(None, own):
            lines = frozenset(at for at, line in enumerate(code, 1) if line == quoted)
            if lines:
                return Operation(f"the line `{quoted[:_CODE]}`", lines=lines)
    return None


def _named(bug: BugReport, members: tuple[Member, ...], source: str) -> Operation | None:
    api = [*bug.api]
    for member in members:
        api += member.api if isinstance(member, ObservationSignature) else ()
    wanted = {_last(name.rstrip("()")) for name in api}
    calls = [(name, line) for name, line in _library_calls(source) if name in wanted]
    if not calls:
        return None
    return Operation(f"the call of `{calls[-1][0]}`", lines=frozenset(line for _, line in calls))


def _calls(source: str, *, failed: bool) -> Operation:
    """Half of the program's calls, or its last one; where it calls no library, of its statements.
    A program that only defines things reaches nothing.
    """
    lines = {line for _, line in _library_calls(source)} or set(_statements(source))
    what = "what the program calls"
    if failed and lines:
        lines, what = {max(lines)}, "the program's last call"
    return Operation(what, lines=frozenset(lines), needed=max(1, (len(lines) + 1) // 2))


def _statements(source: str) -> Iterator[int]:
    """The lines of the statements outside definitions, imports aside."""
    inert = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return (node.lineno for node in module_of(source).body if not isinstance(node, inert))


def _library_calls(source: str) -> Iterator[tuple[str, int]]:
    """The name and line of each call that may be a library's: neither of the program's own, a
    builtin's nor the standard library's.
    """
    tree = module_of(source)
    known = {*dir(builtins), *(name for node in ast.walk(tree) for name in _defined(node))}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in calls:
        name = name_of(call.func)
        if name and ast.unparse(call.func).partition(".")[0] not in known:
            yield name, call.lineno


def _defined(node: ast.AST) -> Iterator[str]:
    """The names that a statement defines itself or takes from the standard library."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names):
            for alias in names:
                top = alias.name.partition(".")[0]
                if top in sys.stdlib_module_names:
                    yield alias.asname or top
        case ast.ImportFrom(module=str(module), names=names):
            if module.partition(".")[0] in sys.stdlib_module_names:
                yield from (alias.asname or alias.name for alias in names)


def _last(dotted: str) -> str:
    return dotted.rsplit(".", 1)[-1]
