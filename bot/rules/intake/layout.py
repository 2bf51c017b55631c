"""Prepares the lines of a body for Markdown: tags removed, odd fences repaired, numbers kept."""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bot.rules.intake import frames
from bot.rules.intake.plain import is_prose
from bot.rules.intake.python import tree_of

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
    last_pre, last_error = _last(lines, _PRE_END.search), _last(lines, frames.PYTEST_ERROR.match)
    out: list[SourceLine] = []
    at = 0
    while at < len(lines):
        failure = at < last_error and _PYTEST_START.match(lines[at].text)
        if end := failure and _end_of_failure(lines, at):
            at = _fenced(lines, at, end, out)
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
    out.append(SourceLine(_TAG.sub("", line.text), line.number))
    return at + 1


def _is_prompt(text: str) -> bool:
    """Whether a line was typed at Python's prompt, and is no threefold quotation."""
    code = text.strip()[4:]
    if tree_of(code) is None:
        return code.rstrip().endswith((":", "(", "[", "{", ","))
    return bool(re.search(r"[=(.\[]|^(?:import|from) ", code))


def _transcript(lines: list[SourceLine], at: int, out: list[SourceLine]) -> int:
    """Fence a transcript up to the next blank line: Markdown takes its prompts for quotations."""
    rest = range(at, len(lines))
    ends = (i for i in rest if not lines[i].text.strip() or _FENCE.match(lines[i].text))
    return _fenced(lines, at, next(ends, len(lines)), out)


def _end_of_failure(lines: list[SourceLine], at: int) -> int:
    """The line after the failure of a test that pytest shows from here on, 0 if it shows none:
    source with a marked line, the error, and the place of both. Markdown takes the source for code
    and the marked line for a quotation.
    """
    marked = failed = False
    for end, line in enumerate(lines[at : at + _LONGEST_FAILURE], at + 1):
        text = line.text
        beside = text[:1] not in {"", " ", ">", "E", "_"} and is_prose(text)
        if beside or _FENCE.match(text) or _SECTION.match(text):
            return 0
        marked = marked or text.lstrip().startswith(">  ")
        failed = failed or (marked and bool(frames.PYTEST_ERROR.match(text)))
        if failed and frames.PYTEST.match(text.strip()):
            return end
    return 0


def _fenced(lines: list[SourceLine], at: int, end: int, out: list[SourceLine]) -> int:
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
    out += body
    if not closed:
        out.append(SourceLine(margin + opening["mark"], out[-1].number if body else number))
    return after


def _inside(lines: list[SourceLine], start: int, mark: str) -> tuple[list[SourceLine], int, bool]:
    """The lines of a fence, the line after it, and whether its closing mark is among them."""
    for i in range(start, len(lines)):
        stripped = lines[i].text.strip().lstrip("> ")
        if stripped.startswith(mark) and not stripped.strip(mark[0]):
            return lines[start : i + 1], i + 1, True
        if stripped.startswith(mark) and _FENCE.match(lines[i].text) and mark[0] == "`":
            return lines[start:i], i, False
        if mark == "```" and stripped.endswith("```") and stripped.count("```") == 1:
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
