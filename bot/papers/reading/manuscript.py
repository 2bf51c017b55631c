"""A paper as its authors wrote it, for a model: formulas and the words around them stay as they
are. What rules read (`Paper`) has no formula in its place.
"""

import re

from bot.kernel.outside_text import clean
from bot.kernel.paper import Paper, PaperFiles
from bot.papers.passages import choose_passages, stems
from bot.papers.reading import latex_source

MOST_CHARACTERS = 90_000
_SKIPPED = re.compile(
    r"\\begin\s*\{(tikzpicture|thebibliography|comment|filecontents)\*?\}.*?\\end\s*\{\1\*?\}",
    re.DOTALL,
)
_HEADINGS = (
    re.compile(r"^(?=\\(?:sub)*section\*?\s*\{|\\(?:chapter|appendix)\b)", re.MULTILINE),
    re.compile(r"^(?=#{1,6} )", re.MULTILINE),
)
_BLANKS = re.compile(r"[ \t]+")
_EMPTY = re.compile(r"\n\s*\n\s*")


def manuscript(source: PaperFiles, paper: Paper, most: int = MOST_CHARACTERS) -> str:
    """The text of a paper's body: LaTeX and Markdown as they are written, without comments; of any
    other format what was read of it. A long one is cut.
    """
    if paper.format == "latex":
        text = _latex(source)
    elif paper.format == "markdown":
        paths = (path for path in source.files if path.lower().endswith((".md", ".markdown")))
        text = "\n\n".join(latex_source.decode(source.files[path]) for path in sorted(paths))
    else:
        text = _as_read(paper)
    text = _EMPTY.sub("\n\n", _BLANKS.sub(" ", clean(text))).strip()
    return text[:most]


def excerpt(text: str, about: str, most: int) -> str:
    """The beginning of a manuscript and those of its sections that share most words with what a
    question is about, at most so many characters together.
    """
    splits = (heading.split(text) for heading in _HEADINGS)
    head, *sections = next((parts for parts in splits if len(parts) > 1), [text])
    head = head[: most // 4]
    places = choose_passages(sections, stems(about), most - len(head)) if sections else ()
    return "".join((head, *(sections[at] for at in places)))[:most].strip()


def _latex(source: PaperFiles) -> str:
    text, _ = latex_source.joined(source.files, latex_source.main_file(source.files))
    text = latex_source.expanded(text)
    start = re.search(r"\\begin\s*\{document\}", text)
    body = text[start.end() :] if start else text
    return _SKIPPED.sub("", body.partition("\\end{document}")[0])


def _as_read(paper: Paper) -> str:
    parts, section = list[str](), ""
    for row in paper.sentences:
        title = paper.section_of(row)
        parts += [f"\n\n# {title}\n"] if title and title != section else []
        section = title or section
        parts.append(row.text)
    for table in paper.tables:
        rows = [*table.head, *table.rows]
        cells = "\n".join(" | ".join(row) for row in rows)
        parts.append(f"\n\nTable {table.number}: {table.caption}\n{cells}\n")
    parts += [f"\n\n{row.text}\n" for row in paper.formulas]
    parts += [f"\n\n{row.text}\n" for row in paper.listings]
    return "\n".join(parts)
