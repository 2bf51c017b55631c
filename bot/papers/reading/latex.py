"""A paper in LaTeX → `Paper`: sections, sentences, formulas, tables as cells, algorithms and
references.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Literal, NamedTuple

from bot.kernel.paper import Paper
from bot.papers.reading import latex_source
from bot.papers.reading.draft import PaperDraft, without_number
from bot.papers.reading.latex_source import argument, braced, decode, optional, without_comments
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
_PARTS = {"subtable", "subfigure", "subcaptionblock"}
"""Parts of a table that have a caption, and a letter in place of a number."""
_BOXES = {"minipage", "center", "figure", "wrapfigure", "framed", "tcolorbox"}
_OWN_CAPTION = re.compile(r"\\captionof\s*\{table\}")
_PART_CAPTION = re.compile(r"\\sub(?:caption|float|table)\*?\s*(?=[\[{])")
_CITE = re.compile(
    r"\\[A-Za-z]*cite[A-Za-z]*\*?\s*(?:\[[^\]\n]{0,200}\]\s*){0,2}\{([^{}]{1,2000})\}",
    re.IGNORECASE,
)
_SKIPPED = {"figure", "wrapfigure", "tikzpicture", "thebibliography", "comment", "filecontents"}
_CAPTION = re.compile(r"\\caption(?:of\s*\{table\})?\*?\s*(?=[\[{])")
_LABEL = re.compile(r"\\label\s*\{([^{}\n]{1,100})\}")
_TITLE = re.compile(r"\\(?:icml|aistats|mlsys)?title(?:\s*\[[^\]\n]{0,200}\])?\s*(?=\{)")
_MOST_ENVIRONMENTS, _DEEPEST, _LONGEST_PARAGRAPH = 4_000, 12, 60_000
_NEAR, _FEW = 3_000, 30


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
    draft.keys = {key.strip() for keys in _CITE.findall(text) for key in keys.split(",")}
    _Reader(draft, body).read_body(body, 0)
    for entry in cited_works(files, body):
        draft.add_reference(*entry)
    return draft.finish()


def _numbers(text: str) -> dict[str, str]:
    """What a reference to the label of a table prints: its number."""
    numbers, count = dict[str, str](), 0
    pieces = [(start, inside) for _, start, inside, _ in _environments(text, _TABLES)]
    spans = [(start, end) for _, start, _, end in _environments(text, _TABLES)]
    marks = [match.start() for match in _OWN_CAPTION.finditer(text)]
    marks = [at for at in marks if not any(start <= at < end for start, end in spans)]
    pieces += [(at, text[at:after]) for at, after in pairwise([*marks, len(text)])]
    for start, inside in sorted(pieces):
        captions = [row for row in _outer_captions(inside) if row.number]
        count += max(len(captions), 0)
        ends = [*(row.start for row in captions[1:]), len(inside)]
        for offset, (begin, end) in enumerate(pairwise([0, *ends])):
            number = str(count - max(len(captions), 1) + 1 + offset)
            part = inside[begin : min(end, begin + _NEAR) if start in marks else end]
            numbers |= dict.fromkeys(_LABEL.findall(part), number) if captions else {}
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


class Caption(NamedTuple):
    """The source of a caption, and where it begins; `number` is False for that of a part."""

    start: int
    text: str
    number: bool = True


def _captions(text: str) -> Iterator[Caption]:
    """The captions of a text, also those of parts."""
    end = 0
    matches = [(match, True) for match in _CAPTION.finditer(text)]
    matches += [(match, False) for match in _PART_CAPTION.finditer(text)]
    for match, is_own in sorted(matches, key=lambda row: row[0].start()):
        if match.start() >= end:
            short, start = optional(text, match.end())
            words, end = argument(text, start)
            is_short = (
                not is_own and short is not None and bool(short.strip())
            )  # \subfloat[caption]{…}
            yield Caption(match.start(), (short or "") if is_short else words, is_own)
            end = start if is_short else end


def _outer_captions(text: str) -> Iterator[Caption]:
    """The captions of a table itself."""
    spans = [(start, end) for _, start, _, end in _environments(text, _PARTS)]
    for caption in _captions(text):
        if caption.number and not any(start <= caption.start < end for start, end in spans):
            yield caption


def _tabulars(text: str, depth: int = 0) -> Iterator[tuple[int, str]]:
    """The tabulars of a text that hold data, with their places: one whose cells hold whole tables
    is a layout of these, and one of pictures none.
    """
    for name, start, inside, _ in _environments(text, TABULARS):
        offset = start + text[start:].index(inside) if inside else start
        inner = [
            (offset + at, body)
            for at, body in (_tabulars(inside, depth + 1) if depth < _DEEPEST else ())
            if _is_data(body)
        ]
        if inner:
            yield from inner
        elif name and not ("\\includegraphics" in inside and not re.search(r"&\s*\d", inside)):
            yield start, inside


def _holds_table(text: str) -> bool:
    """Whether a box holds a table alone: hardly a word stands outside its tabular and caption."""
    rest = text
    for row in reversed(list(_environments(text, TABULARS))):
        rest = rest[: row[1]] + rest[row[3] :]
    words = plain("".join(re.split(r"\\captionof", rest)[:1]))
    return rest != text and len(words.split()) < _FEW


def _is_data(body: str) -> bool:
    """Whether a tabular in a cell is a table of its own, and no cell with a break of line."""
    rows = re.split(r"\\\\|\\tabularnewline\b", body)
    return len(rows) > 2 and sum("&" in row for row in rows) > 1


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
        elif name in _BOXES and len(_OWN_CAPTION.findall(inside)) == 1 and _holds_table(inside):
            self._table("table", inside)
        else:
            _, at = optional(inside, 0)
            self.read_body(inside[at:], depth + 1)

    def _figure(self, name: str, inside: str) -> None:
        """Of a figure only a table in it and its caption are read."""
        if name not in {"figure", "wrapfigure"}:
            return
        if any(True for _ in _tabulars(inside)):
            self._table("table", inside, is_figure=not _OWN_CAPTION.search(inside))
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

    def _table(self, name: str, inside: str, *, is_figure: bool = False) -> None:
        """A table: each tabular in it. Parts of one table share its number, and their captions
        follow its own; of several captions each begins a table.
        """
        captions = list(_outer_captions(inside))
        parts = [(start, end, body) for _, start, body, end in _environments(inside, _PARTS)]
        bodies = [(0, inside)] if name in TABULARS else list(_tabulars(inside))
        label, latest = _LABEL.search(inside), -1
        for at, (start, body) in enumerate(bodies):
            before = [index for index, row in enumerate(captions) if row.start < start]
            which = at if len(captions) == len(bodies) else before[-1] if before else 0
            which = min(which, len(captions) - 1)
            own = self._words(captions[which].text) if captions else ""
            part = next((row[2] for row in parts if row[0] <= start < row[1]), "")
            letter = next((self._words(row.text) for row in _captions(part)), "") if part else ""
            is_new = which != latest
            self._add(
                read_tabular(body, self.numbers),
                " ".join(filter(None, (own, letter))),
                label[1] if label and at == 0 else "",
                "none" if is_figure else "next" if is_new else "same",
                None if is_new else letter,
            )
            latest = which if captions else latest
        if not bodies and captions:
            self._add(Cells(), self._words(captions[0].text), label[1] if label else "")

    def _words(self, source: str) -> str:
        return without_number(plain(source, self.numbers))

    def _add(
        self,
        cells: Cells,
        caption: str,
        label: str,
        numbering: Literal["next", "same", "none"] = "next",
        says: str | None = None,
    ) -> None:
        self.draft.add_table(
            cells.head, cells.rows,
            caption=caption, label=label, bold=tuple(cells.bold), numbering=numbering, says=says,
        )  # fmt: skip

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


Entry = tuple[str, str, str]
"""Key, text and address."""
_ITEM = re.compile(r"\\bibitem\s*(?:\[[^\]]{0,400}\])?\s*\{([^{}\n]{1,100})\}")
_RECORD = re.compile(r"@(\w{3,20})\s*\{\s*([^\s,{}]{1,100})\s*,")
_FIELD = re.compile(r"(?:^|[,\n{])\s*(\w{2,20})\s*=\s*(?:(?=\{)|\"([^\"]{0,2000})\"|(\d{1,8}))")
_URL = re.compile(r"https?://[^\s{}\"'<>\\]{1,300}")
_BIB_FILES = re.compile(r"\\(?:bibliography|addbibresource)\s*(?:\[[^\]]*\])?\{([^{}]{1,300})\}")
_MOST = 1_000


def cited_works(files: Mapping[str, bytes], body: str) -> Iterator[Entry]:
    """The references of a document with this body, those of its own text first."""
    own = [body, *(decode(data) for path, data in files.items() if path.endswith(".bbl"))]
    for text in own:
        yield from _items(without_comments(text))
    names = {name.strip() for names in _BIB_FILES.findall(body) for name in names.split(",")}
    for path, data in sorted(files.items()):
        if path.endswith(".bib") and (not names or _stem(path) in {*map(_stem, names)}):
            yield from _records(decode(data))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".bib")


def _items(text: str) -> Iterator[Entry]:
    matches = list(_ITEM.finditer(text))[:_MOST]
    for at, match in enumerate(matches):
        end = matches[at + 1].start() if at + 1 < len(matches) else match.end() + 2_000
        raw = text[match.end() : end].partition("\\end{thebibliography}")[0]
        url = _URL.search(raw)
        yield match[1], plain(raw.replace("\\newblock", " ")), url[0] if url else ""


def _records(text: str) -> Iterator[Entry]:
    for number, match in enumerate(_RECORD.finditer(text)):
        if number >= _MOST:
            return
        if match[1].lower() in {"string", "comment", "preamble"}:
            continue
        inside = braced(text, text.index("{", match.start()))[0][:20_000]
        fields = dict(_fields(inside))
        parts = [fields.get(name, "") for name in ("author", "title", "year")]
        parts.append(f"arXiv:{fields['eprint']}" if _is_arxiv(fields) else "")
        url = _URL.search(fields.get("url", "") or fields.get("howpublished", ""))
        yield match[2], ". ".join(plain(part) for part in parts if part), url[0] if url else ""


def _is_arxiv(fields: Mapping[str, str]) -> bool:
    kind = fields.get("archiveprefix", "") or fields.get("eprinttype", "") or "arxiv"
    return bool(fields.get("eprint")) and kind.lower() == "arxiv"


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for match in _FIELD.finditer(text):
        opens = text[match.end() : match.end() + 1] == "{"
        value = braced(text, match.end())[0] if opens else match[2] or match[3] or ""
        yield match[1].lower(), value
