"""Replacing pieces of source text in place, so that the reporter's layout and comments stay."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

Edit = tuple[int, int, str]


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines(source: str) -> list[str]:
    """The lines of a program with their ends, as Python counts them: a form feed or a line separator ends none."""
    return _LINE.findall(source)


class Text:
    """Source text with the offsets of its lines; columns of `ast` are UTF-8 bytes and are turned into characters."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._lines = lines(source)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """The character offset of an ast position."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._starts[min(line - 1, len(self._lines))] + len(text.encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node stands."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def of(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.source[start:end]


def apply(source: str, edits: Iterable[Edit]) -> str:
    """Source with the edits made; overlapping ones beyond the first are left out."""
    result, limit = source, len(source) + 1
    for start, end, new in sorted(set(edits), reverse=True):
        if end <= limit:
            result, limit = result[:start] + new + result[end:], start
    return result
