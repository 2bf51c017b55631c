"""What GitHub does not show of a body, taken out before anything is read: the machine reads what a person reads.

The blocks are those of CommonMark itself, not the more forgiving ones that intake makes of them later: what stands in code
is shown as it is, and everywhere else comments, instructions, declarations, scripts and link definitions are not.
"""

from __future__ import annotations

import re
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").disable(["reference"])
_PARSER.core.ruler.enableOnly(["normalize", "block"])
_OPENER = re.compile(r"<!--|<\?|<!\[CDATA\[|<!(?=[A-Za-z])|<script\b", re.I)
_CLOSERS = {"<!--": "-->", "<?": "?>", "<![cdata[": "]]>", "<!": ">", "<script": "</script>"}
_DEFINITION = re.compile(
    r" {0,3}\[(?:[^\[\]\\]|\\.){1,999}\]:[ \t]*\n?[ \t]*(?:<[^<>\n]*>|[^\s<]\S*)"
    r"(?:[ \t]*(?:\n[ \t]*|[ \t])(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|\([^()]{0,2000}\)))?[ \t]*(?:\n|$)"
)
_ATTRIBUTE = re.compile(
    r"(<[A-Za-z][^<>]{0,500}?)\s(?:title|alt|name|id|class|style|cite|summary|data-[\w-]{1,50}|aria-[\w-]{1,50})\s*=\s*"
    r"(?:\"[^\"<>]*\"|'[^'<>]*')",
    re.I,
)
_MOST_ATTRIBUTES = 8


def without(text: str) -> str:
    """The text with what is not shown left out. Lines keep their numbers."""
    if not re.search(r"<[!?A-Za-z]|\]:", text):
        return text
    tokens = _PARSER.parse(text)
    lines = text.split("\n")
    code, html = _lines(tokens, {"fence", "code_block"}), _lines(tokens, {"html_block"})
    _drop_definitions(tokens, lines)
    _Eraser(lines, code, html).run()
    return "\n".join(lines)


def _lines(tokens: list[Token], types: set[str]) -> set[int]:
    return {line for token in tokens if token.type in types and token.map for line in range(*token.map)}


def _drop_definitions(tokens: list[Token], lines: list[str]) -> None:
    """Definitions stand at the beginning of what would else be a paragraph."""
    for before, token in pairwise(tokens):
        if token.type != "inline" or before.type != "paragraph_open" or token.map is None:
            continue
        at = 0
        while match := _DEFINITION.match(token.content, at):
            first = token.map[0] + token.content.count("\n", 0, at)
            for line in range(first, first + match.group().rstrip("\n").count("\n") + 1):
                lines[line] = ""
            at = match.end()


class _Eraser:
    """Walks the lines once. Inside something that is not shown, what the lines are does not matter."""

    def __init__(self, lines: list[str], code: set[int], html: set[int]) -> None:
        self.lines, self.code, self.html = lines, code, html
        self.last = {closer: _last(lines, closer) for closer in _CLOSERS.values()}

    def run(self) -> None:
        at = 0
        while at < len(self.lines):
            if at in self.code or "<" not in self.lines[at]:
                at += 1
                continue
            at = self._line(at)

    def _line(self, at: int) -> int:
        """Clear one line, and those below that what it opens reaches; returns where to go on."""
        start = 0
        while match := _OPENER.search(self.lines[at], start):
            opener = match.group().lower()
            closer = _CLOSERS[opener]
            # "<!-->" is a whole comment.
            inside = match.start() + 2 if opener == "<!--" else match.end()
            end, found = self._closed(at, inside, closer, everywhere=opener == "<!--" or at in self.html)
            if end < 0 and at not in self.html:
                start = match.end()  # shown as it is written
                continue
            rest = self.lines[end][found + len(closer) :] if end >= 0 else ""
            end = end if end >= 0 else len(self.lines) - 1
            kept = self.lines[at][: match.start()]
            if end == at:
                self.lines[at], start = kept + rest, len(kept)
                continue
            self.lines[at] = kept
            self.lines[at + 1 : end] = [""] * (end - at - 1)
            self.lines[end] = rest
            self._quiet(at)
            self.code.discard(end)
            return end
        self._quiet(at)
        return at + 1

    def _closed(self, at: int, inside: int, closer: str, *, everywhere: bool) -> tuple[int, int]:
        """The line and column of a closer, -1 when there is none; in a paragraph it stands before the next blank line."""
        for line in range(at, self.last[closer] + 1):
            if not everywhere and not self.lines[line].strip():
                break
            found = self.lines[line].lower().find(closer, inside if line == at else 0)
            if found >= 0:
                return line, found
        return -1, -1

    def _quiet(self, at: int) -> None:
        """Attributes that a person does not see go; addresses stay: what is missing from a report is looked up there."""
        for _ in range(_MOST_ATTRIBUTES if "=" in self.lines[at] else 0):
            self.lines[at], changed = _ATTRIBUTE.subn(r"\1", self.lines[at])
            if not changed:
                break


def _last(lines: list[str], closer: str) -> int:
    return max((number for number, line in enumerate(lines) if closer in line.lower()), default=-1)
