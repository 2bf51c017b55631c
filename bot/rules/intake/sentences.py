"""Running text as sentences that know their line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.models.bug import Quote
from bot.rules.intake.document import ProseLine
from bot.rules.intake.exceptions import could_be, named

_END = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!etc\.)[\"')*_]{0,3}\s+(?=[\"'(*_`A-Z\d])"
    r"|(?<=[:;])\s+(?=[A-Z]\w+ )"
)
_ITEM = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,3}[.)])\s+")
_NAME = re.compile(r"(?<![\w.])([A-Za-z_][\w.]{0,200}):$")
_NEAR = 210  # characters in which such a name lies
_NEW_BLOCK = re.compile(r"^\s*(?:[-*+\u2022|>]\s|\d{1,3}[.)]\s|#|\|)")
LONGEST = 1500


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, the line it begins on, the headings over it, and where in it further lines
    begin.
    """

    text: str
    line: int
    headings: tuple[str, ...]
    breaks: tuple[tuple[int, int], ...] = ()

    @property
    def quote(self) -> Quote:
        """The sentence as a quotation."""
        return Quote(text=self.text[:600], source="body" if self.line else "title", line=self.line)

    def line_at(self, offset: int) -> int:
        """The line of the body for a character of the sentence."""
        return max((number for start, number in self.breaks if start <= offset), default=self.line)


def sentences(prose: Sequence[ProseLine]) -> Iterator[Sentence]:
    """The sentences of the prose; a list item or a table row begins a new one."""
    paragraph: list[ProseLine] = []
    for line in prose:
        blank = line.heading or not line.text.strip()
        apart = paragraph and line.number != paragraph[-1].number + 1
        if blank or apart or _NEW_BLOCK.match(line.text) or len(paragraph) > 40:
            yield from _split(paragraph)
            paragraph = []
        paragraph += [] if blank else [line]
    yield from _split(paragraph)


def _goes_on(text: str, begin: int, stop: int) -> bool:
    """Whether `stop` lies in the middle of a piece of code, or between an exception and its
    message.
    """
    name = _NAME.search(text, max(begin, stop - _NEAR), stop)
    return text.count("`", begin, stop) % 2 == 1 or (
        name is not None and (named(name[1]) or could_be(name[1]))
    )


def _split(paragraph: list[ProseLine]) -> Iterator[Sentence]:
    starts: list[tuple[int, int]] = []
    text = ""
    for line in paragraph:
        starts.append((len(text), line.number))
        text += _ITEM.sub("", line.text[:20_000]).strip() + " "
    begin = 0
    for stop, end in [*(match.span() for match in _END.finditer(text)), (len(text), len(text))]:
        if end < len(text) and end - begin < LONGEST and _goes_on(text, begin, stop):
            continue
        first = end - len(text[begin:end].lstrip())
        if piece := text[begin:end].strip():
            number = max((n for offset, n in starts if offset <= first), default=starts[0][1])
            breaks = tuple((offset - first, n) for offset, n in starts if first < offset < end)
            yield Sentence(piece[:LONGEST], number, paragraph[0].headings, breaks)
        begin = end
