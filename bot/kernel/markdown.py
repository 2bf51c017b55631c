"""The Markdown parser that every reader of a body shares, what GitHub does not show of it,
and excerpts of it.
"""

import re
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.kernel import plain_text
from bot.kernel.bug import Issue
from bot.kernel.plain_text import readable

# The Markdown parser that every reader of a body or comment shares: CommonMark, blocks only.

_PARSER = MarkdownIt("commonmark").disable(["reference"])
_PARSER.core.ruler.enableOnly(["normalize", "block"])


def block_tokens(text: str) -> list[Token]:
    """The block tokens of a text; the content of an inline token is left unparsed."""
    return _PARSER.parse(text)


# Removes what GitHub does not show of a body, so that intake reads what a person reads.
#
# Blocks are those of strict CommonMark, not the repaired ones that intake makes of them later:
# code is shown as it is; everywhere else comments, processing instructions, declarations, scripts
# and link definitions are not.

_OPENER = re.compile(r"<!--|<\?|<!\[CDATA\[|<!(?=[A-Za-z])|<script\b", re.I)
_CLOSERS = {"<!--": "-->", "<?": "?>", "<![cdata[": "]]>", "<!": ">", "<script": "</script>"}
_DEFINITION = re.compile(
    r" {0,3}\[(?:[^\[\]\\]|\\.){1,999}\]:[ \t]*\n?[ \t]*(?:<[^<>\n]*>|[^\s<]\S*)"
    r"(?:[ \t]*(?:\n[ \t]*|[ \t])(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|\([^()]{0,2000}\)))?[ "
    r"\t]*(?:\n|$)"
)
_ATTRIBUTE = re.compile(
    r"(<[A-Za-z][^<>]{0,500}?)\s(?:title|alt|name|id|class|style|cite|summary|data-[\w-]{1,50}|aria-[\w-]{1,50})\s*=\s*"
    r"(?:\"[^\"<>]*\"|'[^'<>]*')",
    re.I,
)
_MOST_ATTRIBUTES = 8


@lru_cache(maxsize=16)
def visible(body: str) -> str:
    """The text of a body that GitHub shows, with one kind of newline. Lines keep their numbers."""
    text = readable(body)
    if not re.search(r"<[!?A-Za-z]|\]:", text):
        return text
    tokens = block_tokens(text)
    lines = text.split("\n")
    code, html = _lines(tokens, {"fence", "code_block"}), _lines(tokens, {"html_block"})
    _drop_definitions(tokens, lines)
    _Eraser(lines, code, html).run()
    return "\n".join(lines)


def _lines(tokens: list[Token], types: set[str]) -> set[int]:
    return {
        line for token in tokens if token.type in types and token.map for line in range(*token.map)
    }


def _drop_definitions(tokens: list[Token], lines: list[str]) -> None:
    """Clear link definitions, which are at the beginning of what would else be a paragraph."""
    for before, token in pairwise(tokens):
        if token.type != "inline" or before.type != "paragraph_open" or token.map is None:
            continue
        at = 0
        while match := _DEFINITION.match(token.content, at):
            first = token.map[0] + token.content.count("\n", 0, at)
            count = match.group().rstrip("\n").count("\n") + 1
            lines[first : first + count] = [""] * count
            at = match.end()


class _Eraser:
    """Walks the lines once and clears hidden spans, whatever kind of block they run over."""

    def __init__(self, lines: list[str], code: set[int], html: set[int]) -> None:
        self.lines, self.code, self.html = lines, code, html
        self.last = {
            closer: max((at for at, line in enumerate(lines) if closer in line.lower()), default=-1)
            for closer in _CLOSERS.values()
        }

    def run(self) -> None:
        at = 0
        while at < len(self.lines):
            is_visible = at in self.code or "<" not in self.lines[at]
            at = at + 1 if is_visible else self._line(at)

    def _line(self, at: int) -> int:
        """Clear the hidden spans that open on a line; returns the line to go on with."""
        start = 0
        while match := _OPENER.search(self.lines[at], start):
            end, column = self._end(at, match)
            if end < 0 and at not in self.html:
                start = match.end()  # shown as it is written
                continue
            rest = self.lines[end][column:] if end >= 0 else ""
            start, text_before = match.start(), self.lines[at][: match.start()]
            self.lines[at] = text_before + rest if end == at else text_before
            if end != at:
                return self._clear(at, end, rest)
        self._drop_attributes(at)
        return at + 1

    def _clear(self, at: int, end: int, rest: str) -> int:
        """Clear the lines of a span below its first, up to its end or that of the body."""
        end = end if end >= 0 else len(self.lines) - 1
        if end > at:
            self.lines[at + 1 : end] = [""] * (end - at - 1)
            self.lines[end] = rest
        self._drop_attributes(at)
        self.code.discard(end)
        return end if end > at else at + 1

    def _end(self, at: int, opener: re.Match[str]) -> tuple[int, int]:
        """The line and column past the closer of a span, -1 when there is none.

        In a paragraph the closer must stand before the next blank line.
        """
        kind = opener.group().lower()
        closer, comment = _CLOSERS[kind], kind == "<!--"
        # "<!-->" is a whole comment.
        column = opener.start() + 2 if comment else opener.end()
        for line in range(at, self.last[closer] + 1):
            if not (comment or at in self.html or self.lines[line].strip()):
                break
            index = self.lines[line].lower().find(closer, column if line == at else 0)
            if index >= 0:
                return line, index + len(closer)
        return -1, -1

    def _drop_attributes(self, at: int) -> None:
        """Remove attributes that nobody sees; addresses stay, for `missing` reads them."""
        for _ in range(_MOST_ATTRIBUTES if "=" in self.lines[at] else 0):
            self.lines[at], change_count = _ATTRIBUTE.subn(r"\1", self.lines[at])
            if not change_count:
                break


# Excerpts, and whether something that a model calls a quote is in the report.

_LOOSE = re.compile(r"[\W_]+")


def cut(text: str, most: int) -> str:
    """A text with its middle left out: a traceback says most at its end."""
    if len(text) <= most:
        return text
    head, tail = text[: most // 3], text[len(text) - most * 2 // 3 :]
    return f"{head}\n[{len(text) - most:,} characters left out]\n{tail}"


def is_quoted(words: str, issue: Issue) -> bool:
    """Whether the title or body of the issue contains these words, whatever the punctuation and
    blanks between them.
    """
    return contains(f"{issue.title}\n{plain_text.readable(issue.body)}", words)


def contains(text: str, words: str) -> bool:
    """Whether a text contains these words, whatever the punctuation and blanks between them."""
    fragment = _loose(words)
    return len(fragment) >= 2 and fragment in _loose(text)


def mentions(name: str, issue: Issue) -> bool:
    """Whether the issue contains a name as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", f"{issue.title}\n{issue.body}") is not None


def _loose(words: str) -> str:
    return _LOOSE.sub(" ", words).strip().lower()
