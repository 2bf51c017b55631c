"""Replacing pieces of source text in place, so that the reporter's layout and comments stay."""

import ast
import re
from collections.abc import Iterable, Sequence

from bot.models.bug import ScriptFix

Edit = tuple[int, int, str]
Positioned = ast.expr | ast.stmt | ast.keyword | ast.arg


_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines(source: str) -> list[str]:
    """The lines of a program with their ends, split only where Python ends a line."""
    return _LINE.findall(source)


class Text:
    """Source text by character offset; `ast` counts its columns in UTF-8 bytes."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._lines = lines(source)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """The character offset of an ast position."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._starts[min(line - 1, len(self._lines))] + len(
            text.encode()[:column].decode(errors="ignore")
        )

    def span(self, node: Positioned) -> tuple[int, int]:
        """The first and past-the-end offset of a node."""
        end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return self.offset(node.lineno, node.col_offset), self.offset(*end)

    def of(self, node: Positioned) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.source[start:end]


def apply(source: str, edits: Iterable[Edit]) -> str:
    """Source with the edits made; of overlapping edits only the last in the text is made."""
    result, limit = source, len(source) + 1
    for start, end, new in sorted(set(edits), reverse=True):
        if end <= limit:
            result, limit = result[:start] + new + result[end:], start
    return result


def apply_noted(
    source: str, changes: Sequence[tuple[Edit, str]], why: str
) -> tuple[str, tuple[ScriptFix, ...]]:
    """Source with the changes made, and one note for each distinct description."""
    notes = tuple(
        ScriptFix(what=what, why=why) for what in dict.fromkeys(what for _, what in changes)
    )
    return apply(source, [edit for edit, _ in changes]), notes
