"""Collects what a reader finds and makes one `Paper` of it: ids, sentences, limits."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bot.kernel.outside_text import clean, clip, one_line
from bot.kernel.paper import (
    Paper,
    PaperFormat,
    PaperFormula,
    PaperListing,
    PaperReference,
    PaperSection,
    PaperSentence,
    PaperTable,
)

MOST_SENTENCES, MOST_TABLES, MOST_ROWS, MOST_CELLS = 8_000, 200, 400, 60
_MOST_FORMULAS, _MOST_REFERENCES, _LONGEST = 1_000, 1_000, 2_000
_END = re.compile(r"(?<=[.!?])[\"')\]\u201d]{0,2}\s+(?=[\"'(\[\u201c]{0,2}[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|et al|etc|vs|cf|resp|approx|w\.r\.t|"
    r"Figs?|Tabs?|Eqs?|Secs?|Refs?|Nos?|Dr|St|[A-Z])\.$"
)
_CITED = re.compile(r"\[([\w:.,;+/ -]{1,300})\]")
_REPOSITORY = re.compile(
    r"https?://(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org)/([\w.-]+/[\w.-]+)"
)
_CAPTION = re.compile(
    r"^\s*(?:Table|Tab\.)\s*(\d{1,3}|[IVX]{1,6})\s*[:.|\u2014-]\s*", re.IGNORECASE
)


def split_sentences(text: str) -> Iterator[str]:
    """The sentences of a paragraph; an abbreviation ends none."""
    start = 0
    for match in _END.finditer(text):
        if not _ABBREVIATION.search(text[max(start, match.start() - 8) : match.start()]):
            yield text[start : match.start()].strip()
            start = match.end()
    yield text[start:].strip()


def without_number(caption: str) -> str:
    """A caption without the "Table 2:" that it may begin with."""
    return _CAPTION.sub("", caption).strip()


def _plain(text: str) -> str:
    return clip(one_line(clean(text)), _LONGEST)


@dataclass
class PaperDraft:
    """A paper in the making. What exceeds a limit is left out and noted once. `keys` are those that
    its source cites, None where only the brackets of its text tell: `[0, 1]` is no citation.
    """

    format: PaperFormat
    title: str = ""
    sections: list[PaperSection] = field(default_factory=list)
    sentences: list[PaperSentence] = field(default_factory=list)
    tables: list[PaperTable] = field(default_factory=list)
    formulas: list[PaperFormula] = field(default_factory=list)
    listings: list[PaperListing] = field(default_factory=list)
    references: list[PaperReference] = field(default_factory=list)
    problems: dict[str, None] = field(default_factory=dict)
    keys: set[str] | None = None
    _counts: dict[str, int] = field(default_factory=dict)
    _numbered: int = 0

    def add_section(self, title: str, level: int = 1) -> None:
        """Begin a section."""
        if len(self.sections) < MOST_TABLES:
            name = f"S{len(self.sections) + 1}"
            self.sections.append(PaperSection(id=name, title=_plain(title)[:200], level=level))

    def add_paragraph(self, text: str, under: str = "") -> None:
        """Add the sentences of a paragraph to the present section, or `under` another id."""
        section = under or (self.sections[-1].id if self.sections else "S0")
        for sentence in split_sentences(_plain_paragraph(text)):
            if len(sentence) < 2 or not self._room(self.sentences, MOST_SENTENCES, "sentences"):
                continue
            self._counts[section] = self._counts.get(section, 0) + 1
            number = f"{section}.{self._counts[section]}"
            cites = [key for keys in _CITED.findall(sentence) for key in re.split(r"[,;]\s*", keys)]
            self.sentences.append(
                PaperSentence(id=number, text=clip(sentence, _LONGEST), cites=tuple(cites))
            )

    def add_table(
        self,
        head: Sequence[Sequence[str]],
        rows: Sequence[Sequence[str]],
        *,
        caption: str = "",
        label: str = "",
        bold: Sequence[tuple[int, int]] = (),
        numbering: Literal["next", "same", "none"] = "next",
        says: str | None = None,
    ) -> None:
        """Add a table; short rows are filled up with empty cells. The sentences of its caption, or
        of what it `says` beside an earlier one, are sentences of the paper too. Several parts of
        one table have the "same" number; one in a figure has "none".
        """
        if not self._room(self.tables, MOST_TABLES, "tables"):
            return
        width = min(MOST_CELLS, max((len(row) for row in (*head, *rows)), default=0))
        if len(rows) > MOST_ROWS or any(len(row) > MOST_CELLS for row in rows):
            self.problems["a table is cut: it has too many cells"] = None
        self._numbered += bool(caption) and numbering == "next"
        name = f"T{len(self.tables) + 1}"
        self.tables.append(
            PaperTable(
                id=name,
                number=self._numbered if caption and numbering != "none" else 0,
                caption=_plain(caption),
                label=label[:100],
                section=self.sections[-1].id if self.sections else "",
                head=_filled(head[:4], width),
                rows=_filled(rows[:MOST_ROWS], width),
                bold=tuple(cell for cell in bold if cell[0] < MOST_ROWS and cell[1] < width),
            )
        )
        if words := caption if says is None else says:
            self.add_paragraph(words, f"{name}.c")

    def add_formula(self, text: str, label: str = "") -> None:
        """Add a displayed formula."""
        if text.strip() and self._room(self.formulas, _MOST_FORMULAS, "formulas"):
            name = f"F{len(self.formulas) + 1}"
            self.formulas.append(PaperFormula(id=name, text=_plain(text), label=label[:100]))

    def add_listing(self, text: str, caption: str = "") -> None:
        """Add an algorithm or a piece of code; its lines stay."""
        if text.strip() and self._room(self.listings, MOST_TABLES, "listings"):
            name = f"L{len(self.listings) + 1}"
            text = clip(clean(text).strip("\n"), 4 * _LONGEST)
            self.listings.append(PaperListing(id=name, text=text, caption=_plain(caption)))

    def add_reference(self, key: str, text: str, url: str = "") -> None:
        """Add an entry of the bibliography; of two with one key the first counts."""
        is_new = bool(key) and all(key != other.key for other in self.references)
        if is_new and self._room(self.references, _MOST_REFERENCES, "references"):
            url = url if re.fullmatch(r"https?://[^\s<>\"']{1,300}", url) else ""
            text = _plain(text)[:600]
            self.references.append(PaperReference(key=key[:100], text=text, url=url))

    def _room(self, rows: Sequence[object], most: int, what: str) -> bool:
        if len(rows) >= most:
            self.problems[f"only the first {most} {what} are read"] = None
        return len(rows) < most

    def finish(self) -> Paper:
        """The paper."""
        keys = self.keys if self.keys is not None else {row.key for row in self.references}
        if self.keys is not None or keys:
            self.sentences = [
                row.model_copy(update={"cites": tuple(key for key in row.cites if key in keys)})
                if row.cites
                else row
                for row in self.sentences
            ]
        texts = [row.text for row in self.sentences]
        names = (name for text in texts for name in _REPOSITORY.findall(text))
        addresses = (m.group(0) for text in texts for m in _REPOSITORY.finditer(text))
        by_name = dict(zip(names, addresses, strict=True))
        return Paper(
            title=_plain(self.title)[:300],
            format=self.format,
            sections=tuple(self.sections),
            sentences=tuple(self.sentences),
            tables=tuple(self.tables),
            formulas=tuple(self.formulas),
            listings=tuple(self.listings),
            references=tuple(self.references),
            repositories=tuple(address.rstrip(".") for address in by_name.values())[:8],
            problems=tuple(self.problems),
        )


def _plain_paragraph(text: str) -> str:
    return one_line(clean(text[: 40 * _LONGEST]))


def _filled(rows: Sequence[Sequence[str]], width: int) -> tuple[tuple[str, ...], ...]:
    cells = ([_plain(cell)[:400] for cell in row[:width]] for row in rows)
    return tuple(tuple(row + [""] * (width - len(row))) for row in cells)
