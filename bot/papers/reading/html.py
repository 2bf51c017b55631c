"""A paper in HTML, such as arXiv's → `Paper`."""

import re
from html.parser import HTMLParser

from typing_extensions import override

from bot.kernel.paper import Paper
from bot.papers.reading.draft import PaperDraft, without_number
from bot.papers.reading.latex_tables import head_rows
from bot.papers.reading.latex_text import plain

_LONGEST, _MOST_SPAN = 8_000_000, 40
_SKIPPED = {"script", "style", "nav", "svg", "noscript", "annotation", "annotation-xml", "button"}
_BLOCKS = {"p", "li", "div", "dd", "dt", "blockquote", "section", "article", "td", "th"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_OF_TABLE = re.compile(r"\s*(?:table|tab\.)", re.IGNORECASE)


def read_html(text: str) -> Paper:
    """The paper that an HTML page is. Formulas are taken from their alternative text."""
    draft = PaperDraft("html")
    parser = _Parser(draft)
    parser.feed(text[:_LONGEST])
    parser.close()
    parser.finish()
    return draft.finish()


class _Parser(HTMLParser):
    """Collects the text of blocks; what is in a table goes to its cells."""

    def __init__(self, draft: PaperDraft) -> None:
        super().__init__(convert_charrefs=True)
        self.draft = draft
        self.words = list[str]()
        self.skipped, self.maths = 0, 0
        self.capture = ""
        self.caption = ""
        self.rows = list[list[str]]()
        self.heads = list[bool]()
        self.bold = list[tuple[int, int]]()
        self.tables = 0
        self.span = 1
        self.reference = ""

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in _SKIPPED:
            self.skipped += 1
        elif tag == "math":
            self._math(values)
        elif self.skipped or self.maths:
            return
        elif tag in _HEADINGS or tag in {"caption", "figcaption", "title"}:
            self.end_block()
            self.capture = tag
        elif tag in {"table", "tr", "td", "th"}:
            self._cell(tag, values)
        elif tag in {"b", "strong"} and self.tables and self.rows:
            self.bold.append((len(self.rows) - 1, len(self.rows[-1])))
        elif tag in _BLOCKS and not self.tables:
            self.end_block()
            self.reference = values.get("id", "") if "bib" in values.get("class", "") else ""
        elif tag == "br":
            self.words.append(" ")

    def _math(self, values: dict[str, str]) -> None:
        self.maths += 1
        if text := values.get("alttext", ""):
            if values.get("display") == "block":
                self.draft.add_formula(text)
            self.words.append(plain(text))

    def _cell(self, tag: str, values: dict[str, str]) -> None:
        if tag == "table":
            if not self.tables:
                self.end_block()
                self.rows, self.heads, self.bold = [], [], []
            self.tables += 1
        elif self.tables == 1 and tag == "tr":
            self.rows.append([])
            self.heads.append(True)
        elif self.tables == 1 and self.rows:
            self.words = []
            span = values.get("colspan", "1")
            self.span = min(int(span), _MOST_SPAN) if re.fullmatch(r"\d{1,4}", span) else 1
            self.heads[-1] = self.heads[-1] and tag == "th"

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self.skipped = max(0, self.skipped - 1)
        elif tag == "math":
            self.maths = max(0, self.maths - 1)
        elif self.capture and tag == self.capture:
            self._captured(tag)
        elif tag in {"td", "th"} and self.tables == 1 and self.rows:
            self.rows[-1] += [" ".join("".join(self.words).split())] * self.span
            self.words = []
        elif tag == "table":
            self.tables = max(0, self.tables - 1)
            if not self.tables:
                self._table()
        elif tag == "figure" and self.rows and not self.tables:
            self._add(without_number(self.caption))
        elif tag in _BLOCKS and not self.tables and not self.skipped:
            self.end_block()

    def _captured(self, tag: str) -> None:
        text, self.words, self.capture = " ".join("".join(self.words).split()), [], ""
        if tag in {"caption", "figcaption"}:
            self._caption(text, tag)
        elif tag in {"h1", "title"}:
            self.draft.title = text if tag == "h1" or not self.draft.title else self.draft.title
        else:
            self.draft.add_section(text, int(tag[1]) - 1)

    def _caption(self, text: str, tag: str) -> None:
        if tag == "caption" or _OF_TABLE.match(text):
            self.caption = text
            if self.rows and not self.tables:
                self._add(without_number(text))
        elif text:
            self.draft.add_paragraph(text)

    def _table(self) -> None:
        """At its end a table is added, or waits for a caption that may follow."""
        self.words = []
        if self.caption:
            self._add(without_number(self.caption))

    def finish(self) -> None:
        """Add what is left."""
        self.end_block()
        if self.rows:
            self._add("")

    def _add(self, caption: str) -> None:
        rows = [row for row in self.rows if any(row)]
        heads = [is_head for row, is_head in zip(self.rows, self.heads, strict=True) if any(row)]
        marked = next((at for at, is_head in enumerate(heads) if not is_head), 0)
        count = min(marked or head_rows(rows), 4)
        bold = [(row - count, column) for row, column in self.bold if row >= count]
        self.draft.add_table(rows[:count], rows[count:], caption=caption, bold=bold)
        self.rows, self.heads, self.bold, self.caption = [], [], [], ""

    def end_block(self) -> None:
        """Add the paragraph so far; a table that no caption came for is added too."""
        text, self.words = "".join(self.words), []
        if not text.strip():
            return
        if self.rows and not self.tables:
            self._add("")
        if self.reference:
            self.draft.add_reference(self.reference.rpartition(".")[2], text)
            self.reference = ""
        else:
            self.draft.add_paragraph(text)

    @override
    def handle_data(self, data: str) -> None:
        if not self.skipped and not self.maths:
            self.words.append(data)
