"""What of a paper a model reads: the sections that share most words with a question (BM25), in the
order of the paper; or the text as its authors wrote it, with formulas in their places, which what
rules read (`Paper`) lacks.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bot.kernel.outside_text import clean
from bot.kernel.paper import Paper, PaperFiles
from bot.papers.reading import latex_source

_WORD = re.compile(r"[A-Za-z]{3,}")
_STEM = 6
_SATURATION, _LENGTH = 1.2, 0.75
"""The usual constants of BM25."""


def stems(text: str) -> list[str]:
    """The words of a text in the form in which they are compared; those of `names_like_this` and
    `namesLikeThis` one by one.
    """
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text)
    return [word.lower()[:_STEM] for word in _WORD.findall(split)]


def choose_passages(texts: Sequence[str], query: Iterable[str], most: int) -> tuple[int, ...]:
    """The texts that together have at most so many characters and share most words with a query,
    by their places; all where there is room. The best is among them, however long it is.
    """
    if sum(map(len, texts)) <= most:
        return tuple(range(len(texts)))
    scores, places, room = _scores(texts, set(query)), list[int](), most
    for at in sorted(range(len(texts)), key=lambda at: -scores[at]):
        if scores[at] > 0 and (not places or len(texts[at]) <= room):
            places.append(at)
            room -= len(texts[at])
    return tuple(sorted(places))


def _scores(texts: Sequence[str], query: set[str]) -> list[float]:
    counts = [Counter(word for word in stems(text) if word in query) for text in texts]
    sizes = [len(text) for text in texts]
    mean = sum(sizes) / len(sizes)
    rarity = {word: _rarity(sum(word in row for row in counts), len(texts)) for word in query}
    return [
        sum(
            rarity[word] * count * (_SATURATION + 1)
            / (count + _SATURATION * (1 - _LENGTH + _LENGTH * size / mean))
            for word, count in row.items()
        )
        for row, size in zip(counts, sizes, strict=True)
    ]  # fmt: skip


def _rarity(matches: int, count: int) -> float:
    return math.log(1 + (count - matches + 0.5) / (matches + 0.5))


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
