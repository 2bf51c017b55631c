"""A tabular of LaTeX → cells: spans filled, rules out, heads told from rows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bot.papers.reading.draft import MOST_CELLS, MOST_ROWS
from bot.papers.reading.latex_source import argument, optional
from bot.papers.reading.latex_text import plain

_RULE = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|specialrule|Xhline|thickhline|endhead|endfirsthead)\b|"
    r"\\(?:cmidrule|cline)(?:\([^)\n]{0,20}\))?\s*\{[^{}\n]{0,20}\}"
)
_DIVIDES = re.compile(r"\\(?:hline|midrule|endhead|endfirsthead|Xhline|thickhline)\b")
_CUT = re.compile(
    r"\\(?:begin|end)\{[A-Za-z*]{1,40}\}|\\\\|\\tabularnewline\b|\\[&{}%]|[&{}]|\\[A-Za-z]+"
)
_SPAN = re.compile(r"\\multicolumn\s*\{\s*(\d{1,3})\s*\}")
_ROWS = re.compile(r"\\multirow\s*(?:\[[^\]\n]{0,10}\])?\s*\{\s*(\d{1,3})\s*\}")
_BOLD = re.compile(r"\\(?:textbf|mathbf|bf|bfseries|boldsymbol|bm|best|B)\b")
_NUMBER = re.compile(r"\d")


@dataclass
class Cells:
    """The rows of column heads, the others, and which cells of these are bold."""

    head: list[list[str]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    bold: list[tuple[int, int]] = field(default_factory=list)


def read_tabular(inside: str, numbers: Mapping[str, str]) -> Cells:
    """The cells of a tabular by what stands between its begin and end, arguments included."""
    raw, divided = list[list[str]](), 0
    for row in _split(_without_specification(inside)):
        text = "&".join(row)
        if _DIVIDES.search(text) and not divided and any(map(_has_words, raw)):
            divided = len(raw)
        cells = [_RULE.sub("", cell).strip() for cell in row]
        if any(cells) and not any("\\caption" in cell for cell in cells):
            raw.append(cells[:MOST_CELLS])
        if len(raw) > MOST_ROWS + 4:
            break
    rows = _filled(raw)
    texts = [[plain(cell, numbers).strip() for cell in row] for row in rows]
    heads = min(divided, 4) if 0 < divided < len(texts) else head_rows(texts)
    bold = [
        (at - heads, column)
        for at, row in enumerate(rows)
        for column, cell in enumerate(row)
        if at >= heads and _BOLD.search(cell)
    ]
    return Cells(texts[:heads], texts[heads:], bold)


def head_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many rows are heads where no rule says it: those before the first with a number outside
    its first cell, one at least where there are several rows.
    """
    for at, row in enumerate(rows[:4]):
        if any(_NUMBER.search(cell) for cell in row[1:]):
            return max(at, 0)
    return 1 if len(rows) > 1 else 0


def _has_words(row: Sequence[str]) -> bool:
    return any(cell.strip() for cell in row)


def _without_specification(text: str) -> str:
    """What follows the arguments of the environment: position, width where it has one, columns."""
    _, at = optional(text, 0)
    first, at = argument(text, at)
    if re.search(r"width|hsize|\d\s*(?:pt|cm|mm|in|em)\b", first) and "p{" not in first:
        _, at = argument(text, at)
    return text[at:]


def _split(text: str) -> Iterator[list[str]]:
    """Rows of cells at the outermost level: neither in braces nor in an inner environment."""
    depth, last, row = 0, 0, list[str]()
    for match in _CUT.finditer(text):
        mark = match[0]
        if mark == "{" or mark.startswith("\\begin"):
            depth += 1
        elif mark == "}" or mark.startswith("\\end{"):
            depth = max(0, depth - 1)
        elif mark == "&" and not depth:
            row.append(text[last : match.start()])
            last = match.end()
        elif mark in {"\\\\", "\\tabularnewline"} and not depth:
            yield [*row, text[last : match.start()]]
            _, last = optional(text, match.end())
            row = []
    yield [*row, text[last:]]


def _filled(rows: list[list[str]]) -> list[list[str]]:
    """Rows in which a cell that spans columns or rows stands in each of them."""
    filled, below = list[list[str]](), dict[int, tuple[int, str]]()
    for row in rows:
        cells = list[str]()
        for cell in row:
            span = _SPAN.search(cell)
            cells += [cell] * (min(int(span[1]), MOST_CELLS) if span else 1)
        cells = cells[:MOST_CELLS]
        for column, (left, text) in list(below.items()):
            if column < len(cells) and not cells[column].strip():
                cells[column] = text
            below.pop(column)
            if left > 1:
                below[column] = left - 1, text
        for column, cell in enumerate(cells):
            if (height := _ROWS.search(cell)) and int(height[1]) > 1 and column not in below:
                below[column] = min(int(height[1]), MOST_ROWS) - 1, cell
        filled.append(cells)
    return filled
