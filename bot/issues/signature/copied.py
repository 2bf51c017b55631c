"""Whether a script still contains the code of a repository that raises, so that what it raises is
the repository's failure and not a staged one.
"""

import ast
import copy
from collections.abc import Iterator
from functools import lru_cache

from bot.kernel.attempt import Failure, FaultCode, Script
from bot.kernel.bug import Frame
from bot.kernel.source.syntax import Function, nodes, tree_of

# A script made from a program of a repository may raise what the repository raises only with the
# repository's own text: the function that raises (or the statement of a module, outside of one) is
# compared by its tree with that of the commit. Statements may be missing, none may be new or
# different; and none may be missing that decides whether the failing line is reached: a return, a
# raise, a break before it, or an assignment to a name that what is left reads. Statements that the
# failing run did not execute had no part in it.

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom)
_UNREAD = ("body", "orelse", "finalbody", "handlers", "cases", "returns", "type_comment")
_STANDARD = "<stdlib>"
_Lines = dict[int, int]


def fault_code(
    path: str, source: str, line: int, ran: frozenset[int] = frozenset()
) -> FaultCode | None:
    """The function, or statement of a module, around a line of a file of the repository, of which
    the failing run executed the lines `ran`.
    """
    tree = tree_of(source)
    holder = _around(tree, line) if tree is not None else None
    if holder is None:
        return None
    text = "\n".join(source.splitlines()[_first(holder) - 1 : holder.end_lineno])
    own = ran & frozenset(range(_first(holder), (holder.end_lineno or line) + 1))
    return FaultCode(path=path, text=text, start=_first(holder), line=line, ran=own)


def is_contained(script: Script) -> bool:
    """Whether the code that raises is in a script."""
    code = script.fault_code
    return code is not None and any(
        code.line in lines.values()
        for text in script.files.values()
        for lines in _copies(text, code)
    )


def with_places(failure: Failure, script: Script) -> Failure:
    """The failure with the frame that raised named as in the repository, where it lies in a copy of
    the repository's code.
    """
    code, place = script.fault_code, _raising(failure)
    if code is None or place is None:
        return failure
    text = next((t for path, t in script.files.items() if _ends(place.path, path)), "")
    line = next((rows[place.line] for rows in _copies(text, code) if place.line in rows), None)
    if line != code.line:
        return failure
    update = {"module_path": code.path, "package": code.path.partition("/")[0], "line": line}
    frames = [f.model_copy(update=update) if f is place else f for f in failure.frames]
    return failure.model_copy(update={"frames": tuple(frames)})


def is_repositorys(failure: Failure | None, script: Script) -> bool:
    """Whether a failure with its places was raised by a copy of the repository's code."""
    code, frames = script.fault_code, failure.frames if failure is not None else ()
    return code is not None and any(frame.module_path == code.path for frame in frames)


def _raising(failure: Failure) -> Frame | None:
    """The frame that raised, but for those of the standard library, if it is the program's own."""
    last = next((f for f in reversed(failure.frames) if f.package != _STANDARD), None)
    return last if last is not None and not last.package and last.line is not None else None


def _ends(path: str, name: str) -> bool:
    return f"/{path}".endswith(f"/{name}")


def _around(tree: ast.AST, line: int) -> ast.stmt | None:
    """The innermost function around a line, else the module's statement."""
    functions = [
        node for node in ast.walk(tree) if isinstance(node, Function) and _holds(node, line)
    ]
    body = [node for node in getattr(tree, "body", ()) if _holds(node, line)]
    return max(functions, key=lambda node: node.lineno, default=None) or next(iter(body), None)


def _holds(node: ast.stmt, line: int) -> bool:
    return _first(node) <= line <= (node.end_lineno or node.lineno)


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


@lru_cache(maxsize=256)
def _copies(text: str, code: FaultCode) -> tuple[_Lines, ...]:
    """For each copy in a file: its lines, with those of the repository's file that they are."""
    tree, original = tree_of(text), _original(code)
    if tree is None or original is None:
        return ()
    candidates = (n for n in nodes(tree, ast.stmt) if type(n) is type(original))
    return tuple(lines for node in candidates if (lines := _derive(node, original, code)))


@lru_cache(maxsize=16)
def _original(code: FaultCode) -> ast.stmt | None:
    margin = len(code.text) - len(code.text.lstrip(" "))
    head = "if True:\n" if margin else ""
    tree = tree_of(head + code.text)
    if tree is None or not tree.body:
        return None
    holder = tree.body[0].body[0] if isinstance(tree.body[0], ast.If) and margin else tree.body[0]
    return ast.increment_lineno(copy.deepcopy(holder), code.start - 1 - bool(margin))


def _derive(node: ast.stmt, original: ast.stmt, code: FaultCode) -> _Lines | None:
    """The lines of a statement that comes from the original by leaving statements out, with
    nothing missing on which the failing line depends.
    """
    lines, missing = _Lines(), list[ast.AST]()
    if not _matches(node, original, lines, missing):
        return None
    before = [one for one in missing if getattr(one, "lineno", 0) < code.line and _ran(one, code)]
    parts = [part for one in before for part in ast.walk(one)]
    if any(isinstance(part, _JUMPS) for part in parts):
        return None
    return lines if set(_names(parts, ast.Store)).isdisjoint(_names_read(node)) else None


def _ran(node: ast.AST, code: FaultCode) -> bool:
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return not code.ran or not code.ran.isdisjoint(range(first, last + 1))


def _names_read(node: ast.AST) -> set[str]:
    return set(_names(list(ast.walk(node)), ast.Load))


def _names(parts: list[ast.AST], context: type[ast.expr_context]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, context):
            yield part.id if isinstance(part, ast.Name) else part.attr


def _matches(node: ast.AST, original: ast.AST, lines: _Lines, missing: list[ast.AST]) -> bool:
    """Whether a statement, handler or case has the head of the original, and blocks that come from
    its blocks.
    """
    if _head(node) != _head(original):
        return False
    first, last = getattr(node, "lineno", 0), getattr(original, "lineno", 0)
    inner = [child for name in _BLOCKS for child in getattr(node, name, ())]
    end = min([c.lineno for c in inner if hasattr(c, "lineno")], default=None)
    length = (end or (getattr(node, "end_lineno", first) or first) + 1) - first
    lines.update({first + at: last + at for at in range(max(length, 1))})
    return all(
        _blocks_match(getattr(node, name, []), getattr(original, name, []), lines, missing)
        for name in _BLOCKS
    )


def _blocks_match(
    body: list[ast.AST], original: list[ast.AST], lines: _Lines, missing: list[ast.AST]
) -> bool:
    rest = iter(original)
    for node in body:
        if isinstance(node, ast.Pass):
            continue
        for candidate in rest:
            rows, left_out = _Lines(), list[ast.AST]()
            if _matches(node, candidate, rows, left_out):
                lines.update(rows)
                missing += left_out
                break
            missing.append(candidate)
        else:
            return False
    missing += rest
    return True


def _head(node: ast.AST) -> str:
    """A statement without its blocks and annotations, as text."""
    plain = copy.copy(node)
    for name in _UNREAD:
        if hasattr(plain, name):
            setattr(plain, name, None if name in {"returns", "type_comment"} else [])
    if isinstance(plain, ast.FunctionDef | ast.AsyncFunctionDef):
        plain.args = copy.deepcopy(plain.args)
        for argument in nodes(plain.args, ast.arg):
            argument.annotation = None
    return ast.dump(plain)
