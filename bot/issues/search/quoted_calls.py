"""The call at which a report's traceback starts, in place of the calls that the committed file
makes: who writes `demo2()` where the file has `demo()` has switched a comment.
"""

import ast
from collections.abc import Iterator, Sequence

from bot.kernel.attempt import Script
from bot.kernel.bug import BugReport, Frame, ScriptFix
from bot.kernel.source.syntax import module_of, source_lines

WHY = "the report's traceback starts with that call"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def call_as_quoted(script: Script, bug: BugReport) -> Script:
    """A program of a tree that makes the call which the report quotes of its outermost frame, in
    place of its own calls of its functions; the very script where it makes that call, or where the
    quoted line is no call of a function of the file with values that the file has.
    """
    if not script.is_repositorys or script.command[:1] == ("-m",):
        return script
    module = module_of(script.source)
    functions = {node.name for node in module.body if isinstance(node, _FUNCTIONS)}
    for frame in _outermost(bug, script.entry):
        call = _call_of(frame.code, functions)
        if call is None:
            continue
        block = _main_block(module)
        if _is_made(call, module) or not _names(call) <= _bound(module, block) | functions:
            return script
        return _with_call(script, ast.unparse(call), _own_calls(block, functions))
    return script


def _outermost(bug: BugReport, entry: str) -> Iterator[Frame]:
    for row in bug.tracebacks:
        own = [frame for frame in row.frames if not frame.package and frame.path][:1]
        for frame in own:
            is_entry = f"/{frame.path.replace(chr(92), '/')}".endswith(f"/{entry}")
            if is_entry and frame.function in {"", "<module>"}:
                yield frame


def _call_of(code: str, functions: set[str]) -> ast.Call | None:
    """A quoted line as the call of one of the functions; None for any other."""
    body = module_of(code.strip()).body
    node = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    return node if node.func.id in functions else None


def _main_block(module: ast.Module) -> list[ast.stmt]:
    """What a file does when it is started: what its guard holds, else all of it."""
    for node in module.body:
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            return node.body
    return module.body


def _is_made(call: ast.Call, module: ast.Module) -> bool:
    text = ast.dump(call)
    return any(isinstance(node, ast.Call) and ast.dump(node) == text for node in _outside(module))


def _outside(module: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run when a file is started: none inside a function or a class."""
    waiting = list[ast.AST](module.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _names(call: ast.Call) -> set[str]:
    return {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}


def _bound(module: ast.Module, block: Sequence[ast.stmt]) -> set[str]:
    """The names that are bound before the calls of a file's main block."""
    aliases = {
        (row.asname or row.name).partition(".")[0]
        for node in _outside(module)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for row in node.names
    }
    stored = {
        node.id
        for statement in (*module.body, *block)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return aliases | stored


def _own_calls(block: Sequence[ast.stmt], functions: set[str]) -> list[ast.stmt]:
    """The statements of a block that only call a function of the file."""
    return [
        node
        for node in block
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id in functions
    ]


def _with_call(script: Script, call: str, calls: Sequence[ast.stmt]) -> Script:
    """The program with a call in place of others, each on its lines; at its end for want of any."""
    lines = source_lines(script.source)
    for at, node in enumerate(reversed(calls)):
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        text = " " * node.col_offset + (call if at == len(calls) - 1 else "pass")
        lines[first:last] = [text, *[""] * (last - first - 1)]
    if not calls:
        lines += ["", call]
    instead = ", ".join(f"`{ast.unparse(node)}`" for node in calls[:3])
    what = f"called `{call}`" + (f" in place of {instead}" if instead else "")
    return script.model_copy(
        update={
            "files": {**script.files, script.entry: "\n".join(lines) + "\n"},
            "edited": (*script.edited, script.entry),
            "fixes": (*script.fixes, ScriptFix(what=what[:200], why=WHY)),
        }
    )
