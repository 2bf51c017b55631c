"""Statements to take away or to unwrap, as a tree: what cannot go as a whole may go in parts."""

from __future__ import annotations

import ast

from bot.rules.mends.edits import Text
from bot.rules.reduce.edits import Edit, Files, Node, Piece, programs

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def nodes(files: Files) -> tuple[tuple[Node, ...], ...]:
    """One list of siblings a file: its statements in order, with those within them as children."""
    return tuple(block(path, Text(text), tree.body, "") for path, text, tree in programs(files))


def block(path: str, text: Text, body: list[ast.stmt], label: str) -> tuple[Node, ...]:
    """The statements of one block; the module's own has the label ""."""
    if len(body) == 1 and isinstance(body[0], ast.Pass):
        return ()
    return tuple(node_of(path, text, statement, label, len(body)) for statement in body)


def whole_lines(text: Text, statement: ast.stmt) -> tuple[int, int]:
    """The span of the lines of a statement with its decorators, the last line break included."""
    first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", []))])
    return text.offset(first, 0), text.offset((statement.end_lineno or statement.lineno) + 1, 0)


def node_of(path: str, text: Text, statement: ast.stmt, label: str, count: int) -> Node:
    """The edit that drops a statement, and those within it. `label` names its block, which has `count` statements."""
    start, end = whole_lines(text, statement)
    filler = " " * statement.col_offset + "pass\n" if label else ""
    piece = Piece(path, start, end, "", f"{path}:{label}" if label else "", count, filler)
    name = f" {statement.name}" if isinstance(statement, _DEFINES) else ""
    gone = Edit(f"drop {type(statement).__name__.lower()}{name}", (piece,))
    inner = [(name, body) for name, body in _bodies(statement)]
    children = [block(path, text, body, f"{statement.lineno}.{name}") for name, body in inner]
    inside = tuple(Node(edit) for edit in unwraps(path, text, statement))
    return Node(gone, tuple(row for row in (inside, *children) if row))


def _bodies(statement: ast.stmt) -> list[tuple[str, list[ast.stmt]]]:
    found = [(name, getattr(statement, name, [])) for name in ("body", "orelse", "finalbody")]
    found += [(f"handler{place}", each.body) for place, each in enumerate(getattr(statement, "handlers", []))]
    found += [(f"case{place}", each.body) for place, each in enumerate(getattr(statement, "cases", []))]
    return [(name, body) for name, body in found if isinstance(body, list) and body and isinstance(body[0], ast.stmt)]


def unwraps(path: str, text: Text, statement: ast.stmt) -> list[Edit]:
    """Putting one of the blocks of a compound statement in its place."""
    if isinstance(statement, ast.If | ast.With | ast.AsyncWith | ast.Try | ast.While):
        rows = [(name, body) for name, body in _bodies(statement) if name != "finalbody" and not name.startswith("handler")]
        edits = [opened(path, text, statement, body, "") for _, body in rows]
        if isinstance(statement, ast.If | ast.Try) and len(_bodies(statement)) > 1:
            edits.append(_without_rest(path, text, statement))
        return [edit for edit in edits if edit is not None]
    if isinstance(statement, ast.For | ast.AsyncFor):
        first = f"{text.of(statement.target)} = next(iter({text.of(statement.iter)}))"
        bound = statement.iter
        if isinstance(bound, ast.Call) and getattr(bound.func, "id", "") == "range":
            first = f"{text.of(statement.target)} = 0"
        edits = [opened(path, text, statement, statement.body, each) for each in ("", first)]
        return [edit for edit in edits if edit is not None]
    return []


def _without_rest(path: str, text: Text, statement: ast.If | ast.Try) -> Edit | None:
    """An `if` without its `else`."""
    last = statement.body[-1]
    if isinstance(statement, ast.Try) or not statement.orelse:
        return None
    start = text.offset((last.end_lineno or last.lineno) + 1, 0)
    return Edit("drop else", (Piece(path, start, whole_lines(text, statement)[1]),))


def opened(path: str, text: Text, statement: ast.stmt, body: list[ast.stmt], first: str) -> Edit | None:
    """The block alone, moved left to where its statement stood, after a line that stands for the statement's head."""
    pieces = dedented(path, text, body, statement.col_offset)
    if pieces is None:
        return None
    start, end = whole_lines(text, statement)
    head = " " * statement.col_offset + first + "\n" if first else ""
    inner_start, inner_end = whole_lines(text, body[0])[0], whole_lines(text, body[-1])[1]
    if inner_start <= start:  # on one line with its head
        return None
    around = [Piece(path, start, inner_start, head), *pieces]
    if inner_end < end:
        around.append(Piece(path, inner_end, end))
    return Edit(f"unwrap {type(statement).__name__.lower()}", tuple(around))


def dedented(path: str, text: Text, body: list[ast.stmt], column: int) -> list[Piece] | None:
    """The pieces that move a block left to a column; lines within strings stay. None when it stands no deeper."""
    by = body[0].col_offset - column
    if by <= 0:
        return None
    held = inside_strings(body)
    first, last = body[0], body[-1]
    begin = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", []))])
    found = list[Piece]()
    for line in range(begin, (last.end_lineno or last.lineno) + 1):
        start = text.offset(line, 0)
        if line not in held and text.source[start : start + by].strip(" ") == "" and text.source[start : start + by]:
            found.append(Piece(path, start, start + by))
    return found


def inside_strings(body: list[ast.stmt]) -> set[int]:
    """The lines that begin within a string of several lines."""
    return {
        line
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
