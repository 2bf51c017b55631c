"""A body as blocks: stretches of text under their headings, and the code between them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.rules.intake import unseen
from bot.rules.intake.layout import Line, straighten
from bot.rules.intake.python import evidence, tree_of
from bot.rules.intake.text import readable

_PARSER = MarkdownIt("commonmark").disable(["reference"])
_PARSER.core.ruler.enableOnly(["normalize", "block"])
_INLINE_FENCE = re.compile(r"```+([^`\n]{3,4000})```+")
_FORM_HEADING = re.compile(r"^\s{0,3}\*\*([^*\n]{2,80})\*\*:?\s*$")

# Sections of issue forms stand at their own level, whatever headings the author put into the section before.
_FORM_SECTION = re.compile(
    r"^(?:versions?|environment|system info\b.*|what version\b.*|how to reproduce\b.*|reproduc(?:tion|ed in studio)"
    r"|to reproduce"
    r"|error messages and logs|relevant log output|more info|who can help\??|information|tasks|expected (?:behaviou?r"
    r"|result)s?\??"
    r"|(?:actual|current) (?:behaviou?r|result)s?\??|standalone code\b.*|minimal (?:reproducible )?example"
    r"|steps to reproduce\b.*"
    r"|additional (?:context|info(?:rmation)?)|installation|python version|issue type|os platform\b.*|gpu model\b.*|checklist"
    r"|bug description|describe the bug|describe the issue|logs|screenshots|context)$",
    re.I,
)

Form = Literal["fence", "indented", "inline", "bare"]


@dataclass(frozen=True, slots=True)
class Code:
    """A block of the issue. `line` is that of its first line of content, `headings` run from the outermost to the nearest."""

    tag: str
    text: str
    line: int
    headings: tuple[str, ...]
    lead: str
    form: Form
    numbers: tuple[int, ...]
    adjoining: bool = False


@dataclass(frozen=True, slots=True)
class Prose:
    """A line that is not code, under its headings. `heading` marks the line of a heading itself."""

    text: str
    number: int
    headings: tuple[str, ...]
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A body that has been taken apart; `lines` are those of the readable body."""

    lines: tuple[str, ...]
    prose: tuple[Prose, ...]
    codes: tuple[Code, ...]


def parse(body: str) -> Document:
    """Take a body apart."""
    text = unseen.without(readable(body))
    lines = straighten(text)
    tokens = _PARSER.parse("\n".join(line.text for line in lines) + "\n")
    spans = sorted(_spans(tokens), key=lambda span: span[0])
    reader = _Reader(lines)
    for start, end, token in spans:
        reader.take(start, end, token)
    reader.rest()
    return Document(tuple(text.split("\n")), tuple(reader.prose), tuple(reader.codes))


def _spans(tokens: list[Token]) -> Iterator[tuple[int, int, Token]]:
    """Start, end and token of each block of code and each heading."""
    for at, token in enumerate(tokens):
        if token.map is None:
            continue
        if token.type in {"fence", "code_block"}:
            yield token.map[0], token.map[1], token
        elif token.type == "heading_open":
            yield token.map[0], token.map[1], tokens[at + 1]


class _Reader:
    """Walks the lines once and collects prose and code under the heading path of the moment."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.prose: list[Prose] = []
        self.codes: list[Code] = []
        self.path: list[tuple[int, str]] = []
        self.at = 0

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.path)

    def take(self, start: int, end: int, token: Token) -> None:
        if start < self.at:
            return
        self.text_until(start)
        if token.type == "inline":
            self.heading(start, end, token)
            return
        fenced = token.type == "fence"
        if not fenced and not _worth(token.content):
            self.text_until(end)
            return
        first = start + 1 if fenced else start
        content = token.content.split("\n")[:-1] if token.content.endswith("\n") else token.content.split("\n")
        last = len(self.lines) - 1
        numbers = tuple(self.lines[min(first + k, last)].number for k in range(len(content)))
        self.codes.append(
            Code(
                tag=token.info.strip().split(" ")[0].strip("{}.").lower()[:30],
                text="\n".join(content),
                line=numbers[0] if token.content else self.lines[min(start, last)].number,
                headings=self.headings,
                lead=self.lead(),
                form="fence" if fenced else "indented",
                numbers=numbers,
                adjoining=self.adjoins(),
            )
        )
        self.at = end

    def heading(self, start: int, end: int, token: Token) -> None:
        text = " ".join(token.content.split()).strip("#*_ ")
        level = _level(self.lines[start].text)
        if level == 0:  # setext: a paragraph that happens to stand over dashes is rarely meant as a heading
            self.text_until(end)
            return
        if _FORM_SECTION.match(text):
            self.path.clear()
        while self.path and self.path[-1][0] >= level:
            self.path.pop()
        self.path.append((level, text))
        self.prose.append(Prose(self.lines[start].text, self.lines[start].number, self.headings, heading=True))
        self.at = end

    def text_until(self, end: int) -> None:
        for line in self.lines[self.at : end]:
            bold = _FORM_HEADING.match(line.text)
            if bold:
                while self.path and self.path[-1][0] >= 9:
                    self.path.pop()
                self.path.append((9, bold[1].strip(": ")))
            self.prose.append(Prose(line.text, line.number, self.headings, heading=bool(bold)))
            for match in _INLINE_FENCE.finditer(line.text):
                lead = line.text[: match.start()].strip() or self.lead(skip=1)
                self.codes.append(Code("", match[1].strip(), line.number, self.headings, lead, "inline", (line.number,)))
        self.at = max(self.at, end)

    def rest(self) -> None:
        self.text_until(len(self.lines))

    def lead(self, skip: int = 0) -> str:
        """The paragraph just before this point, under the same heading and after the code before it."""
        found: list[str] = []
        last_code = self.codes[-1].numbers[-1] if self.codes and self.codes[-1].numbers else 0
        for prose in reversed(self.prose[: len(self.prose) - skip]):
            if prose.heading or prose.number <= last_code or len(found) > 30:
                break
            if prose.text.strip():
                found.append(prose.text.strip())
            elif found:
                break
        return "\n".join(reversed(found))[-2000:]

    def adjoins(self) -> bool:
        """Whether only blank lines stand between this point and the block before."""
        if not self.codes:
            return False
        last = self.codes[-1].numbers[-1] if self.codes[-1].numbers else self.codes[-1].line
        for prose in reversed(self.prose):
            if prose.number <= last + 1 and not prose.text.strip():
                return True
            if prose.text.strip():
                return prose.number <= last
        return True


def _worth(content: str) -> bool:
    """Whether indented text is code; most often it is a list that Markdown takes for code."""
    if "Traceback (most recent call last)" in content or re.search(r"^\s*>>> ", content, re.M):
        return True
    if len(content) > 60_000:
        return False
    tree = tree_of(textwrap.dedent(content))
    return tree is not None and evidence(tree) == "strong"


def _level(line: str) -> int:
    stripped = line.lstrip(" >-*+0123456789.)")
    return len(stripped) - len(stripped.lstrip("#"))
