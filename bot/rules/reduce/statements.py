"""Statements to remove or to unwrap, as a tree: what cannot go whole may go in parts."""

import ast
from collections.abc import Callable, Iterator

from bot.rules.reduce.edits import (
    Files,
    ParsedFile,
    Reduction,
    ReductionNode,
    Replacement,
    blocks,
    first_line,
    parsed_files,
)

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNWRAPPED = (ast.If, ast.With, ast.AsyncWith, ast.Try, ast.While)


def trees(files: Files) -> tuple[tuple[ReductionNode, ...], ...]:
    """One list of siblings a file: its statements in order, with those within as children."""
    return tuple(_block(file, file.tree.body) for file in parsed_files(files))


def _block(file: ParsedFile, body: list[ast.stmt]) -> tuple[ReductionNode, ...]:
    if len(body) == 1 and isinstance(body[0], ast.Pass):
        return ()
    return tuple(removal(file, statement) for statement in body)


def removal(file: ParsedFile, statement: ast.stmt) -> ReductionNode:
    """The removal of a statement, and the reductions within it."""
    name = f" {statement.name}" if isinstance(statement, DEFINITIONS) else ""
    whole = Reduction(f"drop {type(statement).__name__.lower()}{name}", (file.remove(statement),))
    unwrapped = tuple(ReductionNode(reduction) for reduction in _unwraps(file, statement))
    inner = (unwrapped, *(_block(file, body) for body in blocks(statement)))
    return ReductionNode(whole, tuple(group for group in inner if group))


def outermost(
    file: ParsedFile, droppable: Callable[[ast.stmt], bool], body: list[ast.stmt] | None = None
) -> Iterator[ReductionNode]:
    """The removals of the outermost statements that are droppable."""
    for statement in file.tree.body if body is None else body:
        if droppable(statement):
            yield removal(file, statement)
            continue
        for inner in blocks(statement):
            yield from outermost(file, droppable, inner)


def _unwraps(file: ParsedFile, statement: ast.stmt) -> Iterator[Reduction]:
    """One of the blocks of a compound statement in its place."""
    if isinstance(statement, _UNWRAPPED):
        yield from unwrapped(file, statement, statement.body)
        yield from unwrapped(file, statement, getattr(statement, "orelse", []))
        if isinstance(statement, ast.If) and statement.orelse:
            last = statement.body[-1]
            start = file.offset((last.end_lineno or last.lineno) + 1, 0)
            yield Reduction("drop else", (file.cut(start, file.whole_lines(statement)[1]),))
    elif isinstance(statement, ast.For | ast.AsyncFor):
        counts = getattr(getattr(statement.iter, "func", None), "id", "") == "range"
        first = "0" if counts else f"next(iter({file.of(statement.iter)}))"
        yield from unwrapped(file, statement, statement.body)
        head = f"{file.of(statement.target)} = {first}"
        yield from unwrapped(file, statement, statement.body, head)


def unwrapped(
    file: ParsedFile, statement: ast.stmt, body: list[ast.stmt], head: str = ""
) -> Iterator[Reduction]:
    """The block in the place of its statement, after a line in the place of the statement's head;
    nothing for a block on the line of its head.
    """
    start, end = file.whole_lines(statement)
    inner = file.whole_lines(body[0])[0] if body else start
    if inner <= start:
        return
    around = [file.cut(start, inner, " " * statement.col_offset + head + "\n" if head else "")]
    if (last := file.whole_lines(body[-1])[1]) < end:
        around.append(file.cut(last, end))
    what = f"unwrap {type(statement).__name__.lower()}"
    yield Reduction(what, (*around, *dedented(file, body, statement.col_offset)))


def dedented(file: ParsedFile, body: list[ast.stmt], column: int) -> list[Replacement]:
    """What moves a block left to a column; lines within strings stay as they are."""
    by, found, strings = body[0].col_offset - column, list[Replacement](), inside_strings(body)
    for line in range(first_line(body[0]), (body[-1].end_lineno or body[-1].lineno) + 1):
        start = file.offset(line, 0)
        margin = file.source[start : start + by]
        if line not in strings and margin and not margin.strip(" "):
            found.append(file.cut(start, start + by))
    return found


def inside_strings(body: list[ast.stmt]) -> set[int]:
    """The lines that begin within a string of several lines."""
    return {
        line
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
