"""A paper in Markdown → `Paper`."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.kernel.paper import Paper
from bot.papers.reading.draft import PaperDraft, without_number
from bot.papers.reading.latex_text import plain

_LONGEST = 2_000_000
_CAPTION = re.compile(r"^\s*(?:\*\*|_)?(?:Table|Tab\.)\s*\d{1,3}", re.IGNORECASE)
_MATH = re.compile(r"\$\$(.{1,4000}?)\$\$", re.DOTALL)
_INLINE_MATH = re.compile(r"\$[^$\n]{1,300}\$")
_REFERENCE = re.compile(r"^\s*\[([\w.:+-]{1,60})\]:?\s+(.{10,600})", re.DOTALL)


def read_markdown(text: str) -> Paper:
    """The paper that a Markdown text is. A line "Table 2: …" beside a table is its caption."""
    draft = PaperDraft("markdown")
    text = text[:_LONGEST]
    for formula in _MATH.findall(text):
        draft.add_formula(formula)
    tokens = MarkdownIt("commonmark").enable("table").parse(_MATH.sub(" ", text))
    _Reader(draft, tokens).read_tokens()
    return draft.finish()


def _words(token: Token) -> str:
    """The text of an inline token: no markup, links with their address."""
    out = list[str]()
    for child in token.children or ():
        if child.type in {"text", "code_inline"}:
            out.append(child.content)
        elif child.type in {"softbreak", "hardbreak"}:
            out.append("\n")
        elif child.type == "link_open" and (url := child.attrGet("href")):
            out.append(f"{url} " if str(url).startswith("http") else "")
    return _INLINE_MATH.sub(lambda match: plain(match[0]), "".join(out))


class _Reader:
    def __init__(self, draft: PaperDraft, tokens: Sequence[Token]) -> None:
        self.draft, self.tokens = draft, tokens
        self.caption = ""
        self.waiting: tuple[list[list[str]], list[list[str]], list[tuple[int, int]]] | None = None

    def read_tokens(self) -> None:
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.type == "heading_open":
                self._heading(_words(self.tokens[at + 1]), int(token.tag[1:]))
            elif token.type == "table_open":
                at = self._table(at)
            elif token.type in {"fence", "code_block"}:
                self.draft.add_listing(token.content)
            elif token.type == "inline" and self.tokens[at - 1].type != "heading_open":
                self._paragraph(_words(token))
            at += 1
        self._settle("")

    def _heading(self, title: str, level: int) -> None:
        self._settle("")
        if level == 1 and not self.draft.title:
            self.draft.title = title
        else:
            self.draft.add_section(title, max(1, level - 1))

    def _paragraph(self, text: str) -> None:
        if _CAPTION.match(text):
            if self.waiting is not None:
                self._settle(text)
            else:
                self.caption = text
            return
        self._settle("")
        if match := _REFERENCE.match(text):
            self.draft.add_reference(match[1], match[2])
        else:
            self.draft.add_paragraph(text)

    def _settle(self, caption: str) -> None:
        """Add the table that waits for its caption, or the caption that waits for a table."""
        if self.waiting is not None:
            head, rows, bold = self.waiting
            text = without_number((caption or self.caption).strip("*_ "))
            self.draft.add_table(head, rows, caption=text, bold=bold)
            self.caption = ""
        elif self.caption:
            self.draft.add_paragraph(self.caption)
            self.caption = ""
        self.waiting = None

    def _table(self, at: int) -> int:
        if self.waiting is not None:
            self._settle("")
        head, rows, bold, in_head = (
            list[list[str]](),
            list[list[str]](),
            list[tuple[int, int]](),
            False,
        )
        while self.tokens[at].type != "table_close":
            token = self.tokens[at]
            if token.type in {"thead_open", "thead_close"}:
                in_head = token.type == "thead_open"
            elif token.type == "tr_open":
                (head if in_head else rows).append([])
            elif token.type == "inline":
                row = (head if in_head else rows)[-1]
                if not in_head and any(x.type == "strong_open" for x in token.children or ()):
                    bold.append((len(rows) - 1, len(row)))
                row.append(_words(token))
            at += 1
        self.waiting = head, rows, bold
        if self.caption:
            self._settle("")
        return at
