"""Which lines of a comment are its author's own words: no code, no quotation, no fold, nothing
that GitHub hides.
"""

import re
from collections.abc import Iterator

from markdown_it.token import Token

from bot.rules.markdown import block_tokens

_LINE_END = re.compile(r"\r\n?|\n")
_FOLD = re.compile(r"<(/?)(?:details|blockquote|pre)\b", re.IGNORECASE)
_MARK = re.compile(r"\\.|`+|<!--", re.DOTALL)


CODE = "\ufffc"
"""Marks each line of inline code, which is never the first word of a command."""

MOST_LINES = 4_000
"""Further lines are ignored: each line of hostile nesting costs up to 40 microseconds."""


def own_lines(body: str) -> Iterator[str]:
    """The lines of the top-level paragraphs, in order. Inline code is marked with CODE, HTML
    comments are removed.

    Linear in the length of `body`, whatever it contains.
    """
    folds = 0
    tokens = block_tokens("\n".join(_LINE_END.split(body, MOST_LINES)[:MOST_LINES]))
    for at, token in enumerate(tokens):
        if token.type == "html_block":
            folds = _folds(token.content, folds)
        elif token.type == "inline" and token.content and not folds and _stands_alone(tokens, at):
            shown = _shown(token.content)
            yield from shown.split("\n")
            folds = _folds(shown, folds)


def _folds(html: str, folds: int) -> int:
    """How many folds or quotations written as HTML are open after this piece."""
    for match in _FOLD.finditer(html):
        folds = max(0, folds - 1) if match.group(1) else folds + 1
    return folds


def _stands_alone(tokens: list[Token], at: int) -> bool:
    """A paragraph outside lists and quotations. A line over "---" is a heading to Markdown and a
    signature to its author.
    """
    opening = tokens[at - 1]
    return opening.level == 0 and (opening.type == "paragraph_open" or opening.markup in {"-", "="})


def _shown(text: str) -> str:
    """A paragraph with its inline code marked and without its HTML comments."""
    closers = _positions(text)
    parts, end = list[str](), 0
    while (match := _MARK.search(text, end)) is not None:
        mark, start = match.group(), match.start()
        close = _close(mark, match.end(), closers)
        parts.append(text[end:start])
        if mark[0] == "\\" or close < 0:
            parts.append(mark)
            end = match.end()
        else:
            if mark[0] == "`":
                code = text[match.end() : close - len(mark)]
                parts.append(CODE + code.replace("\n", "\n" + CODE))
            end = close
    return "".join([*parts, text[end:]])


def _positions(text: str) -> dict[str, list[int]]:
    """The positions of each run of backticks and each end of an HTML comment, last first."""
    places: dict[str, list[int]] = {}
    for match in re.finditer(r"`+|-->", text):
        places.setdefault(match.group(), []).append(match.start())
    for positions in places.values():
        positions.reverse()
    return places


def _close(mark: str, after: int, closers: dict[str, list[int]]) -> int:
    """Behind the end of the code or comment that a mark opens, -1 when nothing closes it."""
    closer = "-->" if mark == "<!--" else mark
    waiting = closers.get(closer, [])
    while waiting and waiting[-1] < after:
        waiting.pop()
    return waiting[-1] + len(closer) if waiting else -1
