"""A paper in LaTeX → `Paper`: sections, sentences, formulas, tables as cells, algorithms and
references.
"""

import re
from collections.abc import Iterator, Mapping

from bot.kernel.paper import Paper
from bot.papers.reading import bibliography, latex_source
from bot.papers.reading.draft import PaperDraft, without_number
from bot.papers.reading.latex_source import argument, braced, optional
from bot.papers.reading.latex_tables import Cells, read_tabular
from bot.papers.reading.latex_text import plain

_BEGIN = re.compile(r"\\begin\s*\{([A-Za-z]+\*?)\}")
_HEADING = re.compile(r"\\(part|chapter|(?:sub){0,2}section|paragraph|subparagraph)\*?\s*(?=[\[{])")
_LEVELS = {"part": 1, "chapter": 1, "section": 1, "subsection": 2, "subsubsection": 3}
_DISPLAY = re.compile(r"\\\[(.{0,4000}?)\\\]|\$\$(.{0,4000}?)\$\$", re.DOTALL)
_FORMULAS = {"equation", "align", "gather", "multline", "eqnarray", "displaymath", "flalign"}
_TABLES = {"table", "wraptable", "sidewaystable", "longtable", "SCtable", "margintable"}
TABULARS = {"tabular", "tabularx", "tabulary", "longtable", "tabu", "array", "tblr"}
_LISTINGS = {"algorithm", "algorithmic", "lstlisting", "verbatim", "minted", "algorithm2e"}
_SKIPPED = {"figure", "wrapfigure", "tikzpicture", "thebibliography", "comment", "filecontents"}
_CAPTION = re.compile(r"\\caption(?:of\s*\{table\})?\*?\s*(?=[\[{])")
_LABEL = re.compile(r"\\label\s*\{([^{}\n]{1,100})\}")
_TITLE = re.compile(r"\\(?:icml|aistats|mlsys)?title(?:\s*\[[^\]\n]{0,200}\])?\s*(?=\{)")
_MOST_ENVIRONMENTS, _DEEPEST, _LONGEST_PARAGRAPH = 4_000, 12, 60_000


def read_latex(files: Mapping[str, bytes]) -> Paper:
    """The paper that the files of a LaTeX source make. Never runs TeX."""
    draft = PaperDraft("latex")
    text, problems = latex_source.joined(files, latex_source.main_file(files))
    draft.problems.update(dict.fromkeys(problems))
    text = latex_source.expanded(text)
    if match := _TITLE.search(text):
        draft.title = plain(braced(text, match.end())[0])
    start = re.search(r"\\begin\s*\{document\}", text)
    body = text[start.end() :] if start else text
    end = body.find("\\end{document}")
    body = body[:end] if end >= 0 else body
    _Reader(draft, body).read_body(body, 0)
    for entry in bibliography.entries(files, body):
        draft.add_reference(*entry)
    return draft.finish()


def _numbers(text: str) -> dict[str, str]:
    """What a reference to the label of a table prints: its number."""
    numbers, count = dict[str, str](), 0
    for name, _, inside, _ in _environments(text, _TABLES):
        if name and _CAPTION.search(inside):
            count += 1
            numbers |= {label: str(count) for label in _LABEL.findall(inside)}
    return numbers


def _environments(text: str, names: set[str]) -> Iterator[tuple[str, int, str, int]]:
    """The outermost environments of these names: name, start, inside, end."""
    at, count = 0, 0
    while (match := _BEGIN.search(text, at)) and count < _MOST_ENVIRONMENTS:
        at, name = match.end(), match[1].rstrip("*")
        if name in names:
            inside_end, end = closed(text, match[1], match.end())
            yield name, match.start(), text[match.end() : inside_end], end
            at, count = end, count + 1


def closed(text: str, name: str, start: int) -> tuple[int, int]:
    """Where an environment that begins before `start` ends: its inside, and all of it."""
    depth, pattern = 1, re.compile(rf"\\(begin|end)\s*\{{{re.escape(name)}\}}")
    for match in pattern.finditer(text, start):
        depth += 1 if match[1] == "begin" else -1
        if depth == 0:
            return match.start(), match.end()
    return len(text), len(text)


class _Reader:
    """Walks through the body of a document in order."""

    def __init__(self, draft: PaperDraft, body: str) -> None:
        self.draft, self.numbers, self.left = draft, _numbers(body), _MOST_ENVIRONMENTS

    def read_body(self, text: str, depth: int) -> None:
        """Read a text and, in their places, the environments in it."""
        at = 0
        while depth < _DEEPEST and self.left > 0 and (match := _BEGIN.search(text, at)):
            self.left -= 1
            self._prose(text[at : match.start()])
            inside_end, at = closed(text, match[1], match.end())
            self._environment(match[1].rstrip("*"), text[match.end() : inside_end], depth)
        self._prose(text[at:])

    def _environment(self, name: str, inside: str, depth: int) -> None:
        if name in _FORMULAS:
            self._formula(inside)
        elif name in _TABLES | TABULARS:
            self._table(name, inside)
        elif name in _LISTINGS:
            self._listing(name, inside)
        elif name == "abstract":
            self.draft.add_section("Abstract")
            self.read_body(inside, depth + 1)
        elif name in _SKIPPED:
            self._figure(name, inside)
        else:
            _, at = optional(inside, 0)
            self.read_body(inside[at:], depth + 1)

    def _figure(self, name: str, inside: str) -> None:
        """Of a figure only a table in it and its caption are read."""
        if name not in {"figure", "wrapfigure"}:
            return
        if any(True for _ in _environments(inside, TABULARS)):
            self._table("table", inside)
        elif match := _CAPTION.search(inside):
            _, at = optional(inside, match.end())
            self.draft.add_paragraph(plain(argument(inside, at)[0], self.numbers))

    def _formula(self, inside: str) -> None:
        label = _LABEL.search(inside)
        text = _LABEL.sub("", inside)
        self.draft.add_formula(" ".join(text.split()), label[1] if label else "")

    def _listing(self, name: str, inside: str) -> None:
        caption = _CAPTION.search(inside)
        title = plain(argument(inside, caption.end())[0], self.numbers) if caption else ""
        is_code = name in {"lstlisting", "verbatim", "minted"}
        rows = inside if is_code else "\n".join(map(plain, inside.split("\n")))
        self.draft.add_listing(re.sub(r"\n\s*\n+", "\n", rows), title)

    def _table(self, name: str, inside: str) -> None:
        """A table: each tabular in it, the first with the caption."""
        captions = list(self._captions(inside))
        label = _LABEL.search(inside)
        is_own = name in TABULARS
        bodies = [inside] if is_own else [row[2] for row in _environments(inside, TABULARS)]
        for at, body in enumerate(bodies):
            cells = read_tabular(body, self.numbers)
            caption = captions[at] if at < len(captions) else ""
            self._add(cells, caption, label[1] if label and at == 0 else "")
        if not bodies and captions:
            self._add(Cells(), captions[0], label[1] if label else "")

    def _captions(self, text: str) -> Iterator[str]:
        end = 0
        for match in _CAPTION.finditer(text):
            if match.start() >= end:
                _, start = optional(text, match.end())
                words, end = argument(text, start)
                yield without_number(plain(words, self.numbers))

    def _add(self, cells: Cells, caption: str, label: str) -> None:
        self.draft.add_table(
            cells.head, cells.rows, caption=caption, label=label, bold=tuple(cells.bold)
        )

    def _prose(self, text: str) -> None:
        """Text without environments: headings, displayed formulas and paragraphs."""
        for match in _DISPLAY.finditer(text):
            self._formula(match[1] or match[2] or "")
        text, at = _DISPLAY.sub(" ", text), 0
        for match in _HEADING.finditer(text):
            if match.start() < at:  # in the title of another
                continue
            self._paragraphs(text[at : match.start()])
            _, start = optional(text, match.end())
            title, at = argument(text, start)
            if match[1] in _LEVELS:
                self.draft.add_section(plain(title, self.numbers), _LEVELS[match[1]])
            else:
                self._paragraphs(f"{title.rstrip('. ')}. ")
        self._paragraphs(text[at:])

    def _paragraphs(self, text: str) -> None:
        for paragraph in re.split(r"\n\s*\n", text):
            words = plain(paragraph[:_LONGEST_PARAGRAPH], self.numbers)
            for part in re.split(r"\n\s*\n", words):
                if re.search(r"\w", part):
                    self.draft.add_paragraph(part)
