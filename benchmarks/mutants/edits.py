"""Edits of a program's text at places that its syntax tree names: nothing else moves."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

Node = TypeVar("Node", bound=ast.expr)
Located = ast.expr | ast.keyword | ast.alias | ast.stmt


class Edit(NamedTuple):
    """Replace the characters from `start` to `end` with `text`."""

    start: int
    end: int
    text: str


class Number(NamedTuple):
    """A number that a program names, and where."""

    node: ast.Constant
    value: float


def apply(source: str, edits: Iterable[Edit]) -> str:
    """The source after all edits, whose places must not overlap."""
    for edit in sorted(edits, reverse=True):
        source = source[: edit.start] + edit.text + source[edit.end :]
    return source


def offset(source: str, line: int, column: int) -> int:
    """The place of a line (from 1) and a column; sources of families are ASCII."""
    at = 0
    for _ in range(line - 1):
        at = source.index("\n", at) + 1
    return at + column


def span(source: str, node: Located) -> tuple[int, int]:
    """Where a node begins and ends."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return offset(source, node.lineno, node.col_offset), offset(source, end_line, end_column)


def replace(source: str, node: Located, text: str) -> Edit:
    """An edit that writes `text` for a node."""
    return Edit(*span(source, node), text)


def text_of(source: str, node: ast.expr) -> str:
    """How a node is written."""
    start, end = span(source, node)
    return source[start:end]


def on_line(tree: ast.Module, line: int, kind: type[Node]) -> Iterator[Node]:
    """The expressions of a kind that begin on a line, outer before inner."""
    for node in ast.walk(tree):
        if isinstance(node, kind) and node.lineno == line:
            yield node


def calls(tree: ast.Module, line: int, known: Callable[[str], bool]) -> Iterator[ast.Call]:
    """The calls on a line of functions whose last name is `known`."""
    for call in on_line(tree, line, ast.Call):
        if known(name_of(call)):
            yield call


def name_of(call: ast.Call) -> str:
    """The last name of what is called: "Adam" of `torch.optim.Adam(...)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def rename(source: str, tree: ast.Module, call: ast.Call, new: str) -> list[Edit]:
    """Call something else of the same module; the name is imported when it stands alone."""
    end = span(source, call.func)[1]
    edits = [Edit(end - len(name_of(call)), end, new)]
    if isinstance(call.func, ast.Name):
        edits += [
            replace(source, alias, new)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name == call.func.id
        ]
    return edits


def keyword(call: ast.Call, *names: str) -> ast.keyword | None:
    """The keyword argument of a call that has one of these names."""
    return next((given for given in call.keywords if given.arg in names), None)


def with_keyword(source: str, call: ast.Call, name: str, value: str) -> Edit:
    """Give a call this keyword argument, instead of the one it has or after the last."""
    given = keyword(call, name)
    if given:
        return replace(source, given, f"{name}={value}")
    end = span(source, call)[1] - 1
    parts: list[Located] = [*call.args, *call.keywords]
    if not parts:
        return Edit(end, end, f"{name}={value}")
    last = max(span(source, part)[1] for part in parts)
    return Edit(last, last, f", {name}={value}")


def without_keyword(source: str, given: ast.keyword) -> Edit:
    """Take a keyword argument away, with the comma before it, or after it when it is the first."""
    start, end = span(source, given)
    before = re.search(r",\s*$", source[:start])
    if before:
        return Edit(before.start(), end, "")
    after = re.match(r"\s*,\s*", source[end:])
    return Edit(start, end + (after.end() if after else 0), "")


def after_line(source: str, line: int, text: str) -> Edit:
    """New lines after a line, indented like it."""
    written = source.splitlines(keepends=True)[line - 1]
    indent = written[: len(written) - len(written.lstrip())]
    at = offset(source, line, 0) + len(written)
    return Edit(at, at, "".join(f"{indent}{row}\n" for row in text.splitlines()))


def number(tree: ast.Module, line: int, *names: str) -> Number | None:
    """The number on a line that a keyword argument of these names has, otherwise the last one."""
    named = {
        given.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for given in call.keywords
        if given.arg in names
    }
    found = [
        Number(node, node.value)
        for node in on_line(tree, line, ast.Constant)
        if isinstance(node.value, int | float) and not isinstance(node.value, bool)
    ]
    found.sort(key=lambda each: (each.node in named, each.node.col_offset))
    return found[-1] if found else None
