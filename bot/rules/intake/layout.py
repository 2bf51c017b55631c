"""The lines of a body before Markdown sees them: comments and tags out, odd fences set straight, line numbers kept."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<lead>[\s>]{0,40}(?:[-*+]\s+|\d{1,3}[.)]\s+)?)(?P<mark>`{3,}|~{3,})\s*(?P<info>[^`]*)$")
_TAGLIKE = re.compile(r"^(?:[\w+#./-]{0,30}|\{.*\}|[\w+-]{1,20}[ ,:]\s*[\w-]+=.*)\s*$")
_LATE = re.compile(r"^(?P<text>[^`]*[^`\s][^`]*)```(?P<info>[^`]*)$")
_CONTENT_TAGS = frozenset({"import", "from", "Traceback", "RuntimeError:", "print"})
_PROMPT = re.compile(r"^ {0,3}>>> \S")
_TAG = re.compile(
    r"</?(?:details|summary|p|div|br|b|i|u|kbd|sub|sup|center|strong|em|hr|span|font|ul|ol|li|h[1-6])\b[^<>]{0,300}>", re.I
)
_PRE = re.compile(r"<pre\b[^<>]{0,200}>(?:\s{0,20}<code\b[^<>]{0,200}>)?", re.I)
_PRE_END = re.compile(r"(?:</code>\s{0,20})?</pre>", re.I)
_INNER_TAG = re.compile(r"</?(?:span|code|b|i|font|a|div)\b[^<>]{0,300}>", re.I)
_SECTION = re.compile(r"^#{2,3} \S")
_HTML_FENCE = "`" * 12


@dataclass(frozen=True, slots=True)
class Line:
    """One line to be parsed and the 1-based line of the body that it came from."""

    text: str
    number: int


def straighten(body: str) -> list[Line]:
    """The visible lines of a body, with fences that Markdown will read the way their author meant them."""
    lines = [Line(text, number) for number, text in enumerate(body.split("\n"), 1)]
    last_pre = max((i for i, line in enumerate(lines) if _PRE_END.search(line.text)), default=-1)
    last_comment = max((i for i, line in enumerate(lines) if "-->" in line.text), default=-1)
    out: list[Line] = []
    at = 0
    while at < len(lines):
        at = _step(lines, at, out, last_pre, last_comment)
    return out


def _step(lines: list[Line], at: int, out: list[Line], last_pre: int, last_comment: int) -> int:
    line = lines[at]
    opening = _FENCE.match(line.text)
    if opening:
        return _fence(lines, at, opening, out)
    if "<!--" in line.text:
        return _comment(lines, at, last_comment)
    if at <= last_pre and _PRE.search(line.text):
        end = next(i for i in range(at, last_pre + 1) if _PRE_END.search(lines[i].text))
        out.extend(_preformatted(lines[at : end + 1]))
        return end + 1
    if _PROMPT.match(line.text) and _is_prompt(line.text):
        return _transcript(lines, at, out)
    late = _LATE.match(line.text) if line.text.count("```") == 1 else None
    if late and any(lines[i].text.rstrip().endswith("```") for i in range(at + 1, min(len(lines), at + 400))):
        out.append(Line(late["text"], line.number))
        lines[at] = Line("```" + late["info"], line.number)
        return at
    out.append(Line(_TAG.sub("", line.text), line.number))
    return at + 1


def _is_prompt(text: str) -> bool:
    """Whether a line is typed at Python's prompt, and not a threefold quotation."""
    code = text.strip()[4:]
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return code.rstrip().endswith((":", "(", "[", "{", ","))
    return bool(re.search(r"[=(.\[]|^(?:import|from) ", code))


def _transcript(lines: list[Line], at: int, out: list[Line]) -> int:
    """A transcript that nobody fenced, up to the next blank line: Markdown would take its prompts for quotations."""
    end = at
    while end < len(lines) and lines[end].text.strip() and not _FENCE.match(lines[end].text):
        end += 1
    mark = "`" * 11
    out.extend([Line("", lines[at].number), Line(mark, lines[at].number), *lines[at:end], Line(mark, lines[end - 1].number)])
    return end


def _comment(lines: list[Line], at: int, last: int) -> int:
    """Take an HTML comment out of the lines, in place; one that never ends hides the rest when it opens a line."""
    text, number = lines[at].text, lines[at].number
    start = text.index("<!--")
    for i in range(at, last + 1):
        end = lines[i].text.find("-->", start + 4 if i == at else 0)
        if end >= 0:
            for k in range(at, i):
                lines[k] = Line("", lines[k].number)
            rest = lines[i].text[end + 3 :]
            lines[i] = Line((text[:start] if i == at else "") + rest, lines[i].number)
            if i > at and text[:start].strip():
                lines[at] = Line(text[:start], number)
            return at
    if text[:start].strip():
        lines[at] = Line(text[:start], number)
        return at
    return len(lines)


def _fence(lines: list[Line], at: int, opening: re.Match[str], out: list[Line]) -> int:
    mark, info, number = opening["mark"], opening["info"].strip(), lines[at].number
    lead = opening["lead"]
    if not _TAGLIKE.match(info) or info.split(" ")[0] in _CONTENT_TAGS:
        out.append(Line(lead + mark, number))
        out.append(Line(" " * len(lead) + info, number))
    else:
        out.append(lines[at])
    body, after, closed = _inside(lines, at + 1, mark)
    out.extend(body)
    if not closed:
        out.append(Line(" " * len(lead) + mark, body[-1].number if body else number))
    return after


def _inside(lines: list[Line], start: int, mark: str) -> tuple[list[Line], int, bool]:
    """The lines of a fence up to its end, where reading goes on, and whether the closing mark is among them."""
    for i in range(start, len(lines)):
        stripped = lines[i].text.strip().lstrip("> ")
        if stripped.startswith(mark) and not stripped.strip(mark[0]):
            return [*lines[start:i], lines[i]], i + 1, True
        if stripped.startswith(mark) and _FENCE.match(lines[i].text) and mark[0] == "`":
            return lines[start:i], i, False
        if mark == "```" and stripped.endswith("```") and stripped.count("```") == 1:
            last = Line(lines[i].text.rstrip()[:-3], lines[i].number)
            return [*lines[start:i], last], i + 1, False
    for i in range(start + 1, len(lines)):
        if _SECTION.match(lines[i].text) and not lines[i - 1].text.strip():
            return lines[start:i], i, False
    return lines[start:], len(lines), False


def _preformatted(lines: list[Line]) -> Iterator[Line]:
    """A <pre> element as a fence, with its text around it kept."""
    first, last = lines[0], lines[-1]
    begin = _PRE.search(first.text)
    before = first.text[: begin.start()] if begin else ""
    yield Line(_TAG.sub("", before), first.number)
    yield Line(_HTML_FENCE, first.number)
    for line in lines:
        text = line.text[begin.end() :] if line is first and begin else line.text
        end = _PRE_END.search(text) if line is last else None
        text = text[: end.start()] if end else text
        if text.strip() or line not in {first, last}:
            yield Line(html.unescape(_INNER_TAG.sub("", text)), line.number)
    yield Line(_HTML_FENCE, last.number)
    ending = _PRE_END.search(last.text)
    yield Line(_TAG.sub("", last.text[ending.end() :]) if ending else "", last.number)
