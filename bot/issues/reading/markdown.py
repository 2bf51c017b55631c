"""From a body to the blocks that a person sees: odd fences mended, one parse; and its sentences."""

import ast
import html
import re
import textwrap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice, pairwise, takewhile
from typing import Literal

from markdown_it.token import Token

from bot.issues.reading.python import is_prose
from bot.kernel import exception_names, markdown, traceback_frames
from bot.kernel.bug import Quote
from bot.kernel.exception_names import could_be, is_class_name
from bot.kernel.markdown import block_tokens
from bot.kernel.plain_text import is_value
from bot.kernel.source.syntax import evidence, is_repr, pasted_tree, tree_of

# Prepares the lines of a body for Markdown: tags removed, odd fences repaired, numbers kept.

_FENCE = re.compile(
    r"^(?P<lead>[\s>]{0,40}(?:[-*+]\s+|\d{1,3}[.)]\s+)?)(?P<mark>`{3,}|~{3,})\s*(?P<info>[^`]*)$"
)
_TAGLIKE = re.compile(r"^(?:[\w+#./-]{0,30}|\{.*\}|[\w+-]{1,20}[ ,:]\s*[\w-]+=.*)\s*$")
_LATE = re.compile(r"^(?P<text>[^`]*[^`\s][^`]*)```(?P<info>[^`]*)$")
_CONTENT_TAGS = frozenset({"import", "from", "Traceback", "RuntimeError:", "print"})
_PROMPT = re.compile(r"^ {0,3}>>> \S")
_TAG = re.compile(
    r"</?(?:details|summary|p|div|br|b|i|u|kbd|sub|sup|center|strong|em|hr|span|font|ul|ol|li|h[1-6])\b[^<>]{0,300}>",
    re.I,
)
_PRE = re.compile(r"<pre\b[^<>]{0,200}>(?:\s{0,20}<code\b[^<>]{0,200}>)?", re.I)
_PRE_END = re.compile(r"(?:</code>\s{0,20})?</pre>", re.I)
_INNER_TAG = re.compile(r"</?(?:span|code|b|i|font|a|div)\b[^<>]{0,300}>", re.I)
_SECTION = re.compile(r"^#{2,3} \S")
_HTML_FENCE = "`" * 12
_PASTED_FENCE = "`" * 11
_PYTEST_START = re.compile(r"^ *_{3,} \S.* _{3,}\s*$|^ {4,}(?:async )?def \w+\(")
_LONGEST_FAILURE = 200


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line to be parsed and the 1-based line of the body that it came from."""

    text: str
    number: int


def straighten(body: str) -> list[SourceLine]:
    """The lines of a body, with fences repaired so that Markdown reads them as they were meant."""
    lines = [SourceLine(text, number) for number, text in enumerate(body.split("\n"), 1)]
    last_pre, last_error = (
        _last(lines, _PRE_END.search),
        _last(lines, traceback_frames.PYTEST_ERROR.match),
    )
    out: list[SourceLine] = []
    at = 0
    while at < len(lines):
        failure = at < last_error and _PYTEST_START.match(lines[at].text)
        if end := failure and _end_of_failure(lines, at):
            at = _read_fence(lines, at, end, out)
        else:
            at = _step(lines, at, out, last_pre)
    return out


def _last(lines: list[SourceLine], matches: Callable[[str], object]) -> int:
    return max((i for i, line in enumerate(lines) if matches(line.text)), default=-1)


def _step(lines: list[SourceLine], at: int, out: list[SourceLine], last_pre: int) -> int:
    """Append what becomes of the line, and of those that belong to it; returns the next line."""
    line = lines[at]
    if opening := _FENCE.match(line.text):
        return _fence(lines, at, opening, out)
    if at <= last_pre and _PRE.search(line.text):
        end = next(i for i in range(at, last_pre + 1) if _PRE_END.search(lines[i].text))
        out.extend(_preformatted(lines[at : end + 1]))
        return end + 1
    if _PROMPT.match(line.text) and _is_prompt(line.text):
        return _transcript(lines, at, out)
    late = _LATE.match(line.text) if line.text.count("```") == 1 else None
    if late and any(row.text.rstrip().endswith("```") for row in lines[at + 1 : at + 400]):
        out.append(SourceLine(late["text"], line.number))
        lines[at] = SourceLine("```" + late["info"], line.number)
        return at
    out += _unfold(SourceLine(_TAG.sub("", line.text), line.number))
    return at + 1


_FRAME = re.compile(r"(?<!\S)File \"[^\"\n]{1,300}\", line \d{1,7}(?!\d)(?P<function>, in )?")
_RAISED = re.compile(
    r"(?<!\S)(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt)(?=: |\s*$)"
)
_LONGEST_TRACEBACK = 20_000


def _unfold(line: SourceLine) -> list[SourceLine]:
    """The lines of a traceback that was pasted as one: its title, each frame, the exception."""
    text = line.text if len(line.text) <= _LONGEST_TRACEBACK else ""
    frames = list(_FRAME.finditer(text)) if "File " in text else []
    raised = _RAISED.search(text, frames[-1].end()) if frames else None
    if not frames or (len(frames) == 1 and raised is None):
        return [line]
    title = text.find(exception_names.TITLE, 0, frames[0].start())
    before = text[: title if title >= 0 else frames[0].start()]
    if "\\n" in text or before.endswith(("'", '"')):  # a program that prints one
        return [line]
    cuts = {0, *(match.start() for match in frames)}
    cuts |= {match.end() for match in frames if not match["function"]}
    cuts |= {title} if title >= 0 else set()
    cuts |= {raised.start()} if raised is not None else set()
    ends = [*sorted(cuts), len(text)]
    pieces = [text[start:end].strip(" ") for start, end in pairwise(ends)]
    return [SourceLine(piece, line.number) for piece in pieces if piece.strip(" ,:")]


def _is_prompt(text: str) -> bool:
    """Whether a line was typed at Python's prompt, and is no threefold quotation."""
    code = text.strip()[4:]
    if pasted_tree(code) is None:
        return code.rstrip().endswith((":", "(", "[", "{", ","))
    return bool(re.search(r"[=(.\[]|^(?:import|from) ", code))


def _transcript(lines: list[SourceLine], at: int, out: list[SourceLine]) -> int:
    """Fence a transcript up to the next blank line: Markdown takes its prompts for quotations."""
    rest = range(at, len(lines))
    ends = (i for i in rest if not lines[i].text.strip() or _FENCE.match(lines[i].text))
    return _read_fence(lines, at, next(ends, len(lines)), out)


def _end_of_failure(lines: list[SourceLine], at: int) -> int:
    """The line after the failure of a test that pytest shows from here on, 0 if it shows none:
    source with a marked line, the error, and the place of both. Markdown takes the source for code
    and the marked line for a quotation.
    """
    is_marked = failed = False
    for end, line in enumerate(lines[at : at + _LONGEST_FAILURE], at + 1):
        text = line.text
        beside = text[:1] not in {"", " ", ">", "E", "_"} and is_prose(text)
        if beside or _FENCE.match(text) or _SECTION.match(text):
            return 0
        is_marked = is_marked or text.lstrip().startswith(">  ")
        failed = failed or (is_marked and bool(traceback_frames.PYTEST_ERROR.match(text)))
        if failed and traceback_frames.PYTEST.match(text.strip()):
            return end
    return 0


def _read_fence(lines: list[SourceLine], at: int, end: int, out: list[SourceLine]) -> int:
    first, last = lines[at].number, lines[end - 1].number
    out += [SourceLine("", first), SourceLine(_PASTED_FENCE, first)]
    out += [*lines[at:end], SourceLine(_PASTED_FENCE, last)]
    return end


def _fence(lines: list[SourceLine], at: int, opening: re.Match[str], out: list[SourceLine]) -> int:
    info, number, margin = opening["info"].strip(), lines[at].number, " " * len(opening["lead"])
    if not _TAGLIKE.match(info) or info.split(" ")[0] in _CONTENT_TAGS:
        out.append(SourceLine(opening["lead"] + opening["mark"], number))
        out.append(SourceLine(margin + info, number))
    else:
        out.append(lines[at])
    body, after, closed = _inside(lines, at + 1, opening["mark"])
    out += (piece for line in body for piece in _unfold(line))
    if not closed:
        out.append(SourceLine(margin + opening["mark"], out[-1].number if body else number))
    return after


def _inside(lines: list[SourceLine], start: int, mark: str) -> tuple[list[SourceLine], int, bool]:
    """The lines of a fence, the line after it, and whether its closing mark is among them."""
    for i in range(start, len(lines)):
        text_inside = lines[i].text.strip().lstrip("> ")
        if text_inside.startswith(mark) and not text_inside.strip(mark[0]):
            return lines[start : i + 1], i + 1, True
        if text_inside.startswith(mark) and _FENCE.match(lines[i].text) and mark[0] == "`":
            return lines[start:i], i, False
        if mark == "```" and text_inside.endswith("```") and text_inside.count("```") == 1:
            last = SourceLine(lines[i].text.rstrip()[:-3], lines[i].number)
            return [*lines[start:i], last], i + 1, False
    for i in range(start + 1, len(lines)):
        if _SECTION.match(lines[i].text) and not lines[i - 1].text.strip():
            return lines[start:i], i, False
    return lines[start:], len(lines), False


def _preformatted(lines: list[SourceLine]) -> Iterator[SourceLine]:
    """A <pre> element as a fence, with the text around it."""
    first, last = lines[0], lines[-1]
    begin, ending = _PRE.search(first.text), _PRE_END.search(last.text)
    yield SourceLine(_TAG.sub("", first.text[: begin.start()] if begin else ""), first.number)
    yield SourceLine(_HTML_FENCE, first.number)
    for line in lines:
        text = line.text[begin.end() :] if line is first and begin else line.text
        end = _PRE_END.search(text) if line is last else None
        text = text[: end.start()] if end else text
        if text.strip() or line not in {first, last}:
            yield SourceLine(html.unescape(_INNER_TAG.sub("", text)), line.number)
    yield SourceLine(_HTML_FENCE, last.number)
    yield SourceLine(_TAG.sub("", last.text[ending.end() :] if ending else ""), last.number)


# The one parse of a report that all readers share: prose and code under their headings.

_BOLD_LEVEL = 9  # below all headings of Markdown
MOST_BLOCKS = 100
"""Blocks of code that are read. Long reports have about a dozen."""
LONGEST_LEAD = 2_000
"""Characters of the words before a block: more than `roles` looks at."""
_LONGEST_HEADING = 300
_INLINE_FENCE = re.compile(
    r"(?<!`)`{3,}+(?P<code>[^`\n]{3,4000})```+"
    r"|(?<!`)`(?P<command>python[\d.]* -c [^`\n]{3,4000})`(?!`)"
)
_FORM_HEADING = re.compile(r"^\s{0,3}\*\*([^*\n]{2,80})\*\*:?\s*$")

# A section of an issue form ends the one before it, whatever headings that one contains.
_FORM_SECTION = re.compile(
    r"^(?:versions?|environment|system info\b.*|what version\b.*|how to "
    r"reproduce\b.*|reproduc(?:tion|ed in studio)"
    r"|to reproduce"
    r"|error messages and logs|relevant log output|more info|who can "
    r"help\??|information|tasks|expected (?:behaviou?r"
    r"|result)s?\??"
    r"|(?:actual|current) (?:behaviou?r|result)s?\??|standalone code\b.*|minimal (?:reproducible "
    r")?example"
    r"|steps to reproduce\b.*"
    r"|additional (?:context|info(?:rmation)?)|installation|python version|issue type|os "
    r"platform\b.*|gpu model\b.*|checklist"
    r"|bug description|describe the bug|describe the issue|logs|screenshots|context)$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A block of code. `line` is its first line of content, `numbers` are those of all its lines.

    `headings` run from the outermost to the nearest; `lead` is the paragraph just before the block.
    """

    tag: str
    text: str
    line: int
    headings: tuple[str, ...]
    lead: str
    numbers: tuple[int, ...]
    adjoining: bool = False


@dataclass(frozen=True, slots=True)
class ProseLine:
    """A line that is not code, under its headings; `heading` when it is a heading itself."""

    text: str
    number: int
    headings: tuple[str, ...]
    heading: bool = False


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """A parsed body. `lines` are those of the text that GitHub shows; `blocks` counts its blocks of
    code, of which `codes` are the first.
    """

    lines: tuple[str, ...]
    prose: tuple[ProseLine, ...]
    codes: tuple[CodeBlock, ...]
    blocks: int


def parse(body: str) -> ReportDocument:
    """Parse a body."""
    text = _without_bold(_EMPHASIS.sub(r"\1\2", _unquoted(markdown.visible(body))))
    text = _without_summary(text)
    lines = straighten(text)
    reader = _Reader(lines)
    tokens = block_tokens("\n".join(line.text for line in lines) + "\n")
    for start, end, token in sorted(_spans(tokens), key=lambda span: span[0]):
        if start >= reader.at:
            reader.text_until(start)
            reader.take(start, end, token)
    reader.text_until(len(lines))
    lines_shown = tuple(text.split("\n"))
    return ReportDocument(lines_shown, tuple(reader.prose), tuple(reader.codes), reader.blocks)


_FAILED = re.compile(
    r"(?m)^(`{0,3})(?:FAILED|ERROR) [\w./-]{1,200}\.py(?:::[\w\[\].,=-]{1,200}){0,4} - "
    r"([A-Za-z_.]{1,80}: [^\n`]{1,600})",
    re.ASCII,
)
"""A line of the summary of a pytest run, with its exception."""
_TRACEBACK = re.compile(r"(?m)^E {2,40}\S|Traceback \(most recent call last\)")
_EMPHASIS = re.compile(
    r"(?m)^([^\S\n]{0,8})(?:[_*](?=File \"[^\"\n]{1,300}\", line \d)|"
    r"[_*]((?:\w{1,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Warning): [^\n]{1,1000}?)"
    r"[_*][^\S\n]*$)"
)
"""The marks around a traceback that is set in italics."""
_BOLD = re.compile(
    r"^[^\S\n]{0,8}\*{2,3}[^\S\n]*"
    r"(?=File [\"'][^\"'\n]{1,300}[\"'], line \d|Traceback \(most recent)"
)
_BOLD_LINE = re.compile(r"^(?P<margin>\s*)\*{2,3}(?P<text>.*?)\*{2,3}\s*$")
_LONGEST_BOLD = 100


def _without_bold(text: str) -> str:
    """The text without the marks around a traceback in bold, as a whole or line by line."""
    if "**" not in text:
        return text
    lines, last = text.split("\n"), -1
    for at, line in enumerate(lines):
        opening = _BOLD.match(line)
        last = at + _LONGEST_BOLD if opening else last
        if at > last:
            continue
        whole = None if opening else _BOLD_LINE.match(line)
        plain = (
            line[opening.end() :] if opening else whole["margin"] + whole["text"] if whole else line
        )
        if plain.count("**") == 1 and plain.rstrip().endswith("**"):
            plain = plain.rstrip().rstrip("*")
        lines[at] = plain
        if exception_names.LONE.match(plain.strip()):
            last = -1
    return "\n".join(lines)


def _without_summary(text: str) -> str:
    """The first line of the summary of a pytest run as the exception alone, the others blank: each
    is a failure of its own, and no message goes on over several. Beside a traceback it says nothing
    new.
    """
    first = next(iter(_FAILED.finditer(text)), None)
    if first is None or _TRACEBACK.search(text):
        return text
    start, end = first.start(), first.end()
    return text[:start] + first[1] + first[2] + _FAILED.sub(r"\1", text[end:])


def _unquoted(text: str) -> str:
    """The text of a report that stands in a quotation as a whole."""
    whole = all(line.startswith(">") for line in text.splitlines() if line.strip())
    return re.sub(r"(?m)^> ?", "", text) if whole else text


def _spans(tokens: list[Token]) -> Iterator[tuple[int, int, Token]]:
    """Start, end and token of each code block and each heading."""
    for at, token in enumerate(tokens):
        if token.map is not None and token.type in {"fence", "code_block", "heading_open"}:
            content = tokens[at + 1] if token.type == "heading_open" else token
            yield token.map[0], token.map[1], content


class _Reader:
    """Walks the lines once and collects prose and code under the current headings."""

    def __init__(self, lines: list[SourceLine]) -> None:
        self.lines = lines
        self.prose: list[ProseLine] = []
        self.codes: list[CodeBlock] = []
        self.path: list[tuple[int, str]] = []
        self.headings: tuple[str, ...] = ()
        self.at = 0
        self.blocks = 0

    def take(self, start: int, end: int, token: Token) -> None:
        marks = self.lines[start].text.lstrip(" >-*+0123456789.)")
        level = len(marks) - len(marks.lstrip("#"))
        # A paragraph that happens to stand over dashes is rarely meant as a heading.
        if token.type == "inline" and level:
            self.heading(self.lines[start], level, token.content)
        elif token.type == "fence" or (token.type == "code_block" and _is_code(token.content)):
            self.code(start, token)
        else:
            self.text_until(end)
        self.at = end

    def code(self, start: int, token: Token) -> None:
        self.blocks += 1
        if len(self.codes) == MOST_BLOCKS:
            return
        first = start + 1 if token.type == "fence" else start
        content, last = token.content.removesuffix("\n"), len(self.lines) - 1
        rows = range(first, first + content.count("\n") + 1)
        numbers = tuple(self.lines[min(row, last)].number for row in rows)
        block = CodeBlock(
            tag=token.info.strip().split(" ")[0].strip("{}.").lower()[:30],
            text=content,
            line=numbers[0] if token.content else self.lines[min(start, last)].number,
            headings=self.headings,
            lead=self.lead(),
            numbers=numbers,
            adjoining=self.adjoins(),
        )
        self.codes.append(block)

    def heading(self, line: SourceLine, level: int, content: str) -> None:
        text = " ".join(content.split()).strip("#*_ ")[:_LONGEST_HEADING]
        if _FORM_SECTION.match(text):
            self.path.clear()
        self.enter(level, text)
        self.prose.append(ProseLine(line.text, line.number, self.headings, heading=True))

    def enter(self, level: int, text: str) -> None:
        while self.path and self.path[-1][0] >= level:
            self.path.pop()
        self.path.append((level, text))
        self.headings = tuple(name for _, name in self.path)

    def text_until(self, end: int) -> None:
        for line in self.lines[self.at : end]:
            bold = _FORM_HEADING.match(line.text)
            if bold:
                self.enter(_BOLD_LEVEL, bold[1].strip(": "))
            self.prose.append(ProseLine(line.text, line.number, self.headings, heading=bool(bold)))
            for match in _INLINE_FENCE.finditer(line.text):
                self.inline(line, match)
        self.at = max(self.at, end)

    def inline(self, line: SourceLine, match: re.Match[str]) -> None:
        self.blocks += 1
        if len(self.codes) == MOST_BLOCKS:
            return
        lead = line.text[: match.start()].strip()[-LONGEST_LEAD:] or self.lead(skip=1)
        text = (match["code"] or match["command"]).strip()
        at = (line.number,)
        self.codes.append(CodeBlock("", text, line.number, self.headings, lead, at))

    def lead(self, skip: int = 0) -> str:
        """The paragraph just before this point, below the last heading and the last code."""
        last_code = self.codes[-1].numbers[-1] if self.codes else 0
        above = takewhile(
            lambda prose: not prose.heading and prose.number > last_code,
            reversed(self.prose[: len(self.prose) - skip]),
        )
        rest = dropwhile(lambda text: not text, (prose.text.strip() for prose in above))
        return "\n".join(reversed([*islice(takewhile(bool, rest), 31)]))[-LONGEST_LEAD:]

    def adjoins(self) -> bool:
        """Whether there are only blank lines between this point and the block before."""
        last = self.codes[-1].numbers[-1] if self.codes else 0
        between = takewhile(lambda prose: prose.number > last, reversed(self.prose))
        return bool(self.codes) and not any(prose.text.strip() for prose in between)


def _is_code(content: str) -> bool:
    """Whether indented text is code, or printed values; most often it is a list that Markdown takes
    for code.
    """
    lines = [line for line in content.split("\n")[:200] if line.strip()]
    if all(is_value(line) or _shows_object(line) for line in lines):
        return True
    tree = pasted_tree(textwrap.dedent(content)) if len(content) <= 60_000 else None
    session = re.search(r"Traceback \(most recent call last\)|^[^\S\n]*+>>> ", content, re.M)
    return bool(session) or (tree is not None and evidence(tree) == "strong")


def _shows_object(line: str) -> bool:
    tree = tree_of(line.strip()) if "(" in line else None
    body = tree.body if tree is not None else []
    return len(body) == 1 and isinstance(body[0], ast.Expr) and is_repr(body[0].value)


# Running text as sentences that know their line.

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
        name is not None and (is_class_name(name[1]) or could_be(name[1]))
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


# Whether a sentence says that a version works or that it fails.

_NOT = r"(?:not?|never|n't|n\u2019t|no longer|cannot|isn't|wasn't)"
_GOOD = (
    rf"{_NOT}\s+(?:\w+\s+){{0,3}}(?:reproduc\w+|a problem|problems?|an "
    r"issue|issues?|happen\w*|occur\w*|fail\w*|crash\w*"
    r"|affected|present|broken|error\w*|raise\w*|appear\w*|see)"
    r"|(?:does|did|do)(?: not|n't|n\u2019t) "
    r"(?:fail|crash|happen|occur|raise|reproduce|appear|exist|show)\w*|(?:no"
    r"|without) (?:such )?(?:error|issue|problem|warning|crash|bug|regression)s?"
    r"|used to (?:work|run|pass|train|load)|work(?:s|ed|ing)(?: "
    r"(?:fine|well|perfectly|correctly|properly|before|great|ok(?:ay)?|again|as "
    r"expected))?|(?:was|is"
    r"|are|were|runs?|ran|trains?|loads?) (?:perfectly |totally |all "
    r")?(?:fine|ok(?:ay)?|good|correct(?:ly)?"
    r"|successful(?:ly)?)"
    r"|pass(?:es|ed)|succeed(?:s|ed)|downgrad\w+(?: \S+){0,3}? to|revert\w*(?: back)? to|roll\w* "
    r"back to|pinn\w+ (?:to|at)"
    r"|fixed in|last (?:working|good)(?: version)?|not "
    r"(?:on|in|with|for)|(?:upgrad|updat|migrat|mov)\w+ (?:\S+ )?from"
    r"|prior to|earlier than|before(?= v?\d)|compared (?:to|with)|unlike"
    r"|restores? the"
)
_BAD = (
    rf"{_NOT}\s+(?:\w+\s+){{0,2}}(?:work\w*|pass\w*|succeed\w*|run|load|train|converge\w*|compatible|supported)|fail(?:s"
    r"|ed|ing|ure)?|crash\w*|br(?:oke|oken|eaks?)|error\w*|bugs?|regress\w+|raises?|raised|throws?|OOMs?|hangs?|stuck"
    r"|reproduc\w+|issues?|problems?|affect(?:s|ed)|since|wrong|incorrect|appears?|introduced|as "
    r"of|starting (?:with|from"
    r"|in)|after (?:upgrading|updating|moving)(?: \S+){0,3}? to|upgrad\w+(?: \S+){0,3}? "
    r"to|updat\w+(?: \S+){0,3}? to"
    r"|(?<=\d )to(?= [`v]?\d+\.)|no longer|happens?|occurs?|seeing|using|tested (?:on|with)|nan\b"
)
_CUE = re.compile(rf"(?P<good>\b(?:{_GOOD})\b)|(?P<bad>\b(?:{_BAD})(?:\b|(?=\s)))", re.I)
_CLAUSE = re.compile(r"\b(?:but|however|while|whereas|although|though|yet)\b|;|, (?:and|so) ", re.I)
Polarity = Literal["good", "bad", ""]


def polarity(sentence: str, start: int, end: int) -> Polarity:
    """What the words around a version, in its own clause, say of it: the nearest before it
    decides, else the nearest after.
    """
    begin = max((match.end() for match in _CLAUSE.finditer(sentence, 0, start)), default=0)
    finish = next((match.start() for match in _CLAUSE.finditer(sentence, end)), len(sentence))
    after = _CUE.search(sentence, end, finish)
    last = next(iter(deque(_CUE.finditer(sentence, begin, start), maxlen=1)), None)
    own = after is not None and "," not in sentence[end : after.start()]
    if last is not None and not (own and "," in sentence[last.end() : start]):
        return "good" if last["good"] else "bad"
    if after:
        return "good" if after["good"] else "bad"
    return ""
